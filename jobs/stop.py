"""SIGTERM and Ctrl-C: asked once, a refresh publishes what is finished; asked again, it ends at once."""

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
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
