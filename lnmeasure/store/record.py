"""What publication recorded of a file: size, digest, rows and a hash of every table. Kept beside the store, as JSON.

A file cannot hold its own digest. The record is written before the store is replaced and keeps earlier publications, so
that at every moment the file in place has its entry.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from lnmeasure.store.files import beside, replace_text

_KEPT = 10


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One published file: generation, size in bytes, blake2b, and per table [rows, hash] as that DuckDB sees them."""

    generation: int
    size: int
    blake2b: str
    duckdb: str
    tables: dict[str, list[int]]


def recorded(path: Path) -> dict[int, Publication]:
    """The recorded publications of the store at path, by generation; none where there is no readable record."""
    try:
        entries = json.loads(beside(path, "record").read_text(encoding="utf-8"))["publications"]
        return {entry["generation"]: Publication(**entry) for entry in entries if type(entry["generation"]) is int}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def add_to_record(path: Path, publication: Publication) -> None:
    """Record a publication of the store at path. Entries of its generation and later ones are another store's: it was
    moved away, or an earlier one was brought back.
    """
    before = [entry for entry in recorded(path).values() if entry.generation < publication.generation]
    newest = sorted([publication, *before], key=lambda entry: entry.generation, reverse=True)[:_KEPT]
    lines = ",\n".join(json.dumps(asdict(entry)) for entry in newest)
    replace_text(beside(path, "record"), f'{{"publications": [\n{lines}\n]}}\n')


def publication_of(file: Path, generation: int, connection: duckdb.DuckDBPyConnection) -> Publication:
    """What a file holds, every row of it read. duckdb.Error where a block is damaged."""
    return Publication(
        generation=generation,
        size=file.stat().st_size,
        blake2b=digest(file),
        duckdb=duckdb.__version__,
        tables=read_everything(connection),
    )


def read_everything(connection: duckdb.DuckDBPyConnection) -> dict[str, list[int]]:
    """Rows and hash of every table. A file cut short or with a flipped bit can open; this reads all of it."""
    names = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() ORDER BY table_name"
    ).fetchall()
    return {name: list(connection.execute(_ROWS_AND_HASH.format(name)).fetchone()) for (name,) in names}


_ROWS_AND_HASH = "SELECT count(*), coalesce(bit_xor(hash(t)), 0)::UBIGINT FROM {} t"


def digest(file: Path) -> str:
    """blake2b of a file's bytes, in hex."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "blake2b").hexdigest()
