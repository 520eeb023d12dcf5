"""The local engine: worker processes that may die at any moment.

The standard library's pool breaks as a whole when one worker is killed. Here it is built anew, the cells that were in
flight are tried again one at a time, and one that kills its process again is given up, as failed.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context

from jobs import worker
from jobs.attempts import Outcome, outcomes_of, until_given_up
from jobs.batches import Batch
from jobs.exits import EngineLost
from jobs.machine import memory_of_each
from jobs.stop import SIGNALS, Stop
from lnmeasure.records import Setting
from lnmeasure.store.building import Failed, Measured

_POLL_S = 0.2
_STARTS = 3
_KILLS = (BrokenExecutor,)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a worker does with a setting, and how it gets ready. All must be importable by name.

    together is what it does with a batch of several; None where each is a cell of its own.
    """

    cell: Callable[[Setting], Measured] = worker.measure_cell
    prepare: Callable[[int, int | None], None] = worker.prepare
    together: Callable[[Batch], list[Measured]] | None = None

    def measure(self, batch: Batch) -> list[Measured]:
        """Every cell of a batch."""
        return self.together(batch) if self.together else [self.cell(setting) for setting in batch.settings]


MEASURING = Work(together=worker.measure_batch)


def measure_all(
    todo: list[Batch],
    suspects: list[Batch],
    workers: int,
    stop: Stop,
    may_start: Callable[[Batch], bool] = lambda _: True,
    work: Work = MEASURING,
) -> Iterator[Measured | Failed]:
    """Every cell as it finishes or fails; suspects (which failed before) one at a time, the others many at once.

    A batch in which something fails is tried again cell by cell. Once stop is asked, batches in flight are abandoned;
    one that may not start is left out. EngineLost where workers cannot be started at all.
    """

    def some(waiting: deque[Batch], one_at_a_time: bool) -> Iterator[Outcome]:
        size = 1 if one_at_a_time else workers
        window = 1 if one_at_a_time else workers + 1  # one waits, so that no worker does
        return _one_pool(waiting, size, window, stop, may_start, work)

    return until_given_up(todo, suspects, stop, some)


def _one_pool(
    waiting: deque[Batch], size: int, window: int, stop: Stop, may_start: Callable[[Batch], bool], work: Work
) -> Iterator[Outcome]:
    """What one pool makes of the waiting batches, until none is left, it breaks, or stop is asked."""
    with _started(size, work, stop) as pool:
        running: dict[Future, Batch] = {}
        broken = False
        while pool and not stop.asked():
            while waiting and len(running) < window and not broken:
                batch = waiting.popleft()
                if not may_start(batch):
                    continue
                try:
                    running[_submit(pool, work.measure, batch)] = batch
                except BrokenExecutor:
                    waiting.appendleft(batch)
                    broken = True
            if not running:
                return
            for future in wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED).done:
                batch = running.pop(future)
                broken = broken or isinstance(future.exception(), _KILLS)
                yield from outcomes_of(future, batch, _KILLS)
        for future, batch in running.items():
            if future.done():
                yield from outcomes_of(future, batch, _KILLS)


@contextmanager
def _started(size: int, work: Work, stop: Stop) -> Iterator[ProcessPoolExecutor | None]:
    """A pool whose workers run, or None where stop is asked before they do. None of them is left when it is."""
    pools: list[ProcessPoolExecutor] = []
    try:
        yield _start(size, work, stop, pools)
    finally:
        for child in active_children():
            child.kill()
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _start(size: int, work: Work, stop: Stop, pools: list[ProcessPoolExecutor]) -> ProcessPoolExecutor | None:
    """A pool that has answered. Every pool that was begun is added to pools, for the caller to end."""
    worker.prepare_environment()
    for _ in range(_STARTS):
        arguments = (os.getpid(), memory_of_each(size))
        pool = ProcessPoolExecutor(size, mp_context=get_context("spawn"), initializer=work.prepare, initargs=arguments)
        pools.append(pool)
        try:
            answer = _submit(pool, os.getpid)
            while not wait([answer], timeout=_POLL_S).done:
                if stop.asked():
                    return None
            answer.result()
        except (BrokenExecutor, BlockingIOError):  # the latter where the system grants no more processes
            continue
        return pool
    raise EngineLost(
        f"Worker processes cannot be started: {_STARTS} tries ended at once. What they said stands above. Committed "
        "cells are kept; the same command goes on from them."
    )


def _submit(pool: ProcessPoolExecutor, function: Callable, *arguments: object) -> Future:
    """Submit, which may start a process: it inherits that SIGINT and SIGTERM wait, so only the driver answers."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return pool.submit(function, *arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
