"""What runs in a worker process: one cell, on one thread."""

import os
import time
from datetime import UTC, datetime

from lnmeasure.records import Setting
from lnmeasure.store.building import Measured

_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def prepare_environment() -> None:
    """Call in the driver before workers are spawned: OpenMP reads these when a process starts."""
    os.environ.update(_ENVIRONMENT)


def prepare() -> None:
    """Call first in a worker. One thread, set before any cell runs."""
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
