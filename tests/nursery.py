"""python -m tests.nursery: forks the processes that tests kill.

It has imported what they need and opened no database, so that each of them begins at once and owes nothing to another.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Nursery:
    """Runs functions, which must be importable by name, each in a process of its own; one at a time.

    What they return is their exit code, what they say goes to a log.
    """

    def __init__(self, log: Path) -> None:
        self.log = log
        self._connection, theirs = Pipe()
        with log.open("w", encoding="utf-8") as said, theirs:
            command = [sys.executable, "-m", "tests.nursery", str(theirs.fileno())]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said, "pass_fds": [theirs.fileno()]}
            self._process = subprocess.Popen(command, cwd=ROOT, **pipes)

    def start(self, function: Callable[..., int | None], *arguments: object) -> int:
        """Begin a function in a new process. Its pid."""
        self._connection.send((function, arguments))
        assert self._connection.poll(120), "the nursery does not answer"
        return self._connection.recv()

    def ended(self, seconds: float) -> int | None:
        """Exit code of the process (a signal's number below zero), or None where it still runs after so long."""
        return self._connection.recv() if self._connection.poll(seconds) else None

    def run(self, function: Callable[..., int | None], *arguments: object, seconds: float = 120) -> int:
        """Exit code of a function left alone."""
        self.start(function, *arguments)
        code = self.ended(seconds)
        assert code is not None, f"{function.__name__} still runs after {seconds} s"
        return code

    def said(self) -> str:
        """The end of the log."""
        return self.log.read_text(encoding="utf-8")[-4000:]

    def close(self) -> None:
        """End it. A process it has begun is left alone."""
        self._connection.close()
        self._process.wait(60)


def wait_until(holds: Callable[[], bool], words: str, seconds: float = 60) -> None:
    """Look until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not after {seconds} s: {words}"
        time.sleep(0.002)


def _fork_what_is_asked(connection: Connection) -> None:
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            sys.exit(function(*arguments))
        connection.send(pid)
        connection.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    _fork_what_is_asked(Connection(int(sys.argv[1])))
