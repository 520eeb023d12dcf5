"""What runs on a worker of a Dask cluster: who it is, and one cell, which ends early once nobody waits for it."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version

from distributed import Worker, get_worker

from jobs.batches import Batch
from jobs.provenance import package_version
from jobs.worker import on_one_thread
from lnmeasure.records import MEASUREMENT_VERSION
from lnmeasure.store.building import Measured

TRIM = "MALLOC_TRIM_THRESHOLD_"
_LOOK_S = 0.5


class OtherProcess(Exception):
    """The process that was to measure a cell has died, and another one has its address."""


class Abandoned(Exception):
    """Nobody waits for the cell any more."""


def versions() -> dict[str, str]:
    """What a worker must share with the driver, so that it reads the same numbers and the log says who measured."""
    torch = version("torch").partition("+")[0]  # builds of one version differ after the plus
    return {"lnmeasure": package_version(), "MEASUREMENT_VERSION": str(MEASUREMENT_VERSION), "torch": torch}


def introduce() -> dict[str, object]:
    """Which process this is, its versions, and from how many free bytes on its allocator gives memory back.

    torch is loaded, so that no cell's time has it.
    """
    on_one_thread()
    trim = os.environ.get(TRIM, "")
    return {"process": get_worker().id, "versions": versions(), "trim": int(trim) if trim.isdecimal() else 0}


def measure_for_driver(measure: Callable[[Batch], list[Measured]], batch: Batch, process: str) -> list[Measured]:
    """Measure a batch on one thread, in the named process and no other: Dask would try a cell that kills on and on."""
    worker = get_worker()
    if worker.id != process:
        raise OtherProcess(f"{process} has died")
    on_one_thread()
    with _while_somebody_waits(worker, worker.get_current_task()):
        return measure(batch)


@contextmanager
def _while_somebody_waits(worker: Worker, task: str) -> Iterator[None]:
    """Raise Abandoned in this thread once the cluster has let go of its task, which Dask itself never interrupts."""
    thread, over, turn = threading.get_ident(), threading.Event(), threading.Lock()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            known = worker.state.tasks.get(task)
            with turn:
                if not over.is_set() and (known is None or known.state == "cancelled"):
                    _raise_in(thread, Abandoned)
                    return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with turn:
            over.set()
            _raise_in(thread, None)  # what was raised and has not arrived must not reach Dask's own code


def _raise_in(thread: int, error: type[Exception] | None) -> None:
    """Python's PyThreadState_SetAsyncExc: an error at the thread's next line of Python, or none after all."""
    what = ctypes.py_object(error) if error else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
