"""The randomness rule: a raw draw is U(0, 1) from seed, role and block alone; the same cell has the same bits."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lnmeasure.core import initialise, measure
from lnmeasure.core.draws import integers, normal, raw_draw, uniform
from lnmeasure.core.initialise import INITS, draw_blocks, draw_embedding, draw_head
from lnmeasure.core.measure import draw_ends
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import Setting, Setup

ROOT = Path(__file__).resolve().parents[1]
TINY = Setup(name="tiny", width=8, heads=2, seq_len=3, batch=2, vocab=7, dtype="float64")
DEPTH_FREE = set(INITS) - {"xavier_residual", "gpt2", "small_wang"}
"""Inits whose values do not depend on the depth, so that a deeper stack extends a shallower one."""

every_init = pytest.mark.parametrize("init", list(INITS))
seeds = st.integers(0, 2**63)
roles = st.sampled_from(["w1", "w2", "wq", "wk", "wv", "wo", "embedding", "head", "tokens", "targets", "inputs"])
blocks = st.integers(0, 1000)
addresses = st.tuples(seeds, roles, blocks)
cells = st.builds(
    Setting,
    setup=st.just(TINY),
    placement=st.sampled_from(list(PLACEMENTS)),
    init=st.sampled_from(list(INITS)),
    depth=st.integers(1, 4),
    seed=st.integers(0, 5),
)


def raw_draws_of(setting):
    """Every raw draw the weights, embeddings and head of a setting ask for, by (seed, role, block)."""
    asked = {}

    def recorded(seed, role, block, shape):
        asked[seed, role, block] = raw_draw(seed, role, block, shape)
        return asked[seed, role, block].clone()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(initialise, "raw_draw", recorded)
        draw_blocks(setting), draw_embedding(setting), draw_head(setting)
    return asked


@given(cells, cells)
def test_two_settings_share_every_raw_draw_of_a_common_seed_role_and_block(one, other):
    draws, other_draws = raw_draws_of(one), raw_draws_of(replace(other, seed=one.seed))
    shared = draws.keys() & other_draws.keys()
    assert len(shared) == 6 * min(one.depth, other.depth) + 2
    assert all(torch.equal(draws[address], other_draws[address]) for address in shared)


@pytest.mark.parametrize("init", [init for init in INITS if init in DEPTH_FREE])
def test_a_deeper_stack_extends_a_shallower_one(init):
    shallow, deep = (
        draw_blocks(Setting(setup=TINY, placement="pre", init=init, depth=depth, seed=4)) for depth in (2, 5)
    )
    for matrices, same in zip(shallow, deep[:2], strict=True):
        assert all(torch.equal(matrices[role], same[role]) for role in matrices)


@pytest.mark.parametrize(("init", "factor"), [("xavier_residual", 2), ("gpt2", 2), ("small_wang", 4)])
def test_residual_scaling_is_all_that_depth_changes(init, factor):
    shallow, deep = (
        draw_blocks(Setting(setup=TINY, placement="pre", init=init, depth=depth, seed=4))[0] for depth in (2, 8)
    )
    for role, matrix in shallow.items():
        expected = matrix / factor if role in ("wo", "w2") else matrix
        assert torch.allclose(deep[role], expected, rtol=1e-14, atol=0), role


@every_init
def test_placements_share_their_weights_their_inputs_and_their_targets(init):
    for seed in range(3):
        found = []
        for placement in (name for name in PLACEMENTS if not PLACEMENTS[name].gain):
            setting = Setting(setup=TINY, placement=placement, init=init, depth=2, seed=seed)
            found.append([*draw_ends(setting), *(m for matrices in draw_blocks(setting) for m in matrices.values())])
        assert all(torch.equal(a, b) for others in found[1:] for a, b in zip(found[0], others, strict=True))


@every_init
def test_deepnorm_multiplies_what_an_init_draws_by_its_beta_but_for_queries_and_keys_and_the_ends(init):
    plain, gained = (Setting(setup=TINY, placement=p, init=init, depth=4, seed=1) for p in ("post", "deepnorm"))
    assert all(torch.equal(a, b) for a, b in zip(draw_ends(plain), draw_ends(gained), strict=True))
    for matrices, others in zip(draw_blocks(plain), draw_blocks(gained), strict=True):
        for role, matrix in matrices.items():
            beta = 1.0 if role in ("wq", "wk") else 32**-0.25
            assert torch.allclose(others[role], beta * matrix, rtol=1e-14, atol=0), role


@pytest.mark.parametrize("ratio", [1, 4])
def test_orthogonal_matrices_are_and_w1_is_sqrt_2_of_one(ratio):
    setup = replace(TINY, ffn_ratio=ratio)
    matrices = draw_blocks(Setting(setup=setup, placement="pre", init="orthogonal", depth=1, seed=0))[0]
    for role, matrix in matrices.items():
        tall = matrix if len(matrix) >= len(matrix.T) else matrix.T
        gain = 2.0 if role == "w1" else 1.0
        assert torch.allclose(tall.T @ tall, gain * torch.eye(8, dtype=torch.float64), atol=1e-13), role


def test_orthogonal_matrices_are_drawn_evenly():
    """A reflection of the whole space changes nothing: each entry has mean 0, which QR's signs alone would not give."""
    setups = [replace(TINY, name="even")]
    first = [
        draw_blocks(Setting(setup=setups[0], placement="pre", init="orthogonal", depth=1, seed=seed))[0]["wq"]
        for seed in range(400)
    ]
    mean = torch.stack(first).mean(0)
    assert mean.abs().max() < 4.5 / math.sqrt(8 * 400)


@given(addresses, addresses)
def test_two_draws_are_equal_exactly_when_seed_role_and_block_are(one, other):
    assert torch.equal(raw_draw(*one, (8,)), raw_draw(*one, (8,)))
    assert torch.equal(raw_draw(*one, (8,)), raw_draw(*other, (8,))) == (one == other)


@given(addresses)
def test_neighbouring_seeds_and_blocks_give_other_draws(address):
    seed, role, block = address
    draws = [raw_draw(s, role, b, (8,)) for s, b in ((seed, block), (seed + 1, block), (seed, block + 1))]
    assert not any(torch.equal(draws[i], draws[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


@given(addresses, st.integers(1, 400), st.floats(1e-3, 1e3))
def test_draws_lie_strictly_inside_and_stay_finite(address, size, scale):
    raw = raw_draw(*address, (size,))
    assert raw.dtype == torch.float64
    assert raw.shape == (size,)
    assert ((raw > 0) & (raw < 1)).all()
    assert normal(raw, scale).isfinite().all()
    assert (uniform(raw, scale).abs() < scale).all()


def test_the_ends_of_the_raw_range_stay_finite():
    """The first and last of 2^32 bins are 2^-33 from 0 and 1, so a normal draw stays within 6.3 standard deviations."""
    ends = torch.tensor([0.5, 2.0**32 - 0.5], dtype=torch.float64) / 2**32
    assert (normal(ends, 1.0).abs() < 6.4).all()


N = 200_000


def assert_moments(values, std, excess):
    """Mean 0 and variance std^2 within 4 standard errors; excess is the fourth moment over std^4, less 1."""
    assert abs(values.mean().item()) < 4 * std / math.sqrt(N)
    assert abs(values.square().mean().item() - std**2) < 4 * std**2 * math.sqrt(excess / N)


@pytest.mark.parametrize("seed", range(3))
def test_uniform_and_normal_have_the_moments_of_their_names(seed):
    raw = raw_draw(seed, "test", 0, (N,))
    assert_moments(uniform(raw, 0.3), 0.3 / math.sqrt(3), 9 / 5 - 1)
    assert_moments(normal(raw, 0.3), 0.3, 2)
    fourth = normal(raw, 1.0).pow(4).mean().item()
    assert abs(fourth - 3) < 4 * math.sqrt(96 / N)


def test_draws_of_neighbouring_seeds_roles_and_blocks_are_uncorrelated():
    addresses = [(0, "wq", 1), (1, "wq", 1), (0, "wk", 1), (0, "wq", 2)]
    table = torch.stack([uniform(raw_draw(*address, (N,)), 1.0) for address in addresses])
    correlation = torch.corrcoef(table) - torch.eye(4, dtype=torch.float64)
    assert correlation.abs().max() < 4.5 / math.sqrt(N)


@every_init
def test_every_matrix_has_the_variance_its_init_states(init):
    """Six standard errors of a normal sample's variance, sqrt(2/n); a uniform sample's is smaller."""
    setting = Setting(setup=Setup(name="page"), placement="pre", init=init, depth=3, seed=0)
    xavier = {role: 2 / sum(shape) for role, shape in setting.setup.weight_shapes().items()}
    xavier["head"] = 2 / 1256
    fan_in = {"w2": 1 / 1024, "head": xavier["head"]}
    small = 4e-4
    stated = {
        "xavier_uniform": xavier.get,
        "xavier_normal": xavier.get,
        "xavier_residual": lambda role: xavier[role] / (6 if role in ("wo", "w2") else 1),
        "gpt2": lambda role: small / (6 if role in ("wo", "w2") else 1),
        "normal_002": lambda role: small,
        "he": lambda role: 2 / 256 if role == "w1" else fan_in.get(role, 1 / 256),
        "lecun": lambda role: fan_in.get(role, 1 / 256),
        "torch_linear": lambda role: xavier["head"] if role == "head" else fan_in.get(role, 1 / 256) / 3,
        "small_wang": lambda role: {"wo": 4 / 9 / 256, "w2": 4 / 9 / 256, "head": xavier["head"]}.get(
            role, 2 / 5 / 256
        ),
        "ds_init": lambda role: xavier[role] / (1 if role == "head" else 3),
        "orthogonal": lambda role: {"w1": 2 / 1024, "w2": 1 / 1024, "head": xavier["head"]}.get(role, 1 / 256),
        "theory": lambda role: 0.0 if role in ("wq", "wk") else xavier[role],
    }
    assert init in stated, f"tests/test_draws.py does not state the variance of the init {init!r}: add it."
    tensors = {"head": draw_head(setting), **draw_blocks(setting)[2]}
    for role, matrix in tensors.items():
        variance, found = stated[init](role), matrix.double().square().mean().item()
        assert abs(found - variance) <= 6 * math.sqrt(2 / matrix.numel()) * variance, role
    embedding_variance = small if INITS[init].whole_model else 1.0
    error = 6 * math.sqrt(2 / 256_000)
    assert abs(draw_embedding(setting).double().square().mean() / embedding_variance - 1) < error


@pytest.mark.parametrize("data", ["uniform", "zipf"])
def test_tokens_have_the_frequencies_of_their_data(data):
    setup = Setup(name="many", batch=400, seq_len=500, vocab=20, data=data)
    found = integers(0, "tokens", setup)
    assert found.min() >= 0
    assert found.max() < 20
    weight = [1 / (v + 1) if data == "zipf" else 1.0 for v in range(20)]
    for v, share in enumerate(w / sum(weight) for w in weight):
        error = math.sqrt(share * (1 - share) / N)
        assert abs((found == v).double().mean().item() - share) < 4.5 * error, v


def test_tokens_and_targets_are_independent():
    """Equal tokens and targets of uniform data meet once in V: 1/20 within 4.5 standard errors."""
    setup = Setup(name="many", batch=400, seq_len=500, vocab=20)
    share = (integers(0, "tokens", setup) == integers(0, "targets", setup)).double().mean().item()
    assert abs(share - 1 / 20) < 4.5 * math.sqrt(19 / 400 / N)


@every_init
@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_measured_again_a_cell_has_the_same_bits(placement, init):
    setting = Setting(setup=replace(TINY, dtype="float32"), placement=placement, init=init, depth=2, seed=1)
    assert measure.measure(setting) == measure.measure(setting)


def test_measured_in_a_fresh_process_a_cell_has_the_same_bits():
    torch.manual_seed(12)
    setting = Setting(setup=replace(TINY, dtype="float32"), placement="post", init="xavier_normal", depth=3, seed=1)
    code = (
        f"import json, torch; torch.set_num_threads({torch.get_num_threads()}); "
        "from lnmeasure.records import *; from lnmeasure.core.measure import measure; "
        f"print(json.dumps([(r.quantity, r.block, r.value) for r in measure({setting!r})]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = [[reading.quantity, reading.block, reading.value] for reading in measure.measure(setting)]
    assert json.loads(found.stdout) == here
