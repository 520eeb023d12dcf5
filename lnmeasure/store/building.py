"""The writer: a building file beside the published store, cells committed as they come, published by one replace."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import chain
from pathlib import Path

import duckdb

from lnmeasure.records import MEASUREMENT_VERSION, QUANTITIES, Reading, Setting, Setup
from lnmeasure.store.comments import write_comments
from lnmeasure.store.errors import StoreBusy, StoreError
from lnmeasure.store.reader import SCHEMA_VERSION, Store, check_schema, measured_keys

MOST_SEEDS = 1000
_WHOLE = [name for name, quantity in QUANTITIES.items() if not quantity.per_block]
_PER_BLOCK = [name for name, quantity in QUANTITIES.items() if quantity.per_block]
_ORDER = {
    "cell": "setup, placement, init, depth, seed",
    "block_reading": "setup, placement, init, depth, seed, stack, block",
    "setup": "name",
    "registered": "kind, name",
    "refresh": "refresh",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One finished cell: its setting, its readings, when it ended (UTC) and how long it took in seconds."""

    setting: Setting
    readings: list[Reading]
    measured_at: datetime
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Who refreshes: versions and machine. Never part of a cell's key."""

    package: str
    commit: str | None
    torch: str
    python: str
    processor: str
    threads: int


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the store's single-writer lock. StoreBusy, naming the holder, while another process has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_name(f"{path.name}.lock"), "a+", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise StoreError(
            f"The refresh cannot write beside {path}: {error.strerror}. It needs a folder it may write to; "
            "LNMEASURE_STORE names another place for the store."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            raise StoreBusy(
                f"Another refresh of {path} runs (process {lock.read().strip()}). Wait for it, or stop it."
            ) from error
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


class Building:
    """The file a refresh works in. Hold the lock while one exists; a killed refresh's file is taken up again."""

    def __init__(self, path: Path) -> None:
        self.published = Path(path)
        self.path = self.published.with_name(f"{self.published.name}.building")
        self.set_aside = _set_aside(self.published, self.path)
        if not self.path.exists():
            _start(self.published, self.path)
        try:
            self._connection = duckdb.connect(self.path)
            check_schema(self._connection, self.path)
        except (duckdb.Error, StoreError) as error:
            raise StoreError(
                f"{self.path}, left by an earlier refresh, cannot be read ({error}). Move it away and run the "
                "refresh again: the published store is untouched, and cells since then are measured again."
            ) from error
        self._refresh = 0

    def measured_keys(self) -> set[str]:
        """Keys of the cells the building file holds at this MEASUREMENT_VERSION."""
        return measured_keys(self._connection, MEASUREMENT_VERSION)

    def begin(self, who: Provenance, planned: int, reused: int) -> None:
        """Log that a refresh starts. Cells added from now on carry its number."""
        (self._refresh,) = self._connection.execute("SELECT coalesce(max(refresh), 0) + 1 FROM refresh").fetchone()
        self._connection.execute(
            "INSERT INTO refresh VALUES (?, ?, NULL, ?, 0, ?, 0, ?, ?, ?, ?, ?, ?, NULL)",
            [self._refresh, _now(), planned, reused, *astuple(who)],
        )

    def register(self, kind: str, entries: Iterable[tuple[str, str, str, str | None]]) -> None:
        """Keep name, equation, source and unconfirmed of every placement or init (kind), replacing what was there."""
        with self._transaction():
            self._connection.execute("DELETE FROM registered WHERE kind = ?", [kind])
            _insert(self._connection, "registered", [[kind, *entry] for entry in entries])

    def add(self, cell: Measured) -> None:
        """Commit one finished cell, in the place of any earlier measurement of the same setting."""
        setting = cell.setting
        where = [setting.setup.name, setting.placement, setting.init, setting.depth, setting.seed]
        with self._transaction():
            for table in ("cell", "block_reading"):
                self._connection.execute(
                    f"DELETE FROM {table} WHERE (setup, placement, init, depth, seed) = (?, ?, ?, ?, ?)", where
                )
            self._keep_setup(setting.setup)
            row = [setting.key, *where, *_whole_stack(cell), cell.measured_at, MEASUREMENT_VERSION, cell.wall_s]
            _insert(self._connection, "cell", [[*row, self._refresh]])
            _insert(self._connection, "block_reading", [[*where, *row] for row in _by_block(cell.readings)])

    def finish(self, measured: int, failed: int, wall_s: float) -> None:
        """Log how the refresh ended."""
        self._connection.execute(
            "UPDATE refresh SET finished = ?, measured = ?, failed = ?, wall_s = ? WHERE refresh = ?",
            [_now(), measured, failed, wall_s, self._refresh],
        )

    def publish(self, package_version: str, commit: str | None) -> int:
        """Write a sorted, checkpointed copy, check it, and put it in the published store's place. Its generation."""
        ready = self.published.with_name(f"{self.published.name}.publishing")
        ready.unlink(missing_ok=True)
        self._copy_sorted(ready, [_now(), package_version, commit])
        generation = _check(ready)
        ready.chmod(0o444)
        _fsync(ready)
        os.replace(ready, self.published)
        _fsync(self.published.parent)
        self.discard()
        return generation

    def close(self) -> None:
        """Close the building file and leave it for the next refresh."""
        self._connection.close()

    def discard(self) -> None:
        """Close the building file and remove it."""
        self.close()
        for leftover in (self.path, self.path.with_name(f"{self.path.name}.wal")):
            leftover.unlink(missing_ok=True)

    def _copy_sorted(self, ready: Path, published: list[object]) -> None:
        self._connection.execute(f"ATTACH '{_escaped(ready)}' AS ready (STORAGE_VERSION 'v1.2.0')")
        (home,) = self._connection.execute("SELECT current_database()").fetchone()
        self._connection.execute("USE ready")
        with self._transaction():
            self._connection.execute(_schema())
            for table in _tables(self._connection, "ready"):
                order = f" ORDER BY {_ORDER[table]}" if table in _ORDER else ""
                self._connection.execute(f"DELETE FROM ready.{table}")
                self._connection.execute(f'INSERT INTO ready.{table} SELECT * FROM "{home}".{table}{order}')
            self._connection.execute(
                "UPDATE ready.meta SET generation = generation + 1, published_at = ?, package_version = ?, commit = ?",
                published,
            )
            write_comments(self._connection)
        self._connection.execute("CHECKPOINT ready")
        self._connection.execute(f'USE "{home}"')
        self._connection.execute("DETACH ready")

    def _keep_setup(self, setup: Setup) -> None:
        self._connection.execute("DELETE FROM setup WHERE name = ?", [setup.name])
        _insert(self._connection, "setup", [astuple(setup)])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _set_aside(published: Path, path: Path) -> Path | None:
    """Move a building file away that was not begun from the published store as it is now. Where it went, or None.

    Publishing it would undo what has been published since. One that cannot be read stays, for the caller to refuse.
    """
    if not (published.exists() and path.exists()):
        return None
    try:
        connection = duckdb.connect(path)
        (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
        connection.close()
    except duckdb.Error:
        return None
    if generation == Store(published).meta["generation"]:
        return None
    return path.replace(path.with_name(f"{path.name}.of_generation_{generation}"))


def _start(published: Path, path: Path) -> None:
    """Make the building file from the published store, or empty where there is none. Complete or not at all."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    if published.exists():
        Store(published)
        shutil.copyfile(published, draft)
    else:
        connection = duckdb.connect(draft)
        connection.execute(_schema())
        connection.execute("INSERT INTO meta VALUES (?, 0, NULL, NULL, NULL)", [SCHEMA_VERSION])
        _insert(connection, "t_quantile", _t_quantiles())
        connection.close()
    os.replace(draft, path)


def _t_quantiles() -> list[list[object]]:
    """Student's t at 0.975 for 1 to MOST_SEEDS seeds. Imports scipy here: only a new store needs it."""
    from scipy.stats import t as student_t

    return [[n, float(student_t.ppf(0.975, n - 1)) if n > 1 else None] for n in range(1, MOST_SEEDS + 1)]


def _check(path: Path) -> int:
    """Reopen a file that is about to be published and check its invariants. Its generation number."""
    wal = path.with_name(f"{path.name}.wal")
    connection = duckdb.connect(path, read_only=True)
    try:
        check_schema(connection, path)
        for table, key in (("cell", _ORDER["cell"]), ("cell", "key"), ("block_reading", _ORDER["block_reading"])):
            twice = f"SELECT count(*) FROM (SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1)"
            if wal.exists() or connection.execute(twice).fetchone() != (0,):
                raise StoreError(f"{path} would hold rows of {table} twice, so it is not published. This is a defect.")
        return connection.execute("SELECT generation FROM meta").fetchone()[0]
    finally:
        connection.close()


def _whole_stack(cell: Measured) -> list[object]:
    values = {reading.quantity: reading for reading in cell.readings if reading.block is None}
    lost = sorted({r.status for r in cell.readings} - {"ok", "absent"})
    return [values[name].value for name in _WHOLE] + [", ".join(lost) or "ok"]


def _by_block(readings: list[Reading]) -> Iterator[list[object]]:
    rows: dict[tuple[str, int], dict[str, float | None]] = {}
    for reading in readings:
        if reading.block is not None:
            rows.setdefault((reading.stack, reading.block), {})[reading.quantity] = reading.value
    for (stack, block), values in rows.items():
        yield [stack, block, *(values[name] for name in _PER_BLOCK)]


def _tables(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [database]).fetchall()
    return [name for (name,) in rows]


def _schema() -> str:
    return files("lnmeasure.store").joinpath("schema.sql").read_text(encoding="utf-8")


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[Sequence[object]]) -> None:
    """One INSERT of all rows: a statement a row costs a millisecond each."""
    row = f"({', '.join('?' * len(rows[0]))})"
    connection.execute(f"INSERT INTO {table} VALUES {', '.join([row] * len(rows))}", list(chain.from_iterable(rows)))


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
