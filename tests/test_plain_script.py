"""The plain script that the benchmark compares with reads what the core reads, over every init."""

from dataclasses import replace

import pytest

from jobs.plain import PlainStack
from lnmeasure.core.draws import integers
from lnmeasure.core.initialise import INITS, draw_blocks
from lnmeasure.core.measure import draw_ends, measure
from lnmeasure.records import Setting, Setup

SMALL = Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11)
ABSOLUTE = {"float32": 1e-6, "float64": 1e-12}
"""Cosines and the gradients of queries and keys nearly cancel: float32 leaves 1e-7 of what they are sums of."""


@pytest.mark.parametrize("init", list(INITS))
@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize(
    ("setup", "relative"),
    [
        (SMALL, 1e-5),
        (replace(SMALL, dtype="float64"), 1e-10),
        (replace(SMALL, dtype="float64", norm="rmsnorm", attention="bidirectional", activation="gelu"), 1e-10),
    ],
    ids=["float32", "float64", "float64, changed"],
)
def test_the_core_reads_what_the_plain_script_reads(setup, relative, placement, init):
    assert_same(Setting(setup=setup, placement=placement, init=init, depth=4, seed=1), relative)


@pytest.mark.soak
@pytest.mark.parametrize("init", list(INITS))
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_the_core_reads_what_the_plain_script_reads_at_full_size(placement, init):
    assert_same(Setting(setup=Setup(name="page"), placement=placement, init=init, depth=24, seed=1), 1e-5)


def assert_same(setting, relative):
    """Every reading the plain script takes, and none is there that it does not take."""
    x, head = draw_ends(setting)
    stack = PlainStack(setting.setup, setting.placement, setting.depth).take(draw_blocks(setting))
    plain = stack.readings(x, head, integers(setting.seed, "targets", setting.setup))
    measured = {(reading.quantity, reading.block): reading.value for reading in measure(setting)}
    assert plain.keys() == {key for key, value in measured.items() if value is not None}
    for key, value in plain.items():
        assert measured[key] == pytest.approx(value, rel=relative, abs=ABSOLUTE[setting.setup.dtype]), key


def test_the_plain_script_says_which_placements_it_knows():
    with pytest.raises(ValueError, match="'sideways': the plain script knows post and pre"):
        PlainStack(SMALL, "sideways", 1)
