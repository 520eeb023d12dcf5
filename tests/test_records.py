"""The nouns: what a Setup, a Setting and a Reading accept, what they refuse and in which words, and what a key is."""

import os
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lnmeasure.records import (
    ACTIVATIONS,
    ATTENTIONS,
    DATA,
    DTYPES,
    ENCODERS,
    NORMS,
    QUANTITIES,
    Reading,
    Setting,
    Setup,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = Setup(name="page")
CELL = Setting(setup=PAGE, placement="pre", init="xavier_uniform", depth=2, seed=0)

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
counts = st.integers(1, 64)


@st.composite
def setups(draw):
    heads = draw(counts)
    given_input = draw(st.sampled_from(["tokens", "gaussian"]))
    encoder = draw(st.sampled_from(ENCODERS))
    return Setup(
        name=draw(names),
        width=heads * draw(counts),
        heads=heads,
        ffn_ratio=draw(counts),
        activation=draw(st.sampled_from(ACTIVATIONS)),
        attention=draw(st.sampled_from(ATTENTIONS)),
        output_projection=draw(st.booleans()),
        norm=draw(st.sampled_from(NORMS)),
        eps=draw(st.floats(0, 10) | st.integers(0, 3)),
        seq_len=draw(counts),
        batch=draw(counts),
        vocab=draw(st.integers(2, 64)),
        embedding_std=draw(st.floats(1e-6, 10) | st.integers(1, 3)),
        input=given_input,
        data=draw(st.sampled_from(DATA)),
        tied_head=given_input == "tokens" and draw(st.booleans()),
        dtype=draw(st.sampled_from(DTYPES)),
        encoder=encoder,
        encoder_cosine=draw(st.floats(0, 1)) if encoder == "cosine" else 0.0,
    )


cells = st.builds(
    Setting, setup=setups(), placement=names, init=names, depth=counts, seed=st.integers(min_value=0, max_value=2**40)
)


@given(cells)
def test_a_setting_made_again_from_its_fields_is_equal_and_has_the_same_key(cell):
    setup = Setup(**{f.name: getattr(cell.setup, f.name) for f in fields(Setup)})
    again = Setting(setup=setup, placement=cell.placement, init=cell.init, depth=cell.depth, seed=cell.seed)
    assert again == cell
    assert again.key == cell.key


@given(cells, cells)
def test_two_settings_are_equal_exactly_when_their_keys_are(first, second):
    assert (first == second) == (first.key == second.key)


CHANGED = {
    "name": "other",
    "width": 128,
    "heads": 2,
    "ffn_ratio": 1,
    "activation": "gelu",
    "attention": "uniform",
    "output_projection": False,
    "norm": "rmsnorm",
    "eps": 1e-6,
    "seq_len": 16,
    "batch": 16,
    "vocab": 10,
    "embedding_std": 0.02,
    "input": "gaussian",
    "data": "zipf",
    "tied_head": True,
    "dtype": "float64",
    "encoder": "stack",
    "encoder_cosine": 0.5,
}
TOGETHER = {"encoder_cosine": {"encoder": "cosine"}}
"""What a field's change needs beside it."""


@pytest.mark.parametrize("field", fields(Setup), ids=lambda field: field.name)
def test_every_field_of_a_setup_changes_the_key(field):
    before = replace(PAGE, **TOGETHER.get(field.name, {}))
    after = replace(before, **{field.name: CHANGED[field.name]})
    assert replace(CELL, setup=after).key != replace(CELL, setup=before).key


@pytest.mark.parametrize("change", [{"placement": "post"}, {"init": "gpt2"}, {"depth": 3}, {"seed": 1}], ids=str)
def test_every_field_of_a_setting_changes_the_key(change):
    assert replace(CELL, **change).key != CELL.key


@pytest.mark.parametrize("field", [f for f in fields(Setup) if f.default is not MISSING], ids=lambda field: field.name)
def test_a_default_given_explicitly_leaves_the_key_alone(field):
    assert replace(CELL, setup=Setup(name="page", **{field.name: field.default})).key == CELL.key


@pytest.mark.parametrize(("one", "other"), [(0, 0.0), (0.0, -0.0), (2, 2.0)])
def test_equal_numbers_written_differently_give_one_key(one, other):
    assert replace(CELL, setup=replace(PAGE, eps=one)) == replace(CELL, setup=replace(PAGE, eps=other))
    assert replace(CELL, setup=replace(PAGE, eps=one)).key == replace(CELL, setup=replace(PAGE, eps=other)).key


def test_the_measurement_version_is_part_of_the_key(monkeypatch):
    before = CELL.key
    monkeypatch.setattr("lnmeasure.records.MEASUREMENT_VERSION", 10**6)
    assert CELL.key != before


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_key_is_the_same_in_another_process_whatever_its_hash_seed(hash_seed):
    code = f"from lnmeasure.records import *; print(({CELL!r}).key)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == CELL.key


NAN, INFINITE = float("nan"), float("inf")
BAD_COUNTS = [0, -1, True, 2.0, "4", None]
WAY_OUT = r"(must be|Choose|Use)"
BAD_SETUP = [
    *[(name, value) for name in ("width", "heads", "ffn_ratio", "seq_len", "batch", "vocab") for value in BAD_COUNTS],
    ("vocab", 1),
    *[("eps", value) for value in (NAN, INFINITE, -1e-9, True, "0", None, 10**400)],
    *[("embedding_std", value) for value in (NAN, INFINITE, 0.0, -1.0, True, None)],
    *[(name, "other") for name in ("activation", "attention", "norm", "input", "data", "dtype")],
    *[(name, value) for name in ("output_projection", "tied_head") for value in (1, 0, None, "yes")],
    *[("name", value) for value in ("two words", "", "1st", "a-b", None, 3)],
]


@pytest.mark.parametrize(("name", "value"), BAD_SETUP, ids=lambda part: repr(part)[:20])
def test_a_setup_names_the_field_the_value_and_the_way_out_of_a_bad_value(name, value):
    with pytest.raises(ValueError, match=WAY_OUT) as caught:
        Setup(**{"name": "page", name: value})
    assert f"Setup.{name}" in str(caught.value)
    assert repr(value) in str(caught.value)


@given(counts, counts)
def test_a_width_the_heads_do_not_divide_is_refused_with_both_numbers(width, heads):
    assume(width % heads)
    with pytest.raises(ValueError, match="multiple of") as caught:
        Setup(name="page", width=width, heads=heads)
    assert f"Setup.width is {width}" in str(caught.value)
    assert f"Setup.heads is {heads}" in str(caught.value)


def test_a_tied_head_without_embeddings_is_refused_with_both_values():
    with pytest.raises(ValueError, match=r"Setup.tied_head is True.*'gaussian'.*Use input='tokens'"):
        Setup(name="page", tied_head=True, input="gaussian")


BAD_SETTING = [
    *[("depth", value) for value in BAD_COUNTS],
    *[("seed", value) for value in (-1, True, 1.0, "0", None)],
    *[(name, value) for name in ("placement", "init") for value in ("pre norm", "", "a-b", None)],
    ("setup", "page"),
]


@pytest.mark.parametrize(("name", "value"), BAD_SETTING, ids=repr)
def test_a_setting_names_the_field_the_value_and_the_way_out_of_a_bad_value(name, value):
    with pytest.raises(ValueError, match=WAY_OUT) as caught:
        replace(CELL, **{name: value})
    assert f"Setting.{name}" in str(caught.value)
    assert repr(value) in str(caught.value)


per_block = st.sampled_from([name for name, quantity in QUANTITIES.items() if quantity.per_block])
of_stack = st.sampled_from([name for name, quantity in QUANTITIES.items() if not quantity.per_block])
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50)
@given(per_block, of_stack, finite, counts)
def test_a_block_is_given_exactly_for_what_belongs_to_a_block(inner, outer, value, block):
    assert Reading(quantity=inner, value=value, block=block).value == value
    assert Reading(quantity=outer, value=value).value == value
    with pytest.raises(ValueError, match=f"{inner} needs a block"):
        Reading(quantity=inner, value=value)
    with pytest.raises(ValueError, match=f"Reading.block is {block}.*{outer} belongs to the whole stack"):
        Reading(quantity=outer, value=value, block=block)


@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE, True, "1"])
def test_a_reading_refuses_what_is_not_a_finite_number(value):
    with pytest.raises(ValueError, match=f"Reading of loss is {value!r}: it must be a finite number"):
        Reading(quantity="loss", value=value)


@pytest.mark.parametrize(("value", "status"), [(None, "ok"), (1.0, "overflow"), (1.0, "absent")])
def test_a_missing_value_and_only_a_missing_value_says_why(value, status):
    with pytest.raises(ValueError, match=f"value {value!r} and status {status!r}"):
        Reading(quantity="loss", value=value, status=status)
    assert Reading(quantity="loss", value=None, status="absent").value is None


@pytest.mark.parametrize("block", [0, -1, True, 1.0])
def test_a_block_is_a_whole_number_from_one(block):
    with pytest.raises(ValueError, match=f"Reading.block is {block!r}"):
        Reading(quantity="stream_rms", value=1.0, block=block)


def test_an_unknown_quantity_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"Reading.quantity is 'mood': it must be one of sigma, .*loss"):
        Reading(quantity="mood", value=1.0)
