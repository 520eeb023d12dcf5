"""The Dask engine: the workers of a cluster that is there already, which it neither starts nor ends.

Dask by itself runs a cell that kills its worker again and again, on one worker after another. Here every cell belongs
to one process; once that has died the cell is the driver's again, and is tried as by the local engine.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress

from distributed import Client, KilledWorker, Security
from distributed.comm import connect
from distributed.scheduler import NoValidWorkerError

from jobs.attempts import Again, Outcome, outcomes_of, until_given_up
from jobs.batches import Batch
from jobs.crew import Crew, lost
from jobs.exits import EngineLost
from jobs.on_cluster import OtherProcess
from jobs.pool import MEASURING, Work
from jobs.stop import Stop
from lnmeasure.store.building import Failed, Measured

ANSWER_S = 5.0
"""How long a scheduler may take to answer. A signal has to be answered within 10 s."""
_POLL_S, _CLOSE_S = 0.2, 2.0
_KILLS = (OtherProcess, KilledWorker, NoValidWorkerError)


def measure_all(
    address: str,
    todo: list[Batch],
    suspects: list[Batch],
    workers: int,
    stop: Stop,
    may_start: Callable[[Batch], bool] = lambda _: True,
    work: Work = MEASURING,
) -> Iterator[Measured | Failed]:
    """As jobs.pool.measure_all, on at most so many workers of the cluster whose scheduler has the address.

    EngineLost where the scheduler does not answer or is lost, or no worker can be had.
    """
    with _connected(address) as client:
        crew = Crew(client, workers)

        def some(waiting: deque[Batch], one_at_a_time: bool) -> Iterator[Outcome]:
            return _some(crew, waiting, one_at_a_time, stop, may_start, work)

        yield from until_given_up(todo, suspects, stop, some)


def workers_of(address: str) -> int:
    """How many workers a cluster has now."""
    with _connected(address) as client:
        return len(client.nthreads())


def _some(
    crew: Crew,
    waiting: deque[Batch],
    one_at_a_time: bool,
    stop: Stop,
    may_start: Callable[[Batch], bool],
    work: Work,
) -> Iterator[Outcome]:
    """What the cluster makes of the waiting cells, until none is left or stop is asked."""
    running: dict[Future, tuple[Batch, str]] = {}
    while not stop.asked():
        crew.look()
        yield from _taken_back(running, crew)
        _give_out(running, waiting, 1 if one_at_a_time else len(crew.fit) + 1, crew, may_start, work)
        if not running and not waiting:
            return
        _wait_for({*running, *crew.asked})
        yield from _done(running, crew)
    yield from _done(running, crew)


def _give_out(
    running: dict[Future, tuple[Batch, str]],
    waiting: deque[Batch],
    window: int,
    crew: Crew,
    may_start: Callable[[Batch], bool],
    work: Work,
) -> None:
    """Cells to workers, until so many run: one more than there are workers waits, so that no worker does."""
    while waiting:
        if not may_start(waiting[0]):
            waiting.popleft()
        elif crew.fit and len(running) < window:
            batch, load = waiting.popleft(), Counter(address for _, address in running.values())
            future, address = crew.submit(work.measure, batch, load)
            running[future] = batch, address
        else:
            return


def _taken_back(running: dict[Future, tuple[Batch, str]], crew: Crew) -> Iterator[Again]:
    """Cells whose worker has gone. Dask would keep them for one that comes to the same address."""
    for future, (batch, address) in list(running.items()):
        if address not in crew.fit and not future.done():
            del running[future]
            future.cancel()
            yield Again(batch=batch, killed=True)


def _done(running: dict[Future, tuple[Batch, str]], crew: Crew) -> Iterator[Outcome]:
    """What became of the cells that are done. EngineLost, after the others, where one was cancelled, not by us."""
    for future in sorted((future for future in running if future.done()), key=Future.cancelled):
        batch, address = running.pop(future)
        if future.cancelled():
            raise lost()
        if isinstance(future.exception(), _KILLS):
            crew.died(address)
        yield from outcomes_of(future, batch, _KILLS)


def _wait_for(futures: set[Future]) -> None:
    if futures:
        wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
    else:
        time.sleep(_POLL_S)


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client of the scheduler. Closing it takes everything of ours off the cluster."""
    for name in ("distributed", "distributed.client"):  # of a lost scheduler they say tracebacks, and we a sentence
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        asyncio.run(asyncio.wait_for(_greet(address), ANSWER_S))
        client = Client(address, timeout=ANSWER_S, set_as_default=False)
    except OSError as error:
        raise EngineLost(
            f"No Dask scheduler answers at {address} within {ANSWER_S:g} s. Start one with 'dask scheduler', or "
            "measure on this machine with --engine local."
        ) from error
    except (TypeError, RuntimeError) as error:  # how Dask says that tcp or tls does not fit its configuration
        raise ValueError(
            f"{address} cannot be asked: {error}. See distributed.comm in Dask's configuration."
        ) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(timeout=_CLOSE_S)


async def _greet(address: str) -> None:
    """Shake hands with a scheduler. A Client waits for that without end."""
    comm = await connect(address, timeout=ANSWER_S, **Security().get_connection_args("client"))
    await comm.close()
