"""A Dask cluster for tests: a scheduler and workers as a user starts them, on loopback."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from distributed import Client

import jobs.progress
import jobs.provenance  # noqa: F401  what a refresh imports once it runs is here for the nursery to have
from jobs.engines import LOCAL, dask
from jobs.exits import ends
from jobs.pool import Work
from jobs.refresh import Options, refresh
from jobs.stop import Stop
from jobs.worker import tie_to
from tests.cells import beats_from_seed_3_on, grid
from tests.conftest import ROOT
from tests.nursery import wait_until
from tests.small import plan

QUIET = ("--host", "127.0.0.1", "--no-dashboard")
TRIM = "MALLOC_TRIM_THRESHOLD_"


class Cluster:
    """A scheduler, to which workers are added. What they say goes to files in the folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.folder.mkdir()
        file = folder / "scheduler.json"
        options = ("--port", "0", "--scheduler-file", str(file))
        self._processes = [self._start("scheduler", *options, **environment)]
        wait_until(file.exists, "a scheduler runs")
        wait_until(lambda: file.read_bytes().strip().endswith(b"}"), "its address is known")
        self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
        self.client = Client(self.address, set_as_default=False)

    def add_worker(self, *options: str, **environment: str) -> None:
        """Start a worker of one thread."""
        place = self.folder / f"worker_{len(self._processes)}"
        options = (self.address, "--nworkers", "1", "--nthreads", "1", "--local-directory", str(place), *options)
        self._processes.append(self._start("worker", *options, **environment))

    def wait_for_workers(self, number: int) -> None:
        """Wait until so many are there."""
        wait_until(lambda: len(self.client.nthreads()) == number, f"{number} workers\n{self.said()}")

    def idle(self) -> bool:
        """Whether neither the scheduler nor a worker has a task of anybody."""
        tasks = self.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        return not tasks and not any(self.client.run(lambda dask_worker: len(dask_worker.state.tasks)).values())

    def lose_scheduler(self) -> None:
        """Kill it."""
        self._processes[0].kill()

    def lost(self) -> bool:
        """Whether the scheduler runs no more."""
        return self._processes[0].poll() is not None

    def said(self) -> str:
        """The ends of what its processes said."""
        return "\n".join(file.read_text(encoding="utf-8")[-1500:] for file in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        """End it."""
        if not self.lost():
            self.client.close()
        for process in self._processes:  # a worker whose nanny is gone ends by itself
            process.kill()
            process.wait(30)

    def _start(self, what: str, *options: str, **environment: str) -> subprocess.Popen:
        number = len(list(self.folder.glob("*.log")))
        known = {name: value for name, value in os.environ.items() if name not in (TRIM, "DASK_CONFIG")}
        known = known | {"PYTHONPATH": str(ROOT)} | environment
        with (self.folder / f"{number}_{what}.log").open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", what, *QUIET, *options],
                cwd=self.folder,
                env=known,
                stdout=said,
                stderr=said,
                preexec_fn=partial(tie_to, os.getpid(), None),
            )


def refresh_beating(store: Path, folder: Path, size: int, scheduler: str | None) -> int:
    """The refresh job on so many cells of which all but three take a minute, on a cluster where there is one."""
    work = Work(cell=partial(beats_from_seed_3_on, folder), prepare=tie_to)
    options = Options(workers=2, work=work, engine=dask(scheduler) if scheduler else LOCAL)
    return ends(lambda: refresh(store, plan(grid(size, depths=(1,))), options, Stop().install()))
