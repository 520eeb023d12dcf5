"""What cells were begun and ended, noted by the processes that measure them, whatever becomes of those."""

import os
from pathlib import Path

from lnmeasure.records import Setting
from lnmeasure.store.building import Measured


def journalled(setting: Setting, cell, journal: Path) -> Measured:
    """Measure a cell, noting in the journal when it begins and when it ends."""
    _note(journal, "began", setting)
    measured = cell(setting)
    _note(journal, "ended", setting)
    return measured


def noted(journal: Path, since: int = 0) -> tuple[list[str], set[str]]:
    """Keys of the cells begun, one for each time, and of those ended, since so many bytes of the journal."""
    if not journal.exists():
        return [], set()
    lines = [line.split() for line in journal.read_bytes()[since:].decode().splitlines()]
    return [key for word, key in lines if word == "began"], {key for word, key in lines if word == "ended"}


def length(journal: Path) -> int:
    """Bytes of the journal."""
    return journal.stat().st_size if journal.exists() else 0


def _note(journal: Path, word: str, setting: Setting) -> None:
    """One write to a file opened for appending: lines of several processes do not mix, and a kill cuts none."""
    handle = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, f"{word} {setting.key}\n".encode())
    os.close(handle)
