"""Every manner of measuring gives the numbers of measuring a cell alone, over all placements and inits.

Bit for bit where the order of operations is the same; to rounding where seeds are run side by side.
"""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lnmeasure.core import metrics
from lnmeasure.core.initialise import INITS, draw_blocks, init
from lnmeasure.core.measure import Manner, measure, measure_together, share_prefix
from lnmeasure.core.placements import PLACEMENTS, placement
from lnmeasure.records import Setting, Setup

SMALL = Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11)
PAIRS = [(placement, init) for placement in PLACEMENTS for init in INITS]
SHARING = [pair for pair in PAIRS if share_prefix(*pair)]
MANNERS = {
    "plain": Manner(),
    "streaming": Manner(streaming=True),
    "whole stack only": Manner(whole_only=True),
    "whole stack only, streaming": Manner(whole_only=True, streaming=True),
}
every_pair = pytest.mark.parametrize(("placement", "init"), PAIRS)


def cell(placement, init, depth=5, **changes):
    return Setting(setup=replace(SMALL, **changes), placement=placement, init=init, depth=depth, seed=3)


def alone(setting, manner):
    """What measuring a setting by itself gives, as far as a manner takes it."""
    return [reading for reading in measure(setting) if not (manner.whole_only and reading.block)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@every_pair
def test_one_cell_reads_the_same_in_every_manner(placement, init, manner, dtype):
    setting = cell(placement, init, dtype=dtype)
    assert measure(setting, manner) == alone(setting, manner)


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize(("placement", "init"), SHARING)
def test_depths_measured_together_read_what_each_reads_alone(placement, init, manner):
    cells = [cell(placement, init, depth) for depth in (4, 1, 6)]
    assert measure_together(cells, manner) == [alone(setting, manner) for setting in cells]


@settings(max_examples=20, deadline=None)
@given(
    depths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    manner=st.sampled_from(list(MANNERS.values())),
    attention=st.sampled_from(["causal", "bidirectional", "uniform"]),
    norm=st.sampled_from(["layernorm", "rmsnorm"]),
)
def test_any_depths_in_any_order_read_what_each_reads_alone(depths, manner, attention, norm):
    cells = [cell(*SHARING[0], depth, attention=attention, norm=norm) for depth in depths]
    assert measure_together(cells, manner) == [alone(setting, manner) for setting in cells]


@every_pair
def test_a_pair_shares_its_prefix_exactly_where_the_first_blocks_of_deeper_stacks_are_the_same(placement, init):
    cells = [cell(placement, init, depth) for depth in (2, 21)]
    first = [{(r.quantity, r.block): r.value for r in measure(setting) if r.block in (1, 2)} for setting in cells]
    drawn = [draw_blocks(setting)[0] for setting in cells]
    forward = product(("stream_rms", "branch_rms_attention", "branch_rms_ffn", "token_cosine"), (1, 2))
    same = all(first[0][name] == first[1][name] for name in forward)
    assert share_prefix(placement, init) == (
        same and all(torch.equal(drawn[0][role], drawn[1][role]) for role in drawn[0])
    )


def test_what_depends_on_depth_is_refused_together_by_name(monkeypatch):
    cells = [cell("pre", "xavier_residual", depth) for depth in (1, 2)]
    with pytest.raises(ValueError, match="pre with xavier_residual depends on the depth"):
        measure_together(cells)


@pytest.mark.parametrize(
    "changes", [{"init": "xavier_normal"}, {"placement": "post"}, {"setup": replace(SMALL, width=32)}]
)
def test_settings_that_differ_in_more_than_depth_and_seed_are_refused_together(changes):
    one = cell("pre", "xavier_uniform")
    with pytest.raises(ValueError, match="must differ in depth or seed only"):
        measure_together([one, replace(one, depth=2, **changes)])


def test_seeds_of_different_depths_are_refused_together():
    one = cell("pre", "xavier_uniform")
    with pytest.raises(ValueError, match="2 depths and 2 seeds: every seed must come with every depth"):
        measure_together([one, replace(one, depth=2, seed=4)])


def close(one, other, error):
    """Both absent, or equal to so many digits, of 1 where they are smaller."""
    return one is other or math.isclose(one, other, rel_tol=error, abs_tol=error)


ROUNDING = {"float32": 1e-5, "float64": 1e-10}


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@every_pair
def test_seeds_run_side_by_side_read_what_each_reads_alone_to_rounding(placement, init, manner, dtype):
    """Cosines may be near zero: they are held to the same digits of 1."""
    depths = (2, 5) if share_prefix(placement, init) else (5,)
    cells = [replace(cell(placement, init, depth, dtype=dtype), seed=seed) for seed in (3, 8, 4) for depth in depths]
    for setting, found in zip(cells, measure_together(cells, manner), strict=True):
        for one, reading in zip(alone(setting, manner), found, strict=True):
            assert (reading.quantity, reading.block, reading.status) == (one.quantity, one.block, one.status)
            assert close(reading.value, one.value, ROUNDING[dtype])


@pytest.mark.parametrize(
    "changes", [{"attention": "uniform"}, {"norm": "rmsnorm", "tied_head": True}, {"input": "gaussian"}]
)
def test_seeds_run_side_by_side_in_every_kind_of_setup(changes):
    cells = [replace(cell("pre", "gpt2", 3, **changes, dtype="float64"), seed=seed) for seed in (0, 1)]
    for setting, found in zip(cells, measure_together(cells), strict=True):
        assert all(close(r.value, s.value, 1e-10) for r, s in zip(found, measure(setting), strict=True))


def test_an_entry_that_asks_for_the_depth_anywhere_does_not_share(monkeypatch):
    """Also where only a block of its own asks: what the probe does not see must fail, not measure something else."""
    for registry in (PLACEMENTS, INITS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    @placement(norms=1, final_norm=True, source="a test")
    def by_depth(x, sublayer, norms, add, place):
        """x <- x + F(N(x)) / L"""
        return add(x, sublayer(norms[0](x)) / place.depth)

    @init(source="a test")
    def late(weight, raw):
        """U(0, 1), divided by L in block 5"""
        return raw / weight.depth if weight.block == 5 else raw

    assert not share_prefix("by_depth", "xavier_uniform")
    assert share_prefix("pre", "late")
    measure(cell("pre", "late", 6))
    with pytest.raises(Exception, match="depth of the stack was asked for"):
        measure_together([cell("pre", "late", 6), cell("pre", "late", 2)])


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e-20, 1e-10, 1.0, 1e10, 1e18, 1e25, 1e36])
def test_a_norm_of_float32_is_that_of_float64_at_every_size(scale):
    """Dot products keep about 1e-7; where squares leave the range of float32, sums are taken in float64."""
    x = torch.randn(64, 1024, generator=torch.Generator().manual_seed(1)) * scale
    exact = x.double().square().sum().sqrt().item()
    assert metrics.frobenius(x) == pytest.approx(exact, rel=2e-7)
    assert metrics.rms(x) == pytest.approx(exact / 256, rel=2e-7)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e20])
def test_cosines_and_logit_spread_of_float32_are_those_of_float64(scale):
    """Float32 leaves about 1e-8 in a cosine, and about 1e-6 of a spread that lies on a mean ten times as large."""
    generator = torch.Generator().manual_seed(2)
    x = (torch.randn(8, 32, 64, generator=generator) + 0.1) * scale
    unit = x.double() / x.double().norm(dim=-1, keepdim=True)
    products = torch.einsum("btd,cud->btcu", unit, unit)
    same = torch.eye(8, dtype=torch.bool)[:, None, :, None].expand(8, 32, 8, 32)
    within, across = metrics.cosines(x)
    assert within == pytest.approx((products[same].sum().item() - 256) / (8 * 32 * 31), abs=1e-8)
    assert across == pytest.approx(products[~same].mean().item(), abs=1e-8)
    logits, visible = torch.randn(8, 4, 32, 32, generator=generator) + 10, torch.ones(32, 32, dtype=torch.bool).tril()
    exact = logits.double()[..., visible].std(correction=0).item()
    assert metrics.logit_std(logits, visible) == pytest.approx(exact, rel=1e-6)
