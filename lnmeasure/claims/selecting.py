"""From what a part names (a quantity, a placement, a block) to the one SELECT that fetches its readings.

It answers with a row per seed, depth and position: seed, depth, x (block or depth), value.
"""

import re

from lnmeasure.claims.lines import Lines
from lnmeasure.records import QUANTITIES

ENDS = {"top": "block = depth", "bottom": "block = 1"}
BLOCKS = {**ENDS, "both ends": "block IN (1, depth)", "upper half": "2 * block > depth", "all": None}
"""Which blocks a part looks at, by name."""
_FUNCTIONS = {"sqrt", "ln", "exp", "abs", "pow", "least", "greatest"}
_PLACES = {"depth", "block"}


def select(entry: dict, depths: tuple[int, ...], lines: Lines) -> str:
    """The SELECT of a part. ValueError with the line where it names what no store has."""
    placements = entry.get("order") or [entry.get("placement")]
    if "read" not in entry or None in placements:
        lines.refuse("read or placement is missing", "a part names quantity and placement, or has an sql of its own")
    named = {key: entry[key] for key in ("over", "setup", "init", "stack") if key in entry}
    for key, value in [*named.items(), *(("placement", placement) for placement in placements)]:
        if not re.fullmatch(r"\w+", str(value)):
            lines.refuse(f"{key} is {value!r}", "it must be a name of letters, digits and _", key)
    one = _readings(entry, placements, depths, lines)
    if "over" not in entry:
        return f"{one}\nORDER BY seed, depth, x"
    other = _readings(entry, [entry["over"]], depths, lines)
    return (
        f"SELECT seed, depth, x, one.value / nullif(other.value, 0) AS value\nFROM (\n{one}\n) one JOIN (\n{other}\n) "
        "other USING (seed, depth, x)\nORDER BY seed, depth, x"
    )


def is_along_depth(entry: dict) -> bool:
    """Whether a part has one reading per depth: of the whole stack, or of one block of it."""
    whole = entry.get("read") and not any(QUANTITIES[w].per_block for w in _words(entry["read"]) & set(QUANTITIES))
    return bool(whole) or entry.get("block") in ENDS or type(entry.get("block")) is int


def _readings(entry: dict, placements: list[str], depths: tuple[int, ...], lines: Lines) -> str:
    per_block = _is_per_block(entry["read"], lines)
    position = "placement" if "order" in entry else "depth" if is_along_depth(entry) else "block"
    named = {"setup": entry.get("setup", "page"), "init": entry.get("init", "xavier_uniform")}
    named |= {"stack": entry.get("stack", "decoder")} if per_block else {}
    where = [f"{column} = '{value}'" for column, value in named.items()]
    where += [f"placement IN ({', '.join(map(repr, placements))})", f"depth IN ({', '.join(map(str, depths))})"]
    where += filter(None, [_which(entry, lines)] if per_block else [])
    return (
        f"SELECT seed, depth, {position} AS x, ({_in_double(entry['read'])}) AS value\n"
        f"FROM {'by_block' if per_block else 'by_cell'}\nWHERE {' AND '.join(where)}"
    )


def _words(read: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", read)) - _FUNCTIONS - _PLACES


def _is_per_block(read: str, lines: Lines) -> bool:
    words = _words(read)
    if not re.fullmatch(r"[\w\s+*/^().,-]+", read) or not words or not words <= set(QUANTITIES):
        unknown = ", ".join(sorted(words - set(QUANTITIES))) or "a sign that is none of + - * / ^ ( ) , ."
        lines.refuse(f"read is {read!r}, with {unknown}", f"choose quantities of {', '.join(QUANTITIES)}", "read")
    kinds = {QUANTITIES[word].per_block for word in words}
    if len(kinds) > 1:
        lines.refuse(
            f"read is {read!r}", "it mixes quantities of a block with those of the whole stack. Use sql", "read"
        )
    return kinds.pop()


def _in_double(read: str) -> str:
    """The store keeps FLOATs; what is computed of them is computed in double precision."""
    return re.sub(rf"\b({'|'.join(QUANTITIES)})\b", r"\1::DOUBLE", read)


def _which(entry: dict, lines: Lines) -> str | None:
    block = entry.get("block", "all")
    if type(block) is int and block > 0:
        return f"block = {block}"
    if block not in BLOCKS:
        lines.refuse(f"block is {block!r}", f"choose a number from 1, or {', '.join(BLOCKS)}", "block")
    return BLOCKS[block]
