"""Readers: a published store opened read-only on a private copy, so that nobody waits for anybody."""

import hashlib
import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

import duckdb
import pandas as pd

from lnmeasure.store.comments import VIEWS
from lnmeasure.store.errors import StoreError, StoreMissing

SCHEMA_VERSION = 2
SHIPPED = Path(__file__).resolve().parents[2] / "data" / "lnmeasure.duckdb"

_HARDENED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "memory_limit": "1GB",
    "threads": 2,
}


def store_path() -> Path:
    """$LNMEASURE_STORE, or data/lnmeasure.duckdb of the checkout."""
    return Path(os.environ.get("LNMEASURE_STORE") or SHIPPED)


def sql(question: str) -> str:
    """The text of queries/<question>.sql, one SELECT whose first line says what one row is."""
    return files("lnmeasure.store").joinpath("queries", f"{question}.sql").read_text(encoding="utf-8")


class Store:
    """A snapshot of the published store at path; digest names its content. StoreError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._connection, self.digest = _open_copy(self.path)
        self._connection.execute("SET lock_configuration = true")
        self.meta = self._one_row("SELECT * FROM meta")

    def ask(self, question: str, **parameters: object) -> pd.DataFrame:
        """The answer of queries/<question>.sql to named parameters. Safe to call from several threads."""
        return self.query(sql(question), parameters)

    def query(self, statement: str, parameters: dict[str, object] | None = None) -> pd.DataFrame:
        """The answer of one statement of our own; never a visitor's."""
        return self._connection.cursor().execute(statement, parameters or {}).df()

    def measured_keys(self, version: int) -> set[str]:
        """Keys of the cells that hold a full measurement of this MEASUREMENT_VERSION."""
        return measured_keys(self._connection.cursor(), version)

    def _one_row(self, statement: str) -> dict[str, object]:
        cursor = self._connection.cursor().execute(statement)
        return dict(zip([column[0] for column in cursor.description], cursor.fetchall()[0], strict=True))


def measured_keys(connection: duckdb.DuckDBPyConnection, version: int) -> set[str]:
    """Keys of the measured cells a connection sees."""
    rows = connection.execute("SELECT key FROM cell WHERE measurement_version = ?", [version]).fetchall()
    return {key for (key,) in rows}


def check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """StoreError unless the connection's database is a store of this schema version."""
    there = {name for (name,) in connection.execute(_NAMES).fetchall()}
    if lacking := sorted({"cell", "block_reading", *VIEWS} - there):
        raise StoreError(
            f"{path} is a DuckDB file, but not an lnmeasure store: it lacks {', '.join(lacking)}. {_WAY_OUT}"
        )
    versions = [version for (version,) in connection.execute("SELECT schema_version FROM meta").fetchall()]
    if versions != [SCHEMA_VERSION]:
        raise StoreError(
            f"{path} has schema version {', '.join(map(str, versions)) or 'unknown'}, and this lnmeasure reads version "
            f"{SCHEMA_VERSION}. Install the lnmeasure that made it, or: {_WAY_OUT}"
        )


_NAMES = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
_WAY_OUT = (
    "Point LNMEASURE_STORE at a store, bring the shipped one back with 'git checkout data/lnmeasure.duckdb', or move "
    "the file away and run 'make refresh' to measure a new one."
)


def _read_everything(connection: duckdb.DuckDBPyConnection) -> None:
    """Scan every row: a file cut short or with a flipped bit can open, and must not fail a visitor later."""
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        connection.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()


def _open_copy(path: Path) -> tuple[duckdb.DuckDBPyConnection, str]:
    try:
        if not path.exists():
            raise StoreMissing(f"There is no store at {path}. {_WAY_OUT}")
        if not path.is_file():
            raise StoreError(f"{path} is not a file, so it cannot be a store. {_WAY_OUT}")
        return _open_file(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Check its permissions. {_WAY_OUT}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path} cannot be opened as a DuckDB file: it is damaged or foreign. {_WAY_OUT}") from error


def _open_file(path: Path) -> tuple[duckdb.DuckDBPyConnection, str]:
    with tempfile.TemporaryDirectory(prefix="lnmeasure-") as folder:
        copy = Path(folder) / "store.duckdb"
        shutil.copyfile(path, copy)
        with copy.open("rb") as content:
            digest = hashlib.file_digest(content, "blake2b").hexdigest()
        connection = duckdb.connect(copy, read_only=True, config=_HARDENED)
        check_schema(connection, path)
        _read_everything(connection)
    return connection, digest
