"""The writer that tests kill: invented cells go into a building file, and that is published. All in one process."""

from itertools import count
from pathlib import Path

from lnmeasure.records import Setting
from lnmeasure.store.building import Building, Provenance
from lnmeasure.store.lock import locked
from tests.cells import grid, instant
from tests.journal import journalled

WHO = Provenance(package="0", commit=None, torch="0", python="3", processor="p", threads=1)
PORTION = 5


def fill(store: Path, journal: Path, size: int) -> int:
    """A refresh of so many cells: add what the store lacks one by one, and publish."""
    with locked(store):
        building = Building(store)
        add_lacking(building, grid(size), journal)
        building.publish("0", None)
    return 0


def fill_on_and_on(store: Path, journal: Path, size: int) -> None:
    """Refreshes of more and more cells, until somebody ends it."""
    for rounds in count():
        fill(store, journal, size + PORTION * rounds)


def add_lacking(building: Building, cells: list[Setting], journal: Path) -> None:
    """Begin a refresh, add the cells that the building file lacks, and end it."""
    there = building.measured_keys()
    building.begin(WHO, planned=len(cells), reused=len(there))
    building.plan("small", [(setting, None) for setting in cells])
    for setting in cells:
        if setting.key not in there:
            building.add(journalled(setting, cell=instant, journal=journal))
    building.finish(measured=len(cells) - len(there), failed=0, wall_s=1.0)
