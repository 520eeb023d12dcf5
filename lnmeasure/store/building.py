"""The writer: a building file beside the published store, cells committed as they come, then published."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

import duckdb

from lnmeasure.records import MEASUREMENT_VERSION, QUANTITIES, Reading, Setting, Setup
from lnmeasure.store.clock import now
from lnmeasure.store.errors import StoreError, full_disk_is_said, no_space
from lnmeasure.store.files import beside, remove_database
from lnmeasure.store.publication import publish, require_no_log
from lnmeasure.store.reader import Store, attempts, measured_keys
from lnmeasure.store.shape import SCHEMA_VERSION, create, migrate

MOST_SEEDS = 1000
FLOAT_MAX = 3.4028234663852886e38
_FLOAT_HALF_OF_LEAST = 2.0**-150
_WHOLE = [name for name, quantity in QUANTITIES.items() if not quantity.per_block]
_PER_BLOCK = [name for name, quantity in QUANTITIES.items() if quantity.per_block]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One finished cell: its setting, its readings, when it ended (UTC), wall time in seconds, most memory in MB."""

    setting: Setting
    readings: list[Reading]
    measured_at: datetime
    wall_s: float
    peak_mb: float | None = None


@dataclass(frozen=True, kw_only=True)
class Failed:
    """One cell that raised an error or killed its process: why, and how often it was tried this time."""

    setting: Setting
    reason: str
    attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Who refreshes: versions and machine. Never part of a cell's key."""

    package: str
    commit: str | None
    torch: str
    python: str
    processor: str
    threads: int


class Building:
    """The file a refresh works in. Hold the lock while one exists; a killed refresh's file is taken up again.

    notes says, for people, what was found and what was done about it.
    """

    def __init__(self, path: Path) -> None:
        self.published = Path(path)
        self.path = beside(self.published, "building")
        self.notes: list[str] = []
        require_no_log(self.published)
        with full_disk_is_said(self.published):
            if self.path.exists() and not self._can_go_on():
                self._set_aside()
            if not self.path.exists():
                _start(self.published, self.path)
            self._connection = duckdb.connect(self.path)
        self._refresh = 0

    def measured_keys(self) -> set[str]:
        """Keys of the fully measured cells the building file holds at this MEASUREMENT_VERSION."""
        return measured_keys(self._connection, MEASUREMENT_VERSION)

    def attempts(self) -> dict[str, int]:
        """How often each failed cell was tried, by key."""
        return attempts(self._connection)

    def begin(self, who: Provenance, planned: int, reused: int) -> None:
        """Log that a refresh starts. Cells added from now on carry its number; one that was cut off gets its count."""
        with self._transaction():
            self._connection.execute(
                "UPDATE refresh SET measured = (SELECT count(*) FROM cell WHERE cell.refresh = refresh.refresh) "
                "WHERE finished IS NULL"
            )
            (self._refresh,) = self._connection.execute("SELECT coalesce(max(refresh), 0) + 1 FROM refresh").fetchone()
            self._connection.execute(
                "INSERT INTO refresh VALUES (?, ?, NULL, ?, 0, ?, 0, ?, ?, ?, ?, ?, ?, NULL)",
                [self._refresh, now(), planned, reused, *astuple(who)],
            )

    def register(self, kind: str, entries: Iterable[tuple[str, str, str, str | None]]) -> None:
        """Keep name, equation, source and unconfirmed of every placement or init (kind), replacing what was there."""
        with self._transaction():
            self._connection.execute("DELETE FROM registered WHERE kind = ?", [kind])
            _insert(self._connection, "registered", [[kind, *entry] for entry in entries])

    def plan(self, grid: str, cells: Iterable[tuple[Setting, str | None]]) -> None:
        """Keep what a grid asks for: its settings, each with the reason for which it is skipped, or None."""
        with self._transaction():
            self._connection.execute("DELETE FROM planned WHERE grid = ?", [grid])
            _insert(self._connection, "planned", [[grid, s.key, *_place(s), skipped] for s, skipped in cells])

    def add(self, cell: Measured) -> None:
        """Commit one finished cell, in the place of any earlier measurement of the same setting.

        Where a full measurement of this version is there, one of whole-stack quantities only changes nothing.
        """
        setting, blocks = cell.setting, list(_by_block(cell.readings))
        if not blocks and setting.key in self.measured_keys():
            return
        with self._transaction():
            for table in ("cell", "block_reading"):
                self._connection.execute(
                    f"DELETE FROM {table} WHERE (setup, placement, init, depth, seed) = (?, ?, ?, ?, ?)",
                    _place(setting),
                )
            self._connection.execute("DELETE FROM failure WHERE key = ?", [setting.key])
            self._keep_setup(setting.setup)
            made = [cell.measured_at, MEASUREMENT_VERSION, cell.wall_s, self._refresh, bool(blocks), cell.peak_mb]
            _insert(self._connection, "cell", [[setting.key, *_place(setting), *_whole_stack(cell.readings), *made]])
            _insert(self._connection, "block_reading", [[*_place(setting), *row] for row in blocks])

    def fail(self, cell: Failed) -> None:
        """Commit that a cell failed, adding to its earlier attempts."""
        tried = self.attempts().get(cell.setting.key, 0) + cell.attempts
        with self._transaction():
            self._connection.execute("DELETE FROM failure WHERE key = ?", [cell.setting.key])
            row = [cell.setting.key, *_place(cell.setting), tried, cell.reason, now(), self._refresh]
            _insert(self._connection, "failure", [row])

    def finish(self, measured: int, failed: int, wall_s: float) -> None:
        """Log how the refresh ended."""
        with self._transaction():
            self._connection.execute(
                "UPDATE refresh SET finished = ?, measured = ?, failed = ?, wall_s = ? WHERE refresh = ?",
                [now(), measured, failed, wall_s, self._refresh],
            )

    def publish(self, package_version: str, commit: str | None) -> int:
        """Publish what the building file holds, and remove it. The generation."""
        generation = publish(self._connection, self.published, package_version, commit)
        self.discard()
        return generation

    def close(self) -> None:
        """Close the building file and leave it for the next refresh."""
        self._connection.close()

    def discard(self) -> None:
        """Close the building file and remove it."""
        self.close()
        remove_database(self.path)

    def _can_go_on(self) -> bool:
        """Whether the building file found can be read and was begun from the store as it is published now."""
        try:
            if migrate(self.path):
                self.notes.append(f"{self.path.name}: brought to schema version {SCHEMA_VERSION}.")
            theirs, cells = _identity_and_cells(self.path)
        except (duckdb.Error, StoreError) as error:
            if no_space(error):
                raise
            self._require_ours(error)
            self.notes.append(f"{self.path.name}, left by an earlier refresh, cannot be read.")
            return False
        if not self.published.exists():
            return True
        store = Store(self.published)
        if theirs == _identity(store.meta):
            return True
        if cells <= set(store.query(_CELLS).itertuples(index=False, name=None)):
            remove_database(self.path)  # killed between the replace and this
            return True
        self.notes.append(f"{self.path.name} was begun from another publication of the store.")
        return False

    def _require_ours(self, error: Exception) -> None:
        """StoreError where the building file is only out of reach, not damaged."""
        if isinstance(error, duckdb.IOException) and ("lock" in str(error) or "Permission denied" in str(error)):
            raise StoreError(
                f"{self.path} cannot be opened: some other program holds it, or its permissions forbid it. Close that "
                "program or mend the permissions, and run the same command again."
            ) from error

    def _set_aside(self) -> None:
        """Move a building file away that cannot be used. Nothing is lost by it but time."""
        number = next(n for n in range(1, 10**6) if not beside(self.path, f"aside_{n}").exists())
        kept = beside(self.path, f"aside_{number}")
        self.path.replace(kept)
        if beside(self.path, "wal").exists():
            beside(self.path, "wal").replace(beside(kept, "wal"))
        self.notes.append(f"It is kept as {kept.name}, and its cells are measured again from the published store.")

    def _keep_setup(self, setup: Setup) -> None:
        self._connection.execute("DELETE FROM setup WHERE name = ?", [setup.name])
        _insert(self._connection, "setup", [astuple(setup)])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with full_disk_is_said(self.published):
            self._connection.execute("BEGIN")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _start(published: Path, path: Path) -> None:
    """Make the building file from the published store, or empty where there is none. Complete or not at all."""
    draft = beside(path, "draft")
    remove_database(draft)
    if published.exists():
        Store(published)
        shutil.copyfile(published, draft)
        migrate(draft)
    else:
        connection = duckdb.connect(draft)
        create(connection)
        connection.execute("INSERT INTO meta VALUES (?, 0, NULL, NULL, NULL)", [SCHEMA_VERSION])
        _insert(connection, "t_quantile", _t_quantiles())
        connection.close()
    draft.replace(path)


_CELLS = "SELECT key, measured_at::VARCHAR FROM cell"


def _identity_and_cells(path: Path) -> tuple[tuple[object, ...], set[tuple[str, str]]]:
    connection = duckdb.connect(path)
    try:
        meta = connection.execute("SELECT generation, published_at, commit FROM meta").fetchone()
        return meta, set(connection.execute(_CELLS).fetchall())
    finally:
        connection.close()


def _identity(meta: dict[str, object]) -> tuple[object, ...]:
    return meta["generation"], meta["published_at"], meta["commit"]


def _t_quantiles() -> list[list[object]]:
    """Student's t at 0.975 for 1 to MOST_SEEDS seeds. Imports scipy here: only a new store needs it."""
    from scipy.stats import t as student_t

    return [[n, float(student_t.ppf(0.975, n - 1)) if n > 1 else None] for n in range(1, MOST_SEEDS + 1)]


def _place(setting: Setting) -> list[object]:
    return [setting.setup.name, setting.placement, setting.init, setting.depth, setting.seed]


def _whole_stack(readings: list[Reading]) -> list[object]:
    stored = {reading.quantity: _stored(reading)[0] for reading in readings if reading.block is None}
    lost = sorted({_stored(reading)[1] for reading in readings} - {"ok", "absent"})
    return [stored[name] for name in _WHOLE] + [", ".join(lost) or "ok"]


def _by_block(readings: list[Reading]) -> Iterator[list[object]]:
    rows: dict[tuple[str, int], dict[str, float | None]] = {}
    for reading in readings:
        if reading.block is not None:
            rows.setdefault((reading.stack, reading.block), {})[reading.quantity] = _stored(reading)[0]
    for (stack, block), values in rows.items():
        yield [stack, block, *(values[name] for name in _PER_BLOCK)]


def _stored(reading: Reading) -> tuple[float | None, str]:
    """A reading's value and status as a FLOAT can hold them: one beyond its range is null, and says so."""
    if reading.value and abs(reading.value) > FLOAT_MAX:
        return None, "overflow"
    if reading.value and abs(reading.value) <= _FLOAT_HALF_OF_LEAST:
        return None, "underflow"
    return reading.value, reading.status


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[Sequence[object]]) -> None:
    """Many rows an INSERT: a statement a row costs a millisecond each."""
    for chunk in (rows[start : start + 500] for start in range(0, len(rows), 500)):
        row = f"({', '.join('?' * len(chunk[0]))})"
        values = list(chain.from_iterable(chunk))
        connection.execute(f"INSERT INTO {table} VALUES {', '.join([row] * len(chunk))}", values)
