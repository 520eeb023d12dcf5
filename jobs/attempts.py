"""What every engine makes of a cell that raises, or that was in flight when its process was killed."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from jobs.stop import Stop
from lnmeasure.records import Setting
from lnmeasure.store.building import Failed, Measured

KILLED = "its process was killed, perhaps for memory"


@dataclass(frozen=True, kw_only=True)
class Killed:
    """A cell that was in flight when a worker died."""

    setting: Setting


Some = Callable[[deque[Setting], bool], Iterator[Measured | Failed | Killed]]
"""What an engine makes of waiting cells (which it takes from the deque), one at a time or many at once."""


def until_given_up(todo: list[Setting], suspects: list[Setting], stop: Stop, some: Some) -> Iterator[Measured | Failed]:
    """Every cell as it finishes or fails: suspects alone, the others many at once, those in flight at a kill alone.

    One that kills its process when it is alone has failed.
    """
    alone, together, killed = deque(suspects), deque(todo), set()
    while (alone or together) and not stop.asked():
        one_at_a_time = bool(alone)
        for outcome in some(alone if one_at_a_time else together, one_at_a_time):
            if not isinstance(outcome, Killed):
                yield outcome
            elif one_at_a_time:
                tried = 2 if outcome.setting.key in killed else 1
                yield Failed(setting=outcome.setting, reason=KILLED, attempts=tried)
            else:
                killed.add(outcome.setting.key)
                alone.append(outcome.setting)


def outcome_of(future: Future, setting: Setting, kills: tuple[type[BaseException], ...]) -> Measured | Failed | Killed:
    """What became of a cell whose future is done. kills: the errors by which an engine says that a process died."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, kills):
        return Killed(setting=setting)
    first_line = str(error).strip().splitlines()[:1]
    return Failed(setting=setting, reason=": ".join([type(error).__name__, *first_line])[:300])
