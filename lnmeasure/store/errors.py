"""What can be wrong with a store. Each message names the file, the rule and the way out."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

_SHORT = ("bad_alloc", "Too many open files", "Resource temporarily unavailable", "Cannot allocate memory")
_NO_SPACE = ("No space left", "Disk quota exceeded", "could not write all bytes")


class StoreError(Exception):
    """The store cannot be used as it is. exit_code is what a job ends with."""

    exit_code = 76


class StoreMissing(StoreError):
    """There is no store at the path."""


class StoreBusy(StoreError):
    """Another refresh holds the store's lock."""

    exit_code = 75


class StoreFull(StoreError):
    """The disk has no room for the store."""

    exit_code = 74


class StorePathError(StoreError):
    """LNMEASURE_STORE names a place where no store can be."""

    exit_code = 2


class StoreShort(StoreError):
    """The process lacks memory, threads or open files; the store may be as it should."""

    exit_code = 75


def runs_short(error: BaseException) -> bool:
    """Whether an error of the system or of DuckDB says that the process lacks memory, threads or open files."""
    if isinstance(error, OSError):
        return error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
    return isinstance(error, MemoryError | duckdb.OutOfMemoryException) or any(words in str(error) for words in _SHORT)


def no_space(error: BaseException) -> bool:
    """Whether an error of the system or of DuckDB says that the disk is full."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, duckdb.Error) and any(words in str(error) for words in _NO_SPACE)


@contextmanager
def full_disk_is_said(path: Path) -> Iterator[None]:
    """Turn what a full disk raises while something is written beside path into StoreFull."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        if not no_space(error):
            raise
        raise StoreFull(
            f"The disk that holds {path.parent} is full. The published store is untouched, and committed cells are "
            "kept. Make room, then run the same command again."
        ) from error
