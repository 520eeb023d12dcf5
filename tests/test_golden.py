"""Golden readings: a number may move only together with MEASUREMENT_VERSION, else the store would mix two meanings.

`python tests/test_golden.py` rewrites tests/golden.json. It refuses while a kept reading has moved and the version
has not.
"""

import json
import math
import sys
from itertools import product
from pathlib import Path

import pytest

from lnmeasure.core.initialise import INITS
from lnmeasure.core.measure import measure
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import MEASUREMENT_VERSION, REVISED, Setting, Setup

FILE = Path(__file__).with_name("golden.json")
GOLDEN = Setup(name="golden", width=8, heads=2, seq_len=4, batch=2, vocab=7, dtype="float64")
CASES = list(product(PLACEMENTS, INITS))
REWRITE = "rewrite tests/golden.json with `python tests/test_golden.py`"
MOVED = (
    "readings moved: put the code right, or raise MEASUREMENT_VERSION, or the entry's own version in REVISED, in "
    f"lnmeasure/records.py and {REWRITE}"
)
RELATIVE = 1e-9
"""Far above the rounding of another machine's float64 (1e-13 here), far below any change of meaning."""


def setting_of(placement, init):
    return Setting(setup=GOLDEN, placement=placement, init=init, depth=2, seed=0)


def readings_of(placement, init):
    """{"quantity" or "quantity/block": value or null}."""
    return {
        reading.quantity if reading.block is None else f"{reading.quantity}/{reading.block}": reading.value
        for reading in measure(setting_of(placement, init))
    }


def version_kept(golden, name):
    """The version in which the readings of "placement/init" were kept."""
    return max([golden["measurement_version"], *(golden["revised"].get(part, 0) for part in name.split("/"))])


def moved(kept, found):
    """Names of the kept readings that are no longer what they were."""
    return [name for name, value in kept.items() if not same(value, found.get(name))]


def same(one, other):
    """Equal numbers, or absent alike."""
    return one is other if None in (one, other) else math.isclose(one, other, rel_tol=RELATIVE)


def test_the_golden_file_is_of_this_version():
    golden = json.loads(FILE.read_text())
    assert (golden["measurement_version"], golden["revised"]) == (MEASUREMENT_VERSION, REVISED), REWRITE


@pytest.mark.parametrize(("placement", "init"), CASES)
def test_no_reading_moves_while_the_measurement_version_stays(placement, init):
    golden = json.loads(FILE.read_text())
    kept = golden["readings"].get(f"{placement}/{init}")
    assert kept is not None, f"no golden readings of {placement} with {init}: {REWRITE}"
    found = readings_of(placement, init)
    assert kept.keys() == found.keys(), REWRITE
    if version_kept(golden, f"{placement}/{init}") == setting_of(placement, init).version:
        assert not moved(kept, found), MOVED


def test_a_change_of_one_part_in_a_hundred_million_is_seen():
    kept = readings_of("pre", "xavier_uniform")
    assert not moved(kept, kept)
    assert moved(kept, kept | {"loss": kept["loss"] * (1 + 1e-8)}) == ["loss"]
    assert moved(kept, kept | {"loss": None}) == ["loss"]
    assert moved(kept, kept | {"sigma_dual": 1.0}) == ["sigma_dual"]


def rewrite():
    """Writes the file; exits with a message where a reading moved under an unchanged version."""
    found = {f"{placement}/{init}": readings_of(placement, init) for placement, init in CASES}
    empty = {"measurement_version": 0, "revised": {}, "readings": {}}
    golden = json.loads(FILE.read_text()) if FILE.exists() else empty
    for name, readings in golden["readings"].items():
        if not moved(readings, found.get(name, {})):
            found[name] = readings  # this machine's last digits are no news
        elif version_kept(golden, name) == setting_of(*name.split("/")).version:
            sys.exit(f"{name}: {MOVED}")
    kept = {"measurement_version": MEASUREMENT_VERSION, "revised": REVISED, "readings": found}
    text = json.dumps(kept, indent=1)
    FILE.write_text(text + "\n")


if __name__ == "__main__":
    rewrite()
