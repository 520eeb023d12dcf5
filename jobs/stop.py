"""SIGTERM and Ctrl-C: asked once, a refresh publishes what is finished; asked again, it ends at once."""

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Remembers the first signal that asks the process to stop. Install it in the main thread."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def install(self) -> "Stop":
        """Take over SIGTERM and SIGINT. This object, for the caller to ask."""
        for number in SIGNALS:
            signal.signal(number, self._note)
        return self

    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.signal is not None

    def exit_code(self) -> int:
        """128 + the signal's number, as shells count."""
        return 128 + (self.signal or 0)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number
        for again in SIGNALS:
            signal.signal(again, _at_once)


def _at_once(number: int, _frame: FrameType | None) -> None:
    """No clean-up that could hang: committed cells are safe, the system frees the lock, workers die with the driver."""
    os.write(2, b"Ended at once. Committed cells are kept; the same command goes on from them.\n")
    os._exit(128 + number)
