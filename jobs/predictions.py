"""What theory says of what the store holds: made where it is lacking, and published with the readings."""

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context

from jobs.machine import cores
from jobs.stop import Stop
from jobs.words import count
from jobs.worker import prepare_environment, tie_to
from lnmeasure.records import Setting
from lnmeasure.store.building import Building
from lnmeasure.theory.predict import SOURCE as SOURCE
from lnmeasure.theory.predict import THEORY, predict, says

Row = tuple[int | None, str, float]


def lacking(unpredicted: Iterable[tuple[Setting, bool]]) -> list[tuple[Setting, bool]]:
    """Those of the settings without a prediction that theory can speak of."""
    return [(setting, in_full) for setting, in_full in unpredicted if says(setting)]


def bring_up(building: Building, workers: int, stop: Stop) -> None:
    """Predict what the building file lacks. What is not done when stop is asked is left for the next refresh."""
    todo = lacking(building.unpredicted(SOURCE))
    if not todo or stop.asked():
        return
    print(f"Predicting {count(len(todo), 'setting')}.")
    prepare_environment()
    size = min(workers, cores(), len(todo))
    with ProcessPoolExecutor(size, get_context("spawn"), initializer=tie_to, initargs=(os.getpid(), None)) as pool:
        for (setting, _), rows in zip(todo, pool.map(rows_of, todo), strict=True):
            building.predict(setting, THEORY, SOURCE, rows)
            if stop.asked():
                for child in active_children():
                    child.kill()
                return


def rows_of(wanted: tuple[Setting, bool]) -> list[Row]:
    """What theory says of a setting, block by block where its blocks are measured too."""
    setting, in_full = wanted
    return [(said.block, said.quantity, said.value) for said in predict(setting) if in_full or said.block is None]
