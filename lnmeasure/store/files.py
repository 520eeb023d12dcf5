"""Files that are there whole or not at all."""

import os
import shutil
from pathlib import Path


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


def beside(path: Path, ending: str) -> Path:
    """The file that belongs to another one: its name with an ending added."""
    return path.with_name(f"{path.name}.{ending}")


def remove_database(path: Path) -> None:
    """Remove a DuckDB file, with the log and the spilled data it may have left beside it."""
    path.unlink(missing_ok=True)
    beside(path, "wal").unlink(missing_ok=True)
    shutil.rmtree(beside(path, "tmp"), ignore_errors=True)
