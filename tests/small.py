"""A grid small enough to be measured in a second, with every placement and init of the real one."""

from itertools import product

from jobs.grids import Plan
from lnmeasure.core.initialise import INITS
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import Setting, Setup

SETUP = Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11)


def small_grid(depths=(1, 2), seeds=(0, 1, 2)) -> list[Setting]:
    """Every registered placement and init over some depths and seeds."""
    return [
        Setting(setup=SETUP, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(PLACEMENTS, INITS, depths, seeds)
    ]


def plan(settings) -> Plan:
    """A plan of one grid, named small."""
    return Plan(grids={"small": [(setting, None) for setting in settings]})
