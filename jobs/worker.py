"""What runs in a worker process: one cell, on one thread."""

import ctypes
import os
import signal
import sys
import time
from datetime import UTC, datetime

from lnmeasure.records import Setting
from lnmeasure.store.building import Measured

_PR_SET_PDEATHSIG = 1  # linux/prctl.h: the signal a process gets when its parent dies
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def prepare_environment() -> None:
    """Call in the driver before workers are spawned: OpenMP reads these when a process starts."""
    os.environ.update(_ENVIRONMENT)


def prepare(driver: int) -> None:
    """Call first in a worker, with the driver's process id: no life without the driver, and one thread."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != driver:  # it died before the line above
            os._exit(1)
    import torch

    torch.set_num_threads(1)


def measure_cell(setting: Setting) -> Measured:
    """Measure one setting and time it."""
    from lnmeasure.core.measure import measure

    began = time.perf_counter()
    readings = measure(setting)
    return Measured(
        setting=setting,
        readings=readings,
        measured_at=datetime.now(UTC).replace(tzinfo=None),
        wall_s=time.perf_counter() - began,
    )
