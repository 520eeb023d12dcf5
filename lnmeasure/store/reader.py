"""Readers: a published store opened read-only on a private copy, so that nobody waits for anybody."""

import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa

from lnmeasure.records import Setting, Setup
from lnmeasure.store.errors import StoreError, StoreMissing, StorePathError, StoreShort, full_disk_is_said, runs_short
from lnmeasure.store.files import beside
from lnmeasure.store.invariants import broken_invariants, redefined
from lnmeasure.store.record import Publication, publication_of, recorded
from lnmeasure.store.shape import SCHEMA_VERSION, WAY_OUT, migrate, version_of

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "lnmeasure.duckdb"
MOST_ATTEMPTS = 3
"""How often a cell is tried at one version before only --retry-failed tries it again."""

_HARDENED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "memory_limit": "1GB",
    "threads": 2,
    "max_execution_time": 60_000,
}


def store_path() -> Path:
    """$LNMEASURE_STORE, or data/lnmeasure.duckdb of the checkout. A link is followed: its target is what is replaced.

    StorePathError where no store can be there.
    """
    named = os.environ.get("LNMEASURE_STORE") or str(SHIPPED)
    try:
        path = Path(named).expanduser().resolve()
    except (RuntimeError, OSError, ValueError) as error:
        raise StorePathError(f"LNMEASURE_STORE is {named!r}, which is no path: {error}. Name a file.") from error
    if not path.name or "?" in str(path):  # DuckDB takes what follows a question mark for options
        raise StorePathError(f"LNMEASURE_STORE is {named!r}: it must name a file, by a path without '?'.")
    return path


def sql(question: str) -> str:
    """The text of queries/<question>.sql, one SELECT whose first line says what one row is."""
    return files("lnmeasure.store").joinpath("queries", f"{question}.sql").read_text(encoding="utf-8")


def examples() -> dict[str, str]:
    """Queries for analysts to begin with, by name, in order: each one SELECT that runs as it stands."""
    folder = files("lnmeasure.store").joinpath("examples")
    queries = sorted(folder.iterdir(), key=str)
    return {query.name.removesuffix(".sql"): query.read_text(encoding="utf-8") for query in queries}


class Store:
    """A snapshot of the published store at path. StoreError where it cannot be read or is not what was published.

    digest names its content; older says that the file has an older schema, which this snapshot has been brought to.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._connection, self.content, self.older = _open_copy(self.path)
        self._connection.execute("SET lock_configuration = true")
        self.meta = self._one_row("SELECT * FROM meta")

    @property
    def digest(self) -> str:
        """blake2b of the published file."""
        return self.content.blake2b

    def ask(self, question: str, **parameters: object) -> pd.DataFrame:
        """The answer of queries/<question>.sql to named parameters. Safe to call from several threads."""
        return self.query(sql(question), parameters)

    def query(self, statement: str, parameters: dict[str, object] | None = None) -> pd.DataFrame:
        """The answer of one statement of our own; never a visitor's."""
        return self._connection.cursor().execute(statement, parameters or {}).df()

    def readings(self, statement: str) -> pd.DataFrame:
        """The answer of a query from a file of claims. ValueError with DuckDB's reason where it is no such query."""
        return readings(self._connection.cursor(), statement)

    def batches(self, view: str) -> pa.RecordBatchReader:
        """All rows of one contract view, a batch at a time."""
        return self._connection.cursor().sql(f"SELECT * FROM {view}").to_arrow_reader()

    def comments(self, view: str) -> dict[str, str]:
        """Definition and unit of every column of a contract view."""
        rows = self.query("SELECT column_name, comment FROM duckdb_columns() WHERE table_name = $view", {"view": view})
        return dict(rows.itertuples(index=False, name=None))

    def measured_keys(self) -> set[str]:
        """Keys of the cells that hold a full measurement. A key names the version too: one of another is no cell's."""
        return measured_keys(self._connection.cursor())

    def partly_measured_keys(self) -> set[str]:
        """Keys of the cells that hold their whole-stack readings only."""
        return measured_keys(self._connection.cursor(), in_full=False)

    def unpredicted(self, source: str) -> list[tuple[Setting, bool]]:
        """One setting of each setup, placement, init and depth that has no prediction of this source."""
        return unpredicted(self._connection.cursor(), source)

    def judged(self) -> tuple[list[tuple], list[tuple]]:
        """The rows of claim_verdict and of claim_evidence."""
        cursor = self._connection.cursor()
        verdicts, evidence = (cursor.execute(f"FROM {view}").fetchall() for view in ("claim_verdict", "claim_evidence"))
        return verdicts, evidence

    def attempts(self) -> dict[str, int]:
        """How often each failed cell was tried, by key."""
        return attempts(self._connection.cursor())

    def planned(self) -> set[tuple[str, str, str | None, bool]]:
        """What grids asked for when the store was published: grid, key, reason for skipping, whether all readings."""
        return set(self._connection.cursor().execute('SELECT grid, key, skipped, "full" FROM planned').fetchall())

    def broken_invariants(self) -> list[str]:
        """In words, every rule the store breaks: about its rows, and about its views where our DuckDB wrote them."""
        cursor = self._connection.cursor()
        entry = recorded(self.path).get(self.meta["generation"])
        ours = entry is not None and entry.duckdb == duckdb.__version__ and not self.older
        return broken_invariants(cursor) + (redefined(cursor) if ours else [])

    def _one_row(self, statement: str) -> dict[str, object]:
        cursor = self._connection.cursor().execute(statement)
        return dict(zip([column[0] for column in cursor.description], cursor.fetchall()[0], strict=True))


def readings(connection: duckdb.DuckDBPyConnection, statement: str) -> pd.DataFrame:
    """The answer of one SELECT. ValueError where it is none, or DuckDB cannot answer it."""
    try:
        parsed = duckdb.extract_statements(statement)
        if [one.type for one in parsed] != [duckdb.StatementType.SELECT]:
            raise ValueError("it is not one SELECT")
        return connection.execute(parsed[0]).df()
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def unpredicted(connection: duckdb.DuckDBPyConnection, source: str) -> list[tuple[Setting, bool]]:
    """One setting of each setup, placement, init and depth measured that has no prediction of this source, any seed.

    With each, whether its blocks are measured too.
    """
    described = connection.execute("SELECT * FROM setup").df().to_dict("records")
    setups = {row["name"]: Setup(**row) for row in described}
    rows = connection.execute(_UNPREDICTED, [source]).fetchall()
    return [
        (Setting(setup=setups[setup], placement=placement, init=init, depth=depth, seed=seed), in_full)
        for setup, placement, init, depth, seed, in_full in rows
    ]


_UNPREDICTED = """
SELECT setup, placement, init, depth, min(seed), bool_or("full") FROM by_cell
ANTI JOIN (SELECT DISTINCT setup, placement, init, depth FROM predicted_value WHERE source = ?) AS there
USING (setup, placement, init, depth)
GROUP BY setup, placement, init, depth ORDER BY depth DESC, setup, placement, init
"""


def measured_keys(connection: duckdb.DuckDBPyConnection, in_full: bool = True) -> set[str]:
    """Keys of the fully measured cells a connection sees, or of those that have their whole-stack readings only."""
    rows = connection.execute('SELECT key FROM cell WHERE "full" = ?', [in_full]).fetchall()
    return {key for (key,) in rows}


def attempts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How often each failed cell a connection sees was tried, by key."""
    return dict(connection.execute("SELECT key, attempts FROM failure").fetchall())


def stray_log(path: Path) -> str | None:
    """What to do about a write-ahead log beside a published store, which never leaves one; None where there is none."""
    log = beside(path, "wal")
    if not log.exists():
        return None
    return (
        f"{log} lies beside the published store, which is only ever replaced and needs no log: some client opened the "
        "store for writing, or the log belongs to another file. DuckDB clients may refuse the store because of it. "
        f"Close that client, then move the log away: mv {log.name} {log.name}.old"
    )


def _open_copy(path: Path) -> tuple[duckdb.DuckDBPyConnection, Publication, bool]:
    try:
        if not path.exists():
            raise StoreMissing(f"There is no store at {path}. {WAY_OUT}")
        if not path.is_file():
            raise StoreError(f"{path} is not a file, so it cannot be a store. {WAY_OUT}")
        with full_disk_is_said(Path(tempfile.gettempdir(), path.name)):
            return _open_file(path)
    except (OSError, duckdb.Error, MemoryError) as error:
        if runs_short(error):
            raise StoreShort(
                f"{path} could not be opened: this process may not have the memory, threads or open files it takes. "
                "Raise its limits (ulimit -a) or stop other programs, and try again; nothing is wrong with the store."
            ) from error
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> StoreError:
    if isinstance(error, OSError):
        return StoreError(f"{path} cannot be read: {error.strerror}. Check its permissions. {WAY_OUT}")
    return StoreError(f"{path} cannot be opened as a DuckDB file: it is damaged or foreign. {WAY_OUT}")


def _open_file(path: Path) -> tuple[duckdb.DuckDBPyConnection, Publication, bool]:
    known = [*recorded(path).values()]
    with tempfile.TemporaryDirectory(prefix="lnmeasure-") as folder:
        copy = Path(folder) / "store.duckdb"
        shutil.copyfile(path, copy)
        connection = duckdb.connect(copy, read_only=True, config=_HARDENED)
        older = version_of(connection, path) < SCHEMA_VERSION
        (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
        content = publication_of(copy, generation, connection)
        _require_recorded(path, content, [*known, *recorded(path).values()])
        if older:
            connection.close()
            migrate(copy)
            connection = duckdb.connect(copy, read_only=True, config=_HARDENED)
    return connection, content, older


def _require_recorded(path: Path, content: Publication, known: list[Publication]) -> None:
    """StoreError where the record knows this generation, and as another file."""
    same = [entry for entry in known if entry.generation == content.generation]
    if same and content.blake2b not in {entry.blake2b for entry in same}:
        raise StoreError(
            f"{path} is not the file that was published as generation {content.generation}: its bytes are damaged, or "
            f"somebody wrote in it. {WAY_OUT}"
        )
