"""Known answers 4 to 9 and 11: the sizes that theory gives in `page` at small depth, means over ten seeds.

Each placement is measured under xavier_uniform, each init under post and pre: all pairs would take minutes.
"""

import math
import statistics
from dataclasses import replace
from functools import cache

import pytest
import torch
from scipy.stats import t as student

from lnmeasure.core import measure as module
from lnmeasure.core.draws import integers
from lnmeasure.core.initialise import INITS, draw_blocks
from lnmeasure.core.measure import cross_entropy, draw_ends, measure
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.core.stack import forward
from lnmeasure.core.watch import Bystander
from lnmeasure.records import Setting, Setup

PAGE = Setup(name="page")
SEEDS = range(10)
D, R, V, T, B = PAGE.width, PAGE.ffn_ratio, PAGE.vocab, PAGE.seq_len, PAGE.batch
XAVIER = {"w1": 2 / (1 + R) / D, "w2": 2 / (1 + R) / D, "head": 2 / (D + V)}
HEAD = {"head": XAVIER["head"]}
VARIANCE = {
    "xavier_uniform": lambda depth: XAVIER,
    "xavier_normal": lambda depth: XAVIER,
    "xavier_residual": lambda depth: XAVIER | {"w2": XAVIER["w2"] / (2 * depth)},
    "gpt2": lambda depth: {"w1": 4e-4, "w2": 4e-4 / (2 * depth), "head": 4e-4},
    "normal_002": lambda depth: {"w1": 4e-4, "w2": 4e-4, "head": 4e-4},
    "he": lambda depth: HEAD | {"w1": 2 / D, "w2": 1 / (R * D)},
    "lecun": lambda depth: HEAD | {"w1": 1 / D, "w2": 1 / (R * D)},
    "torch_linear": lambda depth: HEAD | {"w1": 1 / (3 * D), "w2": 1 / (3 * R * D)},
    "small_wang": lambda depth: HEAD | {"w1": 2 / (5 * D), "w2": 4 / (depth**2 * D)},
    "ds_init": lambda depth: XAVIER | {"w1": XAVIER["w1"] / depth, "w2": XAVIER["w2"] / depth},
    "orthogonal": lambda depth: HEAD | {"w1": 2 / (R * D), "w2": 1 / (R * D)},
    "theory": lambda depth: XAVIER,
}
"""Variance of an entry of W1, W2 of the last block and the head, by init: all that these answers need to know of it."""
SMALL_EMBEDDINGS = [init for init in INITS if INITS[init].whole_model]

PAIRS = sorted({(p, "xavier_uniform") for p in PLACEMENTS} | {(p, i) for p in ("post", "pre") for i in INITS})
every_pair = pytest.mark.parametrize(("placement", "init"), PAIRS)
BARE = ("none", "residual")
"""Placements whose head reads a stream that is not of unit rms."""
XAVIER_GAIN = 2 * R / (1 + R) ** 2
TOP = {
    "post": 1.0,
    "pre": 1.0,
    "sandwich": XAVIER_GAIN**-0.5,
    "reordered": XAVIER_GAIN**-0.5,
    "reordered_no_qk": XAVIER_GAIN**-0.5,
    "deepnorm": 8**-0.25,
    "keel": 1.0,
    "admin": 1.0,
    "normformer": (1 + R) ** 0.5,
    "layernorm_scaling": 1.0,
    "mix_ln": 1.0,
    "hybridnorm": 1.0,
    "b2t": 1.0,
    "rezero": 0.0,
    "layerscale": 0.1,
    "depth_mup": 2**-0.5,
    "completep": 1 / 2,
}
"""The top W2 gradient of a stack of one block with Xavier weights, over what it is where the FFN reads a stream of unit
rms and its branch is added as it is. A norm after the FFN divides by what it adds; one inside it lifts the hidden
activation from 1/(1+r) to 1; a multiplier multiplies; DeepNorm's beta is in W1."""


def variance(init, role, depth=1):
    assert init in VARIANCE, f"tests/test_sizes.py has no variances for the init {init!r}: add them to VARIANCE."
    return VARIANCE[init](depth)[role]


def post_square(init):
    """Mean square of what post-LN's first FFN reads: s^2 / (s^2 + eps), s^2 the stream's variance.

    Under gpt2 that is the embeddings' 4e-4 (attention adds under 1 % of it), and eps = 1e-5 takes 2.4 %.
    """
    stream = 4e-4 if init in SMALL_EMBEDDINGS else 1.0
    return stream / (stream + PAGE.eps)


def ffn_gain(init, depth=1):
    """Variance the FFN adds for an input of unit rms: d v1 / 2 after the ReLU, times r d v2. Xavier: 2r/(1+r)^2."""
    return D * variance(init, "w1", depth) / 2 * R * D * variance(init, "w2", depth)


@cache
def measured(placement, init, depth=1, setup=PAGE):
    """Readings of each seed by (quantity, block)."""
    return [
        {(reading.quantity, reading.block): reading.value for reading in measure(setting)}
        for setting in settings(placement, init, depth, setup)
    ]


def settings(placement, init, depth=1, setup=PAGE):
    return [Setting(setup=setup, placement=placement, init=init, depth=depth, seed=seed) for seed in SEEDS]


def assert_mean(values, expected, relative):
    """The mean over seeds is within a share of the expectation or three standard errors, whichever is larger."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert abs(statistics.fmean(values) - expected) < max(relative * abs(expected), 3 * error), (
        statistics.fmean(values),
        expected,
        error,
    )


def assert_mean_within(values, expected, relative):
    """The mean over seeds is within a share of the expectation, and ten seeds are enough to tell."""
    half = student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    assert half < relative * expected, (half, expected)
    assert statistics.fmean(values) == pytest.approx(expected, rel=relative)


@pytest.mark.parametrize(("placement", "init"), [pair for pair in PAIRS if pair[0] not in BARE])
def test_the_loss_at_init_is_ln_v_plus_half_the_variance_of_a_logit(placement, init):
    """ln V + d v_head / 2 for a unit-rms hidden state; Xavier's head gives ln V + d/(d + V) = 7.1116.

    0.02 in the mean of ten seeds: 1024 targets with logits of std 0.64 leave 0.02 per seed, 0.006 in the mean.
    """
    runs = measured(placement, init)
    half = D * variance(init, "head") / 2
    assert init in SMALL_EMBEDDINGS or math.log(V) + half == pytest.approx(7.1116, abs=5e-5)
    assert statistics.fmean(run["loss", None] for run in runs) == pytest.approx(math.log(V) + half, abs=0.02)


def hidden_gradient(setting):
    """Norm of the loss gradient on what the head reads."""
    weights = draw_blocks(setting)
    x, head = draw_ends(setting)
    with torch.no_grad():
        hidden = forward(x, weights, setting, quiet(setting))
    hidden.requires_grad_()
    loss = cross_entropy(hidden, head, integers(setting.seed, "targets", setting.setup))
    return torch.autograd.grad(loss, hidden)[0].norm().item()


def quiet(_):
    """A watch that reads nothing, because nothing here needs a reading before the head."""
    return Bystander()


@pytest.mark.parametrize(("placement", "init"), [pair for pair in PAIRS if pair[0] not in BARE])
def test_the_gradient_on_what_the_head_reads_has_the_size_of_the_head(placement, init):
    """sqrt(d v_head / (B T)): each token pulls with its target's row of W, 1/(B T) of it; Xavier's gives 0.01995."""
    expected = math.sqrt(D * variance(init, "head") / (B * T))
    assert init in SMALL_EMBEDDINGS or expected == pytest.approx(0.01995, abs=5e-6)
    assert_mean_within([hidden_gradient(setting) for setting in settings(placement, init)[:3]], expected, 0.02)


def test_in_post_ln_the_top_stream_gradient_is_the_one_the_head_sends():
    setting, run = settings("post", "xavier_uniform")[0], measured("post", "xavier_uniform")[0]
    assert run["grad_stream", 1] == pytest.approx(hidden_gradient(setting), rel=1e-5)


@pytest.mark.parametrize(("init", "depth"), [(init, 1) for init in INITS] + [("xavier_uniform", 2)])
def test_post_ln_ends_with_a_stream_of_variance_one_plus_the_ffn_gain(init, depth):
    """0.5 % in sigma: the seed's share is 0.1 %, and blocks this shallow leave no other."""
    gain = ffn_gain(init, depth)
    assert init != "xavier_uniform" or 1 + gain == pytest.approx(1.32)
    square = post_square(init) * (1 + gain)
    assert_mean([run["sigma", None] for run in measured("post", init, depth)], math.sqrt(square), 0.005)


@pytest.mark.parametrize(("ratio", "gain"), [(1, 0.5), (2, 0.444), (4, 0.32)])
def test_a_xavier_ffn_adds_less_variance_the_wider_it_is(ratio, gain):
    assert 2 * ratio / (1 + ratio) ** 2 == pytest.approx(gain, abs=5e-4)
    runs = measured("post", "xavier_uniform", 1, replace(PAGE, name=f"ratio_{ratio}", ffn_ratio=ratio))
    assert_mean([run["branch_rms_ffn", 1] ** 2 for run in runs], 2 * ratio / (1 + ratio) ** 2, 0.02)


def test_uniform_attention_adds_one_part_in_t_to_the_pre_ln_stream():
    """1 + 1/T + g, and equal tokens in a sequence add (1 - 1/T)/V more to what attention writes."""
    runs = measured("pre", "xavier_uniform", 1, Setup(name="uniform", attention="uniform"))
    expected = 1 + 1 / T + (1 - 1 / T) / V + ffn_gain("xavier_uniform")
    assert_mean([run["stream_rms", 1] ** 2 for run in runs], expected, 0.02)


def test_causal_attention_without_queries_adds_a_harmonic_share_to_the_pre_ln_stream():
    """1 + H_T/T + g with W_Q = W_K = 0: row t averages t tokens."""
    squares = []
    for setting in settings("pre", "xavier_uniform"):
        weights = draw_blocks(setting)
        weights[0] |= {role: torch.zeros_like(weights[0][role]) for role in ("wq", "wk")}
        seen = quiet(setting)
        last = []
        seen.normed = last.append
        forward(draw_ends(setting)[0], weights, setting, seen)
        squares.append(last[-1].square().mean().item())
    harmonic = sum(1 / t for t in range(1, T + 1))
    assert_mean(squares, 1 + harmonic / T + ffn_gain("xavier_uniform"), 0.02)


@pytest.mark.parametrize(("placement", "init"), [pair for pair in PAIRS if pair[0] in TOP and pair[0] != "rezero"])
def test_the_top_w2_gradient_is_its_unit_size_over_sigma(placement, init):
    """sqrt(r d (d v1 / 2) d v_head / (B T)) / sigma; Xavier in `page`: 0.2855 / sigma, and 0.2485 in post-LN.

    Where eps is felt, under gpt2 in post-LN, the FFN's input is short of unit rms by sqrt(post_square).
    """
    unit = math.sqrt(R * D * D * variance(init, "w1") / 2 * D * variance(init, "head") / (B * T))
    assert init != "xavier_uniform" or unit == pytest.approx(0.2855, abs=5e-5)
    unit *= TOP[placement] * (math.sqrt(post_square(init)) if placement == "post" else 1.0)
    runs = measured(placement, init)
    assert_mean_within([run["top_grad_w2", None] * run["sigma", None] for run in runs], unit, 0.03)
    if placement == "post" and init == "xavier_uniform":
        assert statistics.fmean(run["top_grad_w2", None] for run in runs) == pytest.approx(0.2485, rel=0.03)


def test_every_placement_is_in_the_table_of_top_gradients_or_has_no_unit_stream():
    assert TOP.keys() | set(BARE) == set(PLACEMENTS)


def test_no_gradient_moves_the_matrices_of_rezero():
    assert all(run["top_grad_w2", None] == 0 for run in measured("rezero", "xavier_uniform"))


@pytest.mark.parametrize(
    ("attention", "seen"), [("causal", sum(1 / t for t in range(1, T + 1)) / T), ("bidirectional", 1 / T)]
)
def test_without_queries_and_keys_attention_adds_the_share_of_a_mean(attention, seen):
    """Init theory: 1 + H_T/T + g under a causal mask, 1 + 1/T + g without; equal tokens add (1 - share)/V more."""
    runs = measured("pre", "theory", 1, Setup(name=f"page_{attention}", attention=attention))
    expected = 1 + seen + (1 - seen) / V + ffn_gain("theory")
    assert_mean([run["stream_rms", 1] ** 2 for run in runs], expected, 0.02)


FFN_ONLY_DEPTH = 8


def test_without_attention_the_pre_ln_stream_grows_by_g_a_block_and_its_gradient_falls_as_one_over_it(monkeypatch):
    """stream^2 = 1 + g l, and grad_stream times stream_rms is the same at every block; 3 % in means over ten seeds."""
    draw_block = module.draw_block

    def without_attention(*which):
        drawn = draw_block(*which)
        return drawn | {"wo": torch.zeros_like(drawn["wo"])}

    monkeypatch.setattr(module, "draw_block", without_attention)
    runs = measured.__wrapped__("pre", "xavier_uniform", FFN_ONLY_DEPTH)
    blocks = range(1, FFN_ONLY_DEPTH + 1)
    for block in blocks:
        assert_mean([run["stream_rms", block] ** 2 for run in runs], 1 + XAVIER_GAIN * block, 0.03)
    flow = [statistics.fmean(run["grad_stream", b] * run["stream_rms", b] for run in runs) for b in blocks]
    assert max(flow) / min(flow) < 1.03


@pytest.mark.parametrize("depth", [2, 4])
def test_deepnorm_keeps_sigma_and_the_top_gradient_where_its_constants_put_them(depth):
    """sigma^2 = sqrt(2L) + 0.32/(8L), top grad_w2 = 0.2855 beta/alpha = 0.1428/sqrt(L); 2 %."""
    runs = measured("deepnorm", "xavier_uniform", depth)
    assert_mean_within([run["sigma", None] ** 2 for run in runs], math.sqrt(2 * depth) + 0.32 / (8 * depth), 0.02)
    assert_mean_within([run["top_grad_w2", None] for run in runs], 0.1428 / math.sqrt(depth), 0.02)


@pytest.mark.parametrize("init", list(INITS))
def test_the_ffn_adds_what_its_two_variances_say(init):
    """d v1 / 2 after the ReLU, times r d v2, in the last of two blocks; for orthogonal matrices too."""
    runs = measured("pre", init, 2)
    assert_mean([run["branch_rms_ffn", 2] ** 2 for run in runs], ffn_gain(init, 2), 0.03)
