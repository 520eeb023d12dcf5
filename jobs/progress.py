"""How a long job says how far it is: a bar on a terminal, one plain line a minute in a log."""

import sys
import time
from types import TracebackType

from tqdm import tqdm

_EVERY_S = 60.0


class Progress:
    """Counts blocks measured out of a total. Use as a context manager."""

    def __init__(self, total: int) -> None:
        self._bar = tqdm(total=total, unit="block", smoothing=0.05, disable=not sys.stderr.isatty())
        self._total, self._done = total, 0
        self._began = self._spoke = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.close()

    def advance(self, blocks: int) -> None:
        """Some blocks are done."""
        self._done += blocks
        self._bar.update(blocks)
        now = time.monotonic()
        if self._bar.disable and now - self._spoke >= _EVERY_S:
            self._spoke = now
            left = (now - self._began) * (self._total - self._done) / self._done
            print(f"{self._done} of {self._total} blocks measured, about {left / 60:.0f} min left", flush=True)

    def say(self, message: str) -> None:
        """A line that does not tear the bar."""
        tqdm.write(message, file=sys.stderr)
