"""The writer: a building file beside the published store, cells committed as they come, then published."""

from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd

from lnmeasure.records import PathReading, Reading, Setting, Setup
from lnmeasure.store.clock import now
from lnmeasure.store.errors import full_disk_is_said
from lnmeasure.store.files import beside, connect_to_log, remove_database
from lnmeasure.store.publication import publish, require_no_log
from lnmeasure.store.reader import attempts, measured_keys, readings, unpredicted
from lnmeasure.store.rows import by_block, by_path, insert, place, whole_of_paths, whole_stack
from lnmeasure.store.start import take_up_or_start


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One finished cell: its setting, its readings, when it ended (UTC), wall time in seconds, most memory in MB."""

    setting: Setting
    readings: list[Reading] | list[PathReading]
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
        require_no_log(self.published)
        with full_disk_is_said(self.published):
            self.notes = take_up_or_start(self.published, self.path)
            self._connection = connect_to_log(self.path)
        self._refresh = 0

    def measured_keys(self) -> set[str]:
        """Keys of the fully measured cells the building file holds."""
        return measured_keys(self._connection)

    def partly_measured_keys(self) -> set[str]:
        """Keys of the cells that have their whole-stack readings only."""
        return measured_keys(self._connection, in_full=False)

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
        """Keep name, equation, source and unconfirmed of placements or inits (kind), replacing those of the same names.

        Others stay, for cells may: a plugin's are measured by one refresh and unknown to the next.
        """
        rows = [[kind, *entry] for entry in entries]
        with self._transaction():
            for _, name, *_ in rows:
                self._connection.execute("DELETE FROM registered WHERE kind = ? AND name = ?", [kind, name])
            insert(self._connection, "registered", rows)

    def plan(self, grid: str, cells: Iterable[tuple[Setting, str | None]], partly: Set[str] = frozenset()) -> None:
        """Keep what a grid asks for: its settings, each with the reason for which it is skipped, or None.

        partly holds the keys of those of which it asks for the whole-stack readings only.
        """
        rows = [[grid, s.key, *place(s), skipped, s.key not in partly] for s, skipped in cells]
        with self._transaction():
            self._connection.execute("DELETE FROM planned WHERE grid = ?", [grid])
            insert(self._connection, "planned", rows)

    def unpredicted(self, source: str) -> list[tuple[Setting, bool]]:
        """One setting of each setup, placement, init and depth measured that has no prediction of this source."""
        return unpredicted(self._connection, source)

    def predict(
        self, setting: Setting, theory: str, source: str, rows: Iterable[tuple[int | None, str, float]]
    ) -> None:
        """Keep what a theory says of a setting, as (block or None, quantity, value), in the place of what it said."""
        where = place(setting)[:-1]
        said = [[*where, block and "decoder", block, name, theory, source, value] for block, name, value in rows]
        with self._transaction():
            self._connection.execute(
                "DELETE FROM predicted_value WHERE (setup, placement, init, depth, theory) = (?, ?, ?, ?, ?)",
                [*where, theory],
            )
            insert(self._connection, "predicted_value", said)

    def readings(self, statement: str) -> pd.DataFrame:
        """The answer of a query of the ledger. ValueError with DuckDB's reason where it is no such query."""
        return readings(self._connection, statement)

    def judge(self, verdicts: Iterable[list[object]], evidence: Iterable[list[object]]) -> None:
        """Keep what was judged, as rows of the tables verdict and evidence, in the place of all that was kept."""
        with self._transaction():
            for table, rows in (("verdict", verdicts), ("evidence", evidence)):
                self._connection.execute(f"DELETE FROM {table}")
                insert(self._connection, table, rows)

    def add(self, cell: Measured) -> None:
        """Commit one finished cell, in the place of any earlier measurement of the same setting.

        Where a full measurement of this version is there, one of whole-stack quantities only changes nothing.
        """
        setting = cell.setting
        if setting.kind == "paths":
            table, rows, whole = "path_reading", list(by_path(cell.readings)), whole_of_paths(cell.readings)
        else:
            table, rows, whole = "block_reading", list(by_block(cell.readings)), whole_stack(cell.readings)
        if not rows and setting.key in self.measured_keys():
            return
        with self._transaction():
            for table_of_cell in ("cell", table):
                self._connection.execute(
                    f"DELETE FROM {table_of_cell} WHERE (setup, placement, init, depth, seed) = (?, ?, ?, ?, ?)",
                    place(setting),
                )
            self._connection.execute("DELETE FROM failure WHERE key = ?", [setting.key])
            self._keep_setup(setting.setup)
            made = [cell.measured_at, setting.version, cell.wall_s, self._refresh, bool(rows), cell.peak_mb]
            insert(self._connection, "cell", [[setting.key, *place(setting), *whole, *made, setting.kind]])
            insert(self._connection, table, [[*place(setting), *row] for row in rows])

    def fail(self, cell: Failed) -> None:
        """Commit that a cell failed, adding to its earlier attempts."""
        tried = self.attempts().get(cell.setting.key, 0) + cell.attempts
        with self._transaction():
            self._connection.execute("DELETE FROM failure WHERE key = ?", [cell.setting.key])
            row = [cell.setting.key, *place(cell.setting), tried, cell.reason, now(), self._refresh]
            insert(self._connection, "failure", [row])

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

    def _keep_setup(self, setup: Setup) -> None:
        self._connection.execute("DELETE FROM setup WHERE name = ?", [setup.name])
        insert(self._connection, "setup", [astuple(setup)])

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
