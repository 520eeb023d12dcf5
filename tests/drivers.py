"""Refreshes that tests kill: the job itself, each cell noted in a journal."""

from functools import partial
from pathlib import Path

import jobs.progress
import jobs.provenance  # noqa: F401  what a refresh imports once it runs is here for the nursery to have
from jobs.exits import ends
from jobs.pool import Work
from jobs.refresh import Options, refresh
from jobs.stop import Stop
from jobs.worker import measure_cell, prepare, tie_to
from lnmeasure.records import Setting
from tests.cells import grid, instant
from tests.journal import journalled
from tests.small import plan, small_grid

WORKERS = 2


def measured_grid(size: int) -> list[Setting]:
    """The small grid with so many seeds."""
    return small_grid(depths=(1, 2), seeds=range(size))


def refresh_invented(store: Path, journal: Path, size: int) -> int:
    """The refresh job on so many invented cells."""
    return _refresh(store, grid(size), Work(cell=partial(journalled, cell=instant, journal=journal), prepare=tie_to))


def refresh_small(store: Path, journal: Path, size: int) -> int:
    """The refresh job as it is, with torch, on the small grid with so many seeds."""
    work = Work(cell=partial(journalled, cell=measure_cell, journal=journal), prepare=prepare)
    return _refresh(store, measured_grid(size), work)


def _refresh(store: Path, cells: list[Setting], work: Work) -> int:
    options = Options(workers=WORKERS, work=work)
    return ends(lambda: refresh(store, plan(cells), options, Stop().install()))
