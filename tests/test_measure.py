"""What measure() promises beyond its numbers: names are checked, a missing value says why, nothing outlives it."""

import gc
import weakref
from dataclasses import replace

import pytest

from lnmeasure.core import measure as module
from lnmeasure.core.initialise import INITS
from lnmeasure.core.measure import check_names, measure
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import QUANTITIES, Setting, Setup

TINY = Setup(name="tiny", width=16, heads=2, seq_len=5, batch=3, vocab=11)
CELL = Setting(setup=TINY, placement="pre", init="xavier_uniform", depth=1, seed=0)
every_placement = pytest.mark.parametrize("placement", list(PLACEMENTS))


@pytest.mark.parametrize(("field", "registry"), [("placement", PLACEMENTS), ("init", INITS)])
@pytest.mark.parametrize("act", [check_names, measure])
def test_an_unknown_name_is_refused_with_the_registered_ones(field, registry, act):
    with pytest.raises(ValueError, match=f"{field} is 'nowhere'.*Choose one of") as caught:
        act(replace(CELL, **{field: "nowhere"}))
    assert all(name in str(caught.value) for name in registry)
    check_names(CELL)


@every_placement
def test_each_quantity_is_read_once_per_block_or_once(placement):
    readings = measure(replace(CELL, placement=placement, depth=3))
    expected = [(q, None) for q in QUANTITIES if not QUANTITIES[q].per_block]
    expected += [(q, block) for block in (1, 2, 3) for q in QUANTITIES if QUANTITIES[q].per_block]
    assert [(reading.quantity, reading.block) for reading in readings] == expected


def statuses(setting):
    return {reading.quantity: reading.status for reading in measure(setting)}


def test_a_gradient_below_single_precision_is_called_an_underflow_and_only_there():
    """With eps 1 a stream of 1e-13 stays that small, and dL/dW_Q goes as its cube: 1e-39, under 2^-126 = 1e-38."""
    faint = replace(CELL, setup=replace(TINY, eps=1.0, embedding_std=1e-13))
    assert statuses(faint)["grad_wq"] == "underflow"
    assert statuses(faint)["grad_wv"] == "ok"
    assert statuses(replace(faint, setup=replace(faint.setup, dtype="float64")))["grad_wq"] == "ok"


def test_a_top_gradient_that_underflows_says_so_too():
    """dL/dW2 goes as the FFN's input: 1e-40."""
    faint = statuses(replace(CELL, setup=replace(TINY, eps=1.0, embedding_std=1e-40)))
    assert faint["top_grad_w2"] == faint["grad_w2"] == "underflow"


def test_a_loss_beyond_single_precision_is_called_an_overflow():
    loud = replace(CELL, setup=replace(TINY, embedding_std=1e38, tied_head=True, width=256))
    assert statuses(loud)["loss"] == "overflow"


def test_what_a_setup_does_not_have_is_called_absent():
    bare = replace(CELL, setup=replace(TINY, attention="uniform", output_projection=False, seq_len=1, batch=1))
    absent = {quantity for quantity, status in statuses(bare).items() if status == "absent"}
    none_here = {"token_cosine", "cross_sequence_cosine", "attention_logit_std", "sigma_dual", "stream_rms_dual"}
    assert absent == none_here | {"grad_wq", "grad_wk", "grad_wo"}


@every_placement
def test_no_tensor_outlives_a_measurement(placement, monkeypatch):
    """A hook on the stream and a stream kept by the hook's owner would hold each other, the weights with them."""
    weights = []
    draw_block = module.draw_block

    def watched(*which):
        drawn = draw_block(*which)
        weights.extend(weakref.ref(matrix) for matrix in drawn.values())
        return drawn

    monkeypatch.setattr(module, "draw_block", watched)
    measure(replace(CELL, placement=placement, depth=2))
    gc.collect()
    assert len(weights) == 12
    assert not any(reference() is not None for reference in weights)
