"""python -m tests.run_invented CELLS SECONDS [ARGUMENT ...]: a refresh of torch-free cells that take so long each."""

import sys
import time
from functools import partial
from pathlib import Path

from jobs import refresh
from jobs.pool import Work
from jobs.stop import Stop
from jobs.worker import tie_to
from lnmeasure.records import Setting
from lnmeasure.store.building import Measured
from lnmeasure.store.reader import store_path
from tests.cells import grid, instant
from tests.small import plan


def slow(seconds: float, folder: Path, setting: Setting) -> Measured:
    """Leaves the worker's process id in a file, and takes its time."""
    (folder / f"worker_{setting.key}").touch()
    time.sleep(seconds)
    return instant(setting)


if __name__ == "__main__":
    cells, seconds, budget = int(sys.argv[1]), float(sys.argv[2]), [float(text) for text in sys.argv[3:]]
    work = Work(cell=partial(slow, seconds, store_path().parent), prepare=tie_to)
    options = refresh.Options(workers=2, work=work, budget_s=budget[0] if budget else None)
    sys.exit(refresh.ends(lambda: refresh.refresh(store_path(), plan(grid(cells)), options, Stop().install())))
