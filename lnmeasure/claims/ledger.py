"""Claims as data: what a file of claims may say. A malformed one is refused with the line and the reason."""

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from lnmeasure.claims.lines import Lines
from lnmeasure.claims.relations import NUMBERS, PROFILE_WORDS, PROFILES, TAKES, Region, Relation
from lnmeasure.claims.selecting import is_along_depth, select

ROLES = ("own", "elsewhere", "context")
"""own: the setting the claim speaks of; elsewhere: another one; context: reported, and decides nothing."""
NEEDS = ("readings", "training")
DEPTHS = (8, 12, 16, 24, 32, 48, 64)
"""The depths of a part that names none: those of the store's default slope."""
_TEXTS = ("source", "where", "statement", "predicts", "assumptions", "revise", "because")
_PART = {
    **dict.fromkeys(("name", "setup", "init", "placement", "over", "stack", "read", "take"), str),
    **dict.fromkeys(("relation", "role", "needs", "because", "pending", "sql"), str),
    **dict.fromkeys(("value", "margin", "percent", "low", "high", "factor"), float),
    **dict.fromkeys(("each_depth", "logs", "on_means"), bool),
    **dict.fromkeys(("depths", "order"), list),
    "block": object,
}
_CLAIM = {"id": str, **dict.fromkeys(_TEXTS, str), "link": dict, "part": list}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing a claim predicts: the SELECT of its readings, and the relation they must have.

    depths: those it needs, each judged by itself where each_depth says so. pending: why nothing measures it yet. at:
    its file and line.
    """

    name: str
    setup: str
    sql: str
    depths: tuple[int, ...]
    each_depth: bool = False
    relation: Relation | None = None
    order: tuple[str, ...] = ()
    role: str = "own"
    needs: str = "readings"
    because: str = ""
    pending: str = ""
    at: str = ""

    @property
    def expected(self) -> str:
        """What is predicted, in words that end with the region."""
        if self.relation is None:
            return self.pending
        words = PROFILE_WORDS.get(self.relation.name) or (
            TAKES[self.relation.take].words if self.relation.take in TAKES else ""
        )
        return f"{words} {self.relation.region}".strip()


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence somebody wrote, and what it predicts. because: why it holds, where it does and that is known."""

    id: str
    statement: str
    parts: tuple[Part, ...]
    source: str = ""
    where: str = ""
    predicts: str = ""
    assumptions: str = ""
    revise: str = ""
    because: str = ""
    link: dict[str, object] = field(default_factory=dict)

    @property
    def setups(self) -> list[str]:
        """The setups it is tested in."""
        return list(dict.fromkeys(part.setup for part in self.parts))


def shipped() -> list[Claim]:
    """The claims of this package."""
    return parse(files("lnmeasure.claims").joinpath("claims.toml").read_text(encoding="utf-8"), "claims.toml")


def load(path: Path) -> list[Claim]:
    """The claims of a file. ValueError with line and reason where it is malformed."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> list[Claim]:
    """The claims of a text, name being what a message calls it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: {error}. It must be TOML, one [[claim]] after another.") from error
    lines = Lines(text=text, file=name)
    if not isinstance(document.get("claim"), list) or set(document) != {"claim"}:
        lines.refuse(f"it holds {', '.join(document) or 'nothing'}", "a file of claims holds [[claim]] entries only")
    claims = [_claim(entry, lines.entry(number)) for number, entry in enumerate(document["claim"])]
    _once([claim.id for claim in claims], lines)
    return claims


def _once(ids: list[str], lines: Lines) -> None:
    for number, name in enumerate(ids):
        if name in ids[:number]:
            lines.entry(number).refuse(f"id is {name!r}", "an id is used once. Choose another", "id")


def _claim(entry: dict, lines: Lines) -> Claim:
    """A claim of several parts, or of one, whose keys may stand in the claim itself."""
    single = "part" not in entry
    allowed = _CLAIM | _PART if single else _CLAIM
    _check(entry, allowed, lines)
    for required in ("id", "statement"):
        if not entry.get(required):
            lines.refuse(f"{required} is missing", "a claim has an id and a statement. Add it")
    own = {"name", *_PART} - {"because"}
    entries = [{key: value for key, value in entry.items() if key in own}] if single else entry["part"]
    parts = tuple(_part(one, lines if single else lines.part(n)) for n, one in enumerate(entries))
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        lines.refuse(f"its parts are named {', '.join(map(repr, names))}", "each part has a name of its own")
    texts = {key: entry[key] for key in ("id", *_TEXTS, "link") if key in entry}
    return Claim(parts=parts, **texts)


def _part(entry: dict, lines: Lines) -> Part:
    _check(entry, _PART, lines)
    _choose(entry, "role", ROLES, lines)
    _choose(entry, "needs", NEEDS, lines)
    _choose(entry, "take", ("each", *TAKES), lines)
    kept = {key: entry[key] for key in ("each_depth", "role", "needs", "because") if key in entry}
    place = {
        "name": entry.get("name", "the claim"),
        "setup": entry.get("setup", "page"),
        "at": f"{lines.file}, line {lines.first}",
    }
    if "pending" in entry:
        return Part(sql="", depths=(), pending=entry["pending"], **place, **kept)
    relation, depths = _relation(entry, lines), _depths(entry, lines)
    _require_places(entry, relation.name, depths, lines)
    sql = entry["sql"].strip() if "sql" in entry else select(entry, depths, lines)
    return Part(sql=sql, depths=depths, relation=relation, order=tuple(entry.get("order", ())), **place, **kept)


def _relation(entry: dict, lines: Lines) -> Relation:
    name = _choose(entry, "relation", (*NUMBERS, *PROFILES), lines, required=True)
    return Relation(
        name=name,
        region=_region(name, entry, lines),
        take=entry.get("take", "each"),
        logs=entry.get("logs", "over" in entry),
        on_means=entry.get("on_means", False),
    )


def _check(entry: dict, allowed: dict, lines: Lines) -> None:
    for key, value in entry.items():
        if key not in allowed:
            lines.refuse(f"{key} is no key of a claim", f"choose one of {', '.join(allowed)}", key)
        kind = allowed[key]
        right = isinstance(value, (int, float)) and math.isfinite(value) if kind is float else isinstance(value, kind)
        if not right or (kind is float and isinstance(value, bool)):
            lines.refuse(f"{key} is {value!r}", f"it must be a {_KINDS[kind]}", key)


_KINDS = {str: "text in quotes", float: "finite number", bool: "true or false", list: "list", dict: "table"}


def _choose(entry: dict, key: str, allowed: Iterable[str], lines: Lines, required: bool = False) -> str | None:
    value = entry.get(key)
    if value is None and not required:
        return None
    if value not in allowed:
        said = f"{key} is {value!r}" if value is not None else f"{key} is missing"
        lines.refuse(said, f"choose one of {', '.join(allowed)}", key)
    return value


def _depths(entry: dict, lines: Lines) -> tuple[int, ...]:
    depths = entry.get("depths", DEPTHS)
    if not depths or not all(type(depth) is int and depth > 0 for depth in depths):
        lines.refuse(
            f"depths is {depths!r}", "it must be a list of whole numbers from 1, such as [8, 16, 32]", "depths"
        )
    return tuple(sorted(set(depths)))


def _region(relation: str, entry: dict, lines: Lines) -> Region:
    """What a relation allows, from the numbers it needs."""

    def number(key: str) -> float:
        if key not in entry:
            lines.refuse(f"{key} is missing", f"relation {relation!r} needs it. Add {key} = a number", "relation")
        return float(entry[key])

    if relation == "equals":
        return _about(number("value"), entry, lines)
    if relation == "between":
        low, high = number("low"), number("high")
        if low >= high:
            lines.refuse(f"low is {low:g} and high is {high:g}", "low must be below high. Swap them", "low")
        return Region(low=low, high=high, target=(low + high) / 2)
    if relation == "flat":
        return _about(1.0, {"percent": number("percent")}, lines)
    bound = {"at_most": "value", "at_least": "value", "within_factor": "factor"}.get(relation)
    value = number(bound) if bound else 1.0
    upper = relation in ("at_most", "within_factor", "decreases")
    return Region(high=value, target=value) if upper else Region(low=value, target=value)


def _about(value: float, entry: dict, lines: Lines) -> Region:
    if ("margin" in entry) == ("percent" in entry):
        way_out = "'equals' is an equivalence test against a margin. Add margin = 0.05, or percent = 5"
        lines.refuse(
            "margin and percent are both there" if "margin" in entry else "margin is missing", way_out, "relation"
        )
    key = "margin" if "margin" in entry else "percent"
    if entry[key] <= 0:
        lines.refuse(f"{key} is {entry[key]:g}", "it must be above 0: nothing measured is exactly equal", key)
    margin = entry["margin"] if key == "margin" else abs(value) * entry["percent"] / 100
    if not margin:
        lines.refuse("value is 0 and percent is a share of it", "use margin instead", "percent")
    return Region(low=value - margin, high=value + margin, target=value)


def _require_places(entry: dict, relation: str, depths: tuple[int, ...], lines: Lines) -> None:
    """A number taken of several readings needs them along one line: the depths, or the blocks of one depth."""
    one_depth = entry.get("each_depth") or len(depths) == 1 or "sql" in entry
    if ("take" in entry or relation == "ordering") and not (one_depth or is_along_depth(entry)):
        lines.refuse(
            f"blocks of {len(depths)} depths are taken together", "say each_depth = true, or name one depth", "take"
        )
    if relation == "ordering" and len(entry.get("order", ())) < 2:
        lines.refuse("order is missing", "'ordering' needs placements, the largest first. Add order = [..]", "relation")
    if relation in PROFILES and entry.get("take", "each") != "each":
        lines.refuse(
            f"take is {entry['take']!r}", f"relation {relation!r} compares readings themselves. Drop take", "take"
        )
