"""How every job ends: its exit codes, and one sentence instead of a traceback."""

import os
import sys
from collections.abc import Callable

from lnmeasure.store.errors import StoreError, no_space, runs_short

DONE, SOME_FAILED, BAD_ARGUMENTS, DISK_FULL, BUSY, DAMAGED = 0, 1, 2, 74, 75, 76
INTERRUPTED, TERMINATED = 130, 143


class EngineLost(Exception):
    """The processes that measure cannot be had."""


def ends(job: Callable[[], int]) -> int:
    """Run a job. Its exit code, and where it could not do its work the reason on stderr."""
    try:
        return job()
    except ValueError as error:
        return say(error, BAD_ARGUMENTS)
    except EngineLost as error:
        return say(error, BUSY)
    except StoreError as error:
        return say(error, error.exit_code)
    except BrokenPipeError:  # whoever read what is printed has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (OSError, MemoryError) as error:
        return _system_says(error)
    except KeyboardInterrupt:
        return say("Interrupted. Committed cells are kept; the same command goes on from them.", INTERRUPTED)


def _system_says(error: OSError | MemoryError) -> int:
    if no_space(error):
        return say("The disk is full. Make room, then run the same command again.", DISK_FULL)
    if runs_short(error):
        return say(f"The system grants no more memory, processes or open files ({error}). See 'ulimit -a'.", BUSY)
    return say(f"{error.filename2 or error.filename}: {error.strerror}. Check the path.", BAD_ARGUMENTS)


def say(message: object, exit_code: int) -> int:
    """Say why, and give back the exit code."""
    print(message, file=sys.stderr, flush=True)
    return exit_code
