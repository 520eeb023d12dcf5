"""Known answer 15: every reading of measure() equals the slow plain Transformer of plain.py."""

from dataclasses import replace

import pytest

from lnmeasure.core.initialise import INITS
from lnmeasure.core.measure import measure
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import QUANTITIES, Setting, Setup
from tests.plain import plain_readings, update_of

SMALL = Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11, dtype="float64")

CHANGES = [
    {"width": 24},
    {"heads": 4},
    {"heads": 1},
    {"ffn_ratio": 1},
    {"activation": "gelu"},
    {"attention": "bidirectional"},
    {"attention": "uniform"},
    {"output_projection": False},
    {"norm": "rmsnorm"},
    {"eps": 0.5},
    {"eps": 0.0},
    {"seq_len": 1},
    {"batch": 1},
    {"vocab": 50},
    {"embedding_std": 0.02},
    {"input": "gaussian"},
    {"data": "zipf"},
    {"tied_head": True},
]
UNFELT = {"none": {"norm", "eps"}, "rezero": {"norm", "eps", "ffn_ratio", "activation"}}
"""Fields that no reading feels: a stack without norms, and one whose sublayers add nothing."""


def assert_equal_readings(setting, relative):
    """Every quantity at every block, present or absent alike.

    1e-14 absolute covers cosines and gradients that are zero but for rounding; no other reading here is so small.
    """
    measured = {(reading.quantity, reading.block): reading.value for reading in measure(setting)}
    expected = plain_readings(setting)
    assert measured.keys() == expected.keys()
    assert {name for name, _ in measured} == QUANTITIES.keys()
    for key, value in expected.items():
        assert (measured[key] is None) == (value is None), key
        if value is not None:
            assert measured[key] == pytest.approx(value, rel=relative, abs=1e-14), key


@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_every_placement_has_a_plain_update_that_agrees_on_the_final_norm(placement):
    assert update_of(placement).final_norm == PLACEMENTS[placement].final_norm


@pytest.mark.parametrize("init", list(INITS))
@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_every_reading_equals_the_plain_transformer(placement, init):
    assert_equal_readings(Setting(setup=SMALL, placement=placement, init=init, depth=3, seed=1), relative=1e-10)


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_every_field_of_the_setup_reaches_the_readings(placement, change):
    setting = Setting(setup=replace(SMALL, **change), placement=placement, init="xavier_normal", depth=2, seed=2)
    assert_equal_readings(setting, relative=1e-10)
    is_felt = not UNFELT.get(placement, set()) & change.keys()
    assert (measure(setting) != measure(replace(setting, setup=SMALL))) == is_felt


def test_the_changes_cover_every_field_of_the_setup():
    changed = {name for change in CHANGES for name in change}
    encoder = {"encoder", "encoder_cosine"}  # tests/test_translation.py holds them against torch's own layers
    assert changed | {"name", "dtype"} | encoder == set(Setup.__dataclass_fields__)


@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_float32_readings_equal_float64_ones_to_single_precision(placement):
    """float32 keeps 24 bits, 6e-8; sums of 16 terms through 6 sublayers lose a few of them: 1e-4 leaves room."""
    setting = Setting(setup=SMALL, placement=placement, init="xavier_uniform", depth=3, seed=1)
    single = measure(replace(setting, setup=replace(SMALL, dtype="float32")))
    double = measure(setting)
    assert single != double
    for reading, exact in zip(single, double, strict=True):
        assert reading.status == exact.status
        if exact.value is not None:
            assert reading.value == pytest.approx(exact.value, rel=1e-4, abs=1e-5), reading
