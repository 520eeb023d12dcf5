"""What every engine makes of a batch that raises, or that was in flight when its process was killed."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from jobs.batches import Batch
from jobs.stop import Stop
from lnmeasure.store.building import Failed, Measured

KILLED = "its process was killed, perhaps for memory"


@dataclass(frozen=True, kw_only=True)
class Again:
    """A batch to be tried again cell by cell: a worker died during it (killed), or one of its several cells raised."""

    batch: Batch
    killed: bool


Outcome = Measured | Failed | Again
Some = Callable[[deque[Batch], bool], Iterator[Outcome]]
"""What an engine makes of waiting batches (which it takes from the deque), one at a time or many at once."""


def until_given_up(todo: list[Batch], suspects: list[Batch], stop: Stop, some: Some) -> Iterator[Measured | Failed]:
    """Every cell as it finishes or fails: suspects alone, the others many at once; what must be tried again, alone.

    One that kills its process when it is alone has failed.
    """
    alone, together, killed = deque(suspects), deque(todo), set()
    while (alone or together) and not stop.asked():
        one_at_a_time = bool(alone)
        for outcome in some(alone if one_at_a_time else together, one_at_a_time):
            if not isinstance(outcome, Again):
                yield outcome
            elif one_at_a_time:
                (setting,) = outcome.batch.settings
                yield Failed(setting=setting, reason=KILLED, attempts=2 if setting.key in killed else 1)
            else:
                alone.extend(outcome.batch.one_by_one())
                killed |= {setting.key for setting in outcome.batch.settings if outcome.killed}


def outcomes_of(future: Future, batch: Batch, kills: tuple[type[BaseException], ...]) -> list[Outcome]:
    """What became of a batch whose future is done. kills: the errors by which an engine says that a process died."""
    error = future.exception()
    if error is None:
        return future.result()
    died = isinstance(error, kills)
    if died or len(batch.settings) > 1:
        return [Again(batch=batch, killed=died)]
    first_line = str(error).strip().splitlines()[:1]
    return [Failed(setting=batch.settings[0], reason=": ".join([type(error).__name__, *first_line])[:300])]
