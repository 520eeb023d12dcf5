"""Which engine measures: processes of this machine, or the workers of a Dask cluster."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from jobs import pool
from jobs.machine import memory_of_each
from lnmeasure.store.building import Failed, Measured

ENGINES = ("local", "dask")
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """How cells are measured: jobs.pool.measure_all or its like; how many at once, given --workers; bytes for each."""

    measure_all: Callable[..., Iterator[Measured | Failed]]
    at_once: Callable[[int], int]
    memory_of_each: Callable[[int], int | None]


LOCAL = Engine(measure_all=pool.measure_all, at_once=lambda workers: workers, memory_of_each=memory_of_each)


def dask(address: str) -> Engine:
    """The cluster whose scheduler has the address. ValueError where dask is not installed."""
    try:
        from jobs import cluster
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--engine dask needs {error.name}, which is not installed: "
            "pip install -c constraints.txt -e '.[jobs,dask]'"
        ) from error
    return Engine(
        measure_all=partial(cluster.measure_all, address),
        at_once=lambda workers: max(1, min(workers, cluster.workers_of(address))),
        memory_of_each=lambda _: None,
    )


def chosen(engine: str, scheduler: str | None) -> Engine:
    """The engine that arguments ask for. ValueError where they contradict each other."""
    if engine == "local" and scheduler:
        raise ValueError("--scheduler is for --engine dask: give both, or neither.")
    if engine == "dask" and not scheduler:
        raise ValueError("--engine dask needs the cluster's address: --scheduler HOST:PORT.")
    return dask(scheduler) if scheduler else LOCAL


def scheduler(text: str) -> str:
    """An argument such as tcp://node-1:8786. ArgumentTypeError where it is none."""
    match = _ADDRESS.fullmatch(text)
    if not match or not 0 < int(match[1]) < 65536:
        raise ArgumentTypeError(f"scheduler is {text[:80]!r}: it must be HOST:PORT, such as tcp://node-1:8786")
    return text
