"""How a building file begins: taken up from a refresh that was cut off, or made from the published store."""

import shutil
from pathlib import Path

import duckdb

from lnmeasure.store.errors import StoreBusy, StoreError, no_space
from lnmeasure.store.files import beside, connect_to_log, remove_database
from lnmeasure.store.reader import Store
from lnmeasure.store.rows import insert
from lnmeasure.store.shape import SCHEMA_VERSION, create, end_migration, migrate

MOST_SEEDS = 1000


def take_up_or_start(published: Path, building: Path) -> list[str]:
    """Have a building file that goes on from the published store. What was found and done, for people.

    One that cannot be read, or was begun from another publication, is set aside. StoreBusy where a program holds it.
    """
    notes: list[str] = []
    end_migration(building)
    if building.is_symlink() or (building.exists() and not building.is_file()):
        notes.append(f"{building.name} is a link, a folder or a pipe, not a file of an earlier refresh.")
        _set_aside(building, notes)
    elif building.exists() and not _can_go_on(published, building, notes):
        _set_aside(building, notes)
    if not building.exists():
        _start(published, building)
    return notes


def tidy(published: Path) -> None:
    """Remove the building file of a refresh that was killed right after it published. Hold the lock."""
    end_migration(beside(published, "building"))
    if beside(published, "building").exists():
        _can_go_on(published, beside(published, "building"), notes=[])


def _can_go_on(published: Path, building: Path, notes: list[str]) -> bool:
    """Whether the building file found can be read and was begun from the store as it is published now.

    One whose cells are all published is removed.
    """
    if _is_half_aside(building):
        notes.append(f"{building.name} was being set aside by a refresh that was cut off.")
        return False
    try:
        if migrate(building):
            notes.append(f"{building.name}: brought to schema version {SCHEMA_VERSION}.")
        theirs, cells = _identity_and_cells(building)
    except (duckdb.Error, StoreError) as error:
        if no_space(error):
            raise
        _require_reachable(building, error)
        notes.append(f"{building.name}, left by an earlier refresh, cannot be read.")
        return False
    if not published.exists():
        return True
    store = Store(published)
    if theirs == tuple(store.meta[name] for name in _IDENTITY):
        return True
    if cells <= set(store.query(_CELLS).itertuples(index=False, name=None)):
        remove_database(building)
        return True
    notes.append(f"{building.name} was begun from another publication of the store.")
    return False


_IDENTITY = ("generation", "published_at", "commit")
_CELLS = "SELECT key, measured_at::VARCHAR FROM cell"


def _identity_and_cells(building: Path) -> tuple[tuple[object, ...], set[tuple[str, str]]]:
    connection = connect_to_log(building)
    try:
        meta = connection.execute(f"SELECT {', '.join(_IDENTITY)} FROM meta").fetchone()
        return meta, set(connection.execute(_CELLS).fetchall())
    finally:
        connection.close()


def _require_reachable(building: Path, error: Exception) -> None:
    """StoreBusy where the building file is only out of reach, not damaged."""
    if isinstance(error, duckdb.IOException) and str(error).startswith(
        ("IO Error: Could not set lock", "IO Error: Cannot open file")
    ):
        raise StoreBusy(
            f"{building} cannot be opened: some other program holds it, or its permissions forbid it. Close that "
            "program or mend the permissions, and run the same command again."
        ) from error


def _set_aside(building: Path, notes: list[str]) -> None:
    """Move a building file away that cannot be used. Nothing is lost by it but time."""
    kept = _next_aside(building)
    if beside(building, "wal").exists():  # the log first: a file that lies alone is seen to be half aside
        beside(building, "wal").replace(beside(kept, "wal"))
    building.replace(kept)
    notes.append(f"It is kept as {kept.name}, and its cells are measured again from the published store.")


def _next_aside(building: Path) -> Path:
    number = next(n for n in range(1, 10**6) if not beside(building, f"aside_{n}").exists())
    return beside(building, f"aside_{number}")


def _is_half_aside(building: Path) -> bool:
    """Whether the log of the building file, with all that was committed, has been moved away, but not yet the file."""
    return beside(_next_aside(building), "wal").exists() and not beside(building, "wal").exists()


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
        insert(connection, "t_quantile", _t_quantiles())
        connection.close()
    beside(path, "wal").unlink(missing_ok=True)  # of a building file that was removed halfway
    draft.replace(path)


def _t_quantiles() -> list[list[object]]:
    """Student's t at 0.975 for 1 to MOST_SEEDS seeds. Imports scipy here: only a new store needs it."""
    from scipy.stats import t as student_t

    return [[n, float(student_t.ppf(0.975, n - 1)) if n > 1 else None] for n in range(1, MOST_SEEDS + 1)]
