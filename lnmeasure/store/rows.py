"""How a cell becomes rows of the tables."""

from collections.abc import Iterator, Sequence
from itertools import chain

import duckdb

from lnmeasure.records import QUANTITIES, PathReading, Reading, Setting

FLOAT_MAX = 3.4028234663852886e38
_HALF_OF_LEAST_FLOAT = 2.0**-150
_WHOLE = [name for name, quantity in QUANTITIES.items() if not quantity.per_block]
_PER_BLOCK = [name for name, quantity in QUANTITIES.items() if quantity.per_block]


def place(setting: Setting) -> list[object]:
    """The columns that say which cell a row belongs to: setup, placement, init, depth, seed."""
    return [setting.setup.name, setting.placement, setting.init, setting.depth, setting.seed]


def whole_stack(readings: list[Reading]) -> list[object]:
    """A cell's whole-stack values, and its status: ok, or why one of its readings is null."""
    stored = {reading.quantity: _stored(reading)[0] for reading in readings if reading.block is None}
    lost = sorted({_stored(reading)[1] for reading in readings} - {"ok", "absent"})
    return [stored[name] for name in _WHOLE] + [", ".join(lost) or "ok"]


def by_block(readings: list[Reading]) -> Iterator[list[object]]:
    """One row per stack and block, of every per-block value."""
    rows: dict[tuple[str, int], dict[str, float | None]] = {}
    for reading in readings:
        if reading.block is not None:
            rows.setdefault((reading.stack, reading.block), {})[reading.quantity] = _stored(reading)[0]
    for (stack, block), values in rows.items():
        yield [stack, block, *(values[name] for name in _PER_BLOCK)]


def whole_of_paths(readings: list[PathReading]) -> list[object]:
    """What a cell of paths has in the place of whole-stack values, and its status."""
    lost = any(reading.square is None for reading in readings)
    return [None for _ in _WHOLE] + ["overflow" if lost else "ok"]


def by_path(readings: list[PathReading]) -> Iterator[list[object]]:
    """One row per pair of blocks."""
    for one in readings:
        numbers = [_fitting(value) for value in (one.square, one.square_se, one.trace, one.trace_se)]
        yield [one.from_block, one.to_block, one.n_probes, *numbers]


def _fitting(value: float | None) -> float | None:
    return None if value is None or abs(value) > FLOAT_MAX else value


def _stored(reading: Reading) -> tuple[float | None, str]:
    """A reading's value and status as a FLOAT can hold them: one beyond its range is null, and says so."""
    if reading.value and abs(reading.value) > FLOAT_MAX:
        return None, "overflow"
    if reading.value and abs(reading.value) <= _HALF_OF_LEAST_FLOAT:
        return None, "underflow"
    return reading.value, reading.status


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[Sequence[object]]) -> None:
    """Many rows an INSERT: a statement a row costs a millisecond each."""
    for chunk in (rows[start : start + 500] for start in range(0, len(rows), 500)):
        row = f"({', '.join('?' * len(chunk[0]))})"
        values = list(chain.from_iterable(chunk))
        connection.execute(f"INSERT INTO {table} VALUES {', '.join([row] * len(chunk))}", values)
