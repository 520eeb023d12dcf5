"""One writer at a time: an exclusive lock on a file beside the store, which the system frees when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lnmeasure.store.errors import StoreBusy, StoreError, full_disk_is_said
from lnmeasure.store.files import beside


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the store's single-writer lock. StoreBusy, naming the holder, while another process has it."""
    with _opened(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = lock.read().strip() or "unknown"
            raise StoreBusy(f"Another refresh of {path} runs (process {holder}). Wait for it, or stop it.") from error
        with full_disk_is_said(path):
            lock.seek(0)
            lock.truncate()
            lock.write(str(os.getpid()))
            lock.flush()
        yield


def _opened(path: Path):  # noqa: ANN202
    try:
        with full_disk_is_said(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(beside(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            return os.fdopen(handle, "r+", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"The refresh cannot write beside {path}: {error.strerror}. It needs a folder it may write to; "
            "LNMEASURE_STORE names another place for the store."
        ) from error
