"""Files that are there whole or not at all."""

import os
import shutil
from pathlib import Path

import duckdb


def sync(path: Path) -> None:
    """Have a file or folder reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_text(path: Path, text: str) -> None:
    """Put a text in a file's place, by one replace that survives a crash. OSError where that cannot be done."""
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        sync(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def connect_to_log(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file so that what is committed goes to the log beside it, and into the file itself never.

    A checkpoint rewrites blocks that are in use, 256 KiB at a time: a kill in the middle of one leaves a file that
    nobody can read. A log with a torn end loses only the transaction that was being committed.
    """
    connection = duckdb.connect(path, config={"checkpoint_threshold": "1000TB"})
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    return connection


def beside(path: Path, ending: str) -> Path:
    """The file that belongs to another one: its name with an ending added."""
    return path.with_name(f"{path.name}.{ending}")


def remove_database(path: Path) -> None:
    """Remove a DuckDB file, with the log and the spilled data it may have left beside it."""
    path.unlink(missing_ok=True)
    beside(path, "wal").unlink(missing_ok=True)
    shutil.rmtree(beside(path, "tmp"), ignore_errors=True)
