"""What runs in a worker process: one cell, on one thread."""

import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

from jobs import plugins
from jobs.batches import Batch
from lnmeasure.records import Setting
from lnmeasure.store.building import Measured
from lnmeasure.store.clock import now

_PR_SET_PDEATHSIG = 1  # linux/prctl.h: the signal a process gets when its parent dies
_KEEP_PAGES = 2**30
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # large tensors come and go: glibc takes their pages by the 2 MiB, and keeps them instead of giving them back
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"
    f":glibc.malloc.trim_threshold={_KEEP_PAGES}:glibc.malloc.mmap_threshold={_KEEP_PAGES}",
}


def prepare_environment() -> None:
    """Call in the driver before workers are spawned: OpenMP reads these when a process starts."""
    os.environ.update(_ENVIRONMENT)


def tie_to(driver: int, memory: int | None) -> None:
    """Call first in a worker: no life without the driver process, and at most so many bytes of data (None: no limit).

    With the limit a runaway cell ends with an ordinary error instead of taking the machine's memory.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != driver:  # it died before the line above
            os._exit(1)
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def prepare(driver: int, memory: int | None) -> None:
    """tie_to, then torch on one thread."""
    tie_to(driver, memory)
    on_one_thread()


def on_one_thread() -> None:
    """Load torch, and have it compute on one thread."""
    import torch

    torch.set_num_threads(1)


def measure_cell(setting: Setting) -> Measured:
    """Measure one setting, with the time and the memory it took."""
    (measured,) = measure_batch(Batch(settings=(setting,)))
    return measured


def measure_batch(batch: Batch) -> list[Measured]:
    """Measure a batch. Each cell gets its share of the time, by depth, and the memory of all."""
    from lnmeasure.core.measure import Manner, measure_together

    plugins.load(batch.plugins)
    manner = Manner(streaming=batch.streaming, whole_only=batch.whole_only, device=batch.device)
    _forget_peak()
    began = time.perf_counter()
    measured = measure_together(batch.settings, manner)
    wall_s = time.perf_counter() - began
    share = wall_s / sum(setting.depth for setting in batch.settings)
    made = {"measured_at": now(), "peak_mb": _peak_mb()}
    return [
        Measured(setting=setting, readings=readings, wall_s=share * setting.depth, **made)
        for setting, readings in zip(batch.settings, measured, strict=True)
    ]


def _forget_peak() -> None:
    """Linux counts the most memory since the process began, or since this (proc(5), clear_refs).

    What earlier cells freed and the allocator kept is given back first, where it is glibc.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_mb() -> float | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    (kilobytes,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(kilobytes) * 1024 / 1e6
