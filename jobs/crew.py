"""Who measures on a Dask cluster: workers come and go, and each is asked what it has before it is given a cell."""

import asyncio
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future

from distributed import Client

from jobs.batches import Batch
from jobs.exits import EngineLost
from jobs.on_cluster import TRIM, introduce, measure_for_driver, versions
from lnmeasure.store.building import Measured

PATIENCE_S = 60.0
"""How long a cluster may be without a worker."""
GOES_ON = "Committed cells are kept; the same command goes on from them, with this engine or the local one."
_LOOK_S, _SILENCE_S = 0.3, 60.0
_KEPT_FREE = 2**30


class Crew:
    """At most so many workers of a cluster. fit: address and process of those who measure; asked: who must answer."""

    def __init__(self, client: Client, most: int) -> None:
        self.fit: dict[str, str] = {}
        self.asked: dict[Future, str] = {}
        self._executor: Executor = client.get_executor(pure=False, retries=0)
        self._client, self._most = client, most
        self._refused: set[str] = set()
        self._unasked = 0
        self._there: Future | None = None
        self._looked, self._seen = time.monotonic() - _LOOK_S, time.monotonic()
        self._warned = False

    def look(self) -> None:
        """See who has come, gone and answered. EngineLost without a scheduler, or with nobody left to wait for."""
        if self._client.status != "running":
            raise lost()
        self._see_who_is_there()
        for answer in [future for future in self.asked if future.done()]:
            self._judge(self.asked.pop(answer), answer)
        if self.fit or self.asked:
            self._seen = time.monotonic()
        elif self._refused and not self._unasked:
            raise EngineLost(f"None of the cluster's workers can measure. {GOES_ON}")
        elif time.monotonic() - self._seen > PATIENCE_S:
            raise EngineLost(f"The cluster has had no worker for {PATIENCE_S:.0f} s: start some. {GOES_ON}")

    def submit(
        self, measure: Callable[[Batch], list[Measured]], batch: Batch, load: Counter[str]
    ) -> tuple[Future, str]:
        """Give a batch to the worker who has fewest: its future, and the worker's address."""
        address = min(self.fit, key=load.__getitem__)
        return self._ask(address, measure_for_driver, measure, batch, self.fit[address]), address

    def died(self, address: str) -> None:
        """A worker's process has died. Whoever has its address now is asked anew."""
        self.fit.pop(address, None)

    def _see_who_is_there(self) -> None:
        """Without waiting for the scheduler's answer: a signal must not have to."""
        since = time.monotonic() - self._looked
        if self._there is None and since >= _LOOK_S:
            question = self._client.scheduler.ncores(workers=None)
            self._there = asyncio.run_coroutine_threadsafe(question, self._client.loop.asyncio_loop)
        elif self._there and self._there.done():
            if self._there.exception():
                raise lost()
            self._see(set(self._there.result()))
            self._there, self._looked = None, time.monotonic()
        elif self._there and since > _SILENCE_S:
            raise lost()

    def _see(self, there: set[str]) -> None:
        self.fit = {address: process for address, process in self.fit.items() if address in there}
        self._refused &= there
        for future in [future for future, address in self.asked.items() if address not in there]:
            del self.asked[future]
            future.cancel()
        new = sorted(there - {*self.fit, *self._refused, *self.asked.values()})
        room = max(0, self._most - len(self.fit) - len(self.asked))
        self._unasked = len(new[room:])
        for address in new[:room]:
            self.asked[self._ask(address, introduce)] = address

    def _ask(self, address: str, function: Callable, *arguments: object) -> Future:
        return self._executor.submit(pickle.loads, pickle.dumps(_Call(function, *arguments)), workers=[address])

    def _judge(self, address: str, answer: Future) -> None:
        if answer.cancelled():
            raise lost()
        if error := answer.exception():
            self._refuse(address, f"it answers {type(error).__name__}: {str(error).splitlines()[0]}")
            return
        said = answer.result()
        if said["versions"] != versions():
            self._refuse(address, f"it has {_words(said['versions'])}")
            return
        self.fit[address] = said["process"]
        if said["trim"] < _KEPT_FREE and not self._warned:
            self._warned = True
            _say(
                f"Worker {address} has no {TRIM} of 1 GiB: torch takes about 1.5 times as long there. Start workers "
                "with DASK_CONFIG=jobs/schedule/dask.yaml."
            )

    def _refuse(self, address: str, why: str) -> None:
        self._refused.add(address)
        _say(
            f"Worker {address} is refused: {why}. A worker must have what this command has, {_words(versions())}: "
            "install the same checkout there with '.[jobs,dask]' and constraints.txt, and start the worker again."
        )


class _Call:
    """Unpickled, it is what a function returns.

    So the task itself is the standard library's; a scheduler or worker that cannot import its task ends, and has to be
    neither of ours nor without other guests.
    """

    def __init__(self, function: Callable, *arguments: object) -> None:
        self._function, self._arguments = function, arguments

    def __reduce__(self) -> tuple[Callable, tuple]:
        return self._function, self._arguments


def lost() -> EngineLost:
    """The scheduler has gone, or somebody has restarted the cluster: what we wait for will not come."""
    return EngineLost(f"The Dask scheduler is lost, or the cluster was restarted. {GOES_ON}")


def _words(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
