"""The shape of a store: its schema, its version, and how a file of an older version becomes one of this version."""

import shutil
from dataclasses import astuple, dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import duckdb

from lnmeasure.store.comments import VIEWS, write_comments
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside, connect_to_log, remove_database

SCHEMA_VERSION = 6
WAY_OUT = (
    "Point LNMEASURE_STORE at a store, bring the shipped one back with 'git checkout HEAD data', or move the file away "
    "and run 'make refresh' to measure a new one."
)
ORDER = {
    "cell": "setup, placement, init, depth, seed",
    "block_reading": "setup, placement, init, depth, seed, stack, block",
    "planned": "grid, setup, placement, init, depth, seed",
    "failure": "setup, placement, init, depth, seed",
    "setup": "name",
    "registered": "kind, name",
    "refresh": "refresh",
    "predicted_value": "setup, placement, init, depth, stack, block, quantity, theory",
    "path_reading": "setup, placement, init, depth, seed, from_block, to_block",
    "training_step": "placement, init, depth, optimiser, max_lr, warmup, seed, step",
    "training_block": "placement, init, depth, optimiser, max_lr, warmup, seed, step, stack, block",
    "verdict": "claim_id",
    "evidence": "claim_id, part, setup",
}
"""How the rows of each table lie in a published file: a reader of one setup, placement and init touches few blocks."""
_MADE_BY_SCHEMA = ("meta", "slope_depth")


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make empty tables, views and macros in the connection's current database."""
    connection.execute(files("lnmeasure.store").joinpath("schema.sql").read_text(encoding="utf-8"))


def version_of(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Schema version of the connection's database, path being what a message names. StoreError unless 1 to current."""
    there = {name for (name,) in connection.execute(_NAMES).fetchall()}
    if lacking := sorted({"cell", "block_reading", "meta"} - there):
        raise StoreError(
            f"{path} is a DuckDB file, but not an lnmeasure store: it lacks {', '.join(lacking)}. {WAY_OUT}"
        )
    versions = [version for (version,) in connection.execute("SELECT schema_version FROM meta").fetchall()]
    if len(versions) != 1 or versions[0] not in range(1, SCHEMA_VERSION + 1):
        raise StoreError(
            f"{path} has schema version {', '.join(map(str, versions)) or 'unknown'}, and this lnmeasure reads "
            f"versions 1 to {SCHEMA_VERSION}. Install the lnmeasure that made it, or: {WAY_OUT}"
        )
    if versions == [SCHEMA_VERSION] and (lacking := sorted({*VIEWS, *ORDER, "t_quantile", "slope_depth"} - there)):
        raise StoreError(f"{path} is not a complete lnmeasure store: it lacks {', '.join(lacking)}. {WAY_OUT}")
    return versions[0]


_NAMES = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a publication writes into meta, beside the next generation number."""

    published_at: datetime
    package_version: str
    commit: str | None


def copy_sorted(connection: duckdb.DuckDBPyConnection, target: Path, stamp: Stamp | None = None) -> None:
    """Write every row of the connection's database, sorted, into a new file of this schema that DuckDB 1.2 can open.

    With a stamp the copy is the next generation, without one the same.
    """
    connection.execute(f"ATTACH '{_escaped(target)}' AS fresh_copy (STORAGE_VERSION 'v1.2.0')")
    (home,) = connection.execute("SELECT current_database()").fetchone()
    theirs = _tables(connection, home)
    connection.execute("USE fresh_copy")
    connection.execute("BEGIN")
    create(connection)
    for table in _tables(connection, "fresh_copy"):
        if table in theirs and table not in _MADE_BY_SCHEMA:
            order = f" ORDER BY {ORDER[table]}" if table in ORDER else ""
            connection.execute(f'INSERT INTO fresh_copy.{table} BY NAME SELECT * FROM "{home}".{table}{order}')
    connection.execute(
        f'INSERT INTO fresh_copy.meta SELECT ?, generation, published_at, package_version, commit FROM "{home}".meta',
        [SCHEMA_VERSION],
    )
    if stamp:
        connection.execute(
            "UPDATE meta SET generation = generation + 1, published_at = ?, package_version = ?, commit = ?",
            [*astuple(stamp)],
        )
    write_comments(connection)
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT fresh_copy")
    connection.execute(f'USE "{home}"')
    connection.execute("DETACH fresh_copy")


def migrate(path: Path) -> bool:
    """Bring a file that nobody else holds, with its log, to this schema version. Whether it was older.

    The steps are taken in a copy: a kill half way leaves the file as it was, with every row of it. Once the migrated
    file is whole, end_migration has it take the old one's place, now or after a kill.
    """
    connection = connect_to_log(path)
    try:
        version = version_of(connection, path)
    finally:
        connection.close()
    if version == SCHEMA_VERSION:
        return False
    copy, fresh = beside(path, "migrated_copy"), beside(path, "migrating")
    remove_database(copy)
    remove_database(fresh)
    shutil.copyfile(path, copy)
    if beside(path, "wal").exists():
        shutil.copyfile(beside(path, "wal"), beside(copy, "wal"))
    _take_steps(copy, version, fresh)
    remove_database(copy)
    fresh.replace(beside(path, "migrated"))
    end_migration(path)
    return True


def end_migration(path: Path) -> None:
    """Have a migrated file that is whole take the place of the file, and of the log, that it was made from."""
    if beside(path, "migrated").exists():
        beside(path, "wal").unlink(missing_ok=True)
        beside(path, "migrated").replace(path)


def _take_steps(path: Path, version: int, fresh: Path) -> None:
    """Run the migrations above a version in a file, and write what they make of it into a fresh one."""
    connection = duckdb.connect(path)
    try:
        for step in range(version + 1, SCHEMA_VERSION + 1):
            connection.execute("BEGIN")
            script = files("lnmeasure.store").joinpath("migrations", f"{step:04}.sql")
            connection.execute(script.read_text(encoding="utf-8"))
            connection.execute("UPDATE meta SET schema_version = ?", [step])
            connection.execute("COMMIT")
        copy_sorted(connection, fresh)
    finally:
        connection.close()


def _tables(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [database]).fetchall()
    return [name for (name,) in rows]


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")
