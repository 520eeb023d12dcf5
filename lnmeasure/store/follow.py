"""The long-lived reader of a page: follows the published file, and keeps the last good one when a new one is bad."""

import threading
import time
from pathlib import Path

from lnmeasure.store.errors import StoreError
from lnmeasure.store.reader import Store

AGAIN_S = 5.0
"""After how many seconds a file that could not be read is tried again, changed or not."""

Signature = tuple[int, int, int, int] | None


class Follower:
    """Gives the store at path as it is published now. One per process; safe to ask from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: Signature = None
        self._store: Store | None = None
        self._trouble: StoreError | None = None
        self._tried = 0.0

    def current(self) -> tuple[Store, StoreError | None]:
        """The newest store that can be read, and what is wrong with a newer file where there is one.

        Who holds an older Store goes on with it undisturbed. StoreError where there has been no readable file yet.
        """
        with self._lock:
            signature = _signature(self.path)
            if signature != self._seen or self._is_due_again() or self._tried == 0:
                self._seen = signature
                self._open()
            if self._store is None:
                raise self._trouble
            return self._store, self._trouble

    def _is_due_again(self) -> bool:
        """What was wrong may have passed without the file changing: a full disk, a record that has been mended."""
        return self._trouble is not None and time.monotonic() - self._tried >= AGAIN_S

    def _open(self) -> None:
        self._tried = time.monotonic()
        try:
            self._store, self._trouble = Store(self.path), None
        except StoreError as error:
            self._trouble = error


def _signature(path: Path) -> Signature:
    """What changes when another file is published at the path; the file's times alone may go back with the clock."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
