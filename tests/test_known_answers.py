"""Known answers that hold exactly, over every registered placement and init, in float64 on a small stack.

1 and 2: a norm alone. 3: mean against sum. 10: a multiplier in the init or in the forward pass. 12: causality.
13: silent sublayers. 14: no two placements are alike. Answer 15 is test_plain.py, the sizes in `page` test_sizes.py.
"""

import math
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest
import torch

from lnmeasure.core import stack
from lnmeasure.core.draws import integers, normal, raw_draw
from lnmeasure.core.initialise import INITS, draw_blocks
from lnmeasure.core.measure import cross_entropy, draw_ends
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import Setting, Setup
from tests.plain import Site, closed, token_losses, update_of

SMALL = Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11, dtype="float64")
BLIND = SimpleNamespace(
    enter=lambda block: None,
    add=lambda sublayer, stream, branch: stream + branch,
    attended=lambda logits, visible, weights: None,
    normed=lambda x: None,
    leave=lambda output, dual: None,
)
EXACT = 1e-12
every_placement = pytest.mark.parametrize("placement", list(PLACEMENTS))
every_init = pytest.mark.parametrize("init", list(INITS))
every_norm = pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])


def is_silent(placement, init, role):
    """Whether a matrix has no gradient: rezero's sublayers add nothing, theory's queries and keys are zero."""
    return placement == "rezero" or (init == "theory" and role in ("wq", "wk"))


def small(placement, init="xavier_uniform", depth=4, **changes):
    return Setting(setup=replace(SMALL, **changes), placement=placement, init=init, depth=depth, seed=3)


def drawn(setting):
    """x_0, the weights as leaves, the head and the targets."""
    weights = draw_blocks(setting)
    for matrices in weights:
        for matrix in matrices.values():
            matrix.requires_grad_()
    return *draw_ends(setting), weights, integers(setting.seed, "targets", setting.setup)


def run(setting, loss=cross_entropy):
    """The hidden states, and the gradient of every matrix by (block, role)."""
    x, head, weights, targets = drawn(setting)
    hidden = stack.forward(x, weights, setting, BLIND)
    leaves = {(block, role): m for block, matrices in enumerate(weights, 1) for role, m in matrices.items()}
    gradients = torch.autograd.grad(loss(hidden, head, targets), list(leaves.values()))
    return hidden.detach(), dict(zip(leaves, gradients, strict=True))


def token(sigma, norm, mean=0.7):
    """One token [256] whose sigma, the rms a norm divides by, is as asked; its mean is not zero."""
    x = normal(raw_draw(0, "test", 0, (256,)), 1.0) + mean
    spread = (x - x.mean()).square().mean().sqrt() if norm == "layernorm" else x.square().mean().sqrt()
    return x * sigma / spread


def singular_values(x, norm, eps):
    """Of the Jacobian of the core's norm at one token, smallest first: [256]."""
    setup = Setup(name="alone", norm=norm, eps=eps)
    jacobian = torch.autograd.functional.jacobian(lambda y: stack.normalise(y, setup, BLIND), x)
    return torch.linalg.svdvals(jacobian).flip(0)


@every_norm
@pytest.mark.parametrize("sigma", [0.02, 1.0, 30.0])
def test_without_eps_a_norm_divides_every_direction_by_sigma_but_the_ones_it_removes(norm, sigma):
    removed = {"layernorm": 2, "rmsnorm": 1}[norm]
    scaled = singular_values(token(sigma, norm), norm, eps=0.0) * sigma
    assert scaled[:removed].abs().max() < EXACT
    assert (scaled[removed:] - 1).abs().max() < EXACT


@every_norm
def test_with_eps_the_radial_direction_survives_as_eps_over_its_cube(norm):
    sigma, eps = 0.02, 1e-5
    values = singular_values(token(sigma, norm), norm, eps)
    radial = {"layernorm": 1, "rmsnorm": 0}[norm]
    scale = math.sqrt(sigma**2 + eps)
    assert values[:radial].abs().sum() < EXACT / scale
    assert values[radial].item() == pytest.approx(eps / scale**3, rel=EXACT * 1e3)  # a small value of a larger matrix
    assert values[-1].item() == pytest.approx(1 / scale, rel=EXACT)


def test_sqrt_d_over_the_length_of_x_is_the_jacobian_norm_only_where_x_has_no_mean():
    for mean, holds in ((0.0, True), (0.7, False)):
        x = token(2.0, "layernorm", mean)
        x = x if mean else x - x.mean()
        largest = singular_values(x, "layernorm", eps=0.0)[-1].item()
        assert (largest == pytest.approx(math.sqrt(256) / x.norm().item(), rel=EXACT)) == holds


@every_norm
@pytest.mark.parametrize("sigma", [0.02, 1.0])
def test_eps_keeps_the_output_of_a_norm_below_one(norm, sigma):
    out = stack.normalise(token(sigma, norm), Setup(name="alone", norm=norm), BLIND)
    expected = sigma / math.sqrt(sigma**2 + 1e-5)
    assert out.square().mean().sqrt().item() == pytest.approx(expected, rel=EXACT)
    assert sigma != 0.02 or expected == pytest.approx(0.98773, abs=5e-6)


@every_init
@every_placement
def test_a_sum_over_tokens_multiplies_every_gradient_by_batch_times_seq(placement, init):
    setting = small(placement, init)
    _, mean = run(setting)
    _, total = run(setting, loss=lambda hidden, head, targets: token_losses(hidden, head, targets).sum())
    for key, gradient in mean.items():
        assert (gradient.norm() > 0) != is_silent(placement, init, key[1]), key
        assert (total[key] - 15 * gradient).norm() <= EXACT * total[key].norm(), key


@every_placement
def test_a_multiplier_in_the_init_or_in_the_forward_pass_differs_only_in_the_gradient(placement, monkeypatch):
    hidden, gradients = run(small(placement, "xavier_residual"))
    for name in ("attend", "feed_forward"):
        plain = getattr(stack, name)
        monkeypatch.setattr(stack, name, lambda *args, f=plain, **kwargs: f(*args, **kwargs) / math.sqrt(2 * 4))
    multiplied_hidden, multiplied = run(small(placement, "xavier_uniform"))
    assert (hidden - multiplied_hidden).norm() <= EXACT * hidden.norm()
    for (block, role), gradient in gradients.items():
        factor = math.sqrt(2 * 4) if role in ("wo", "w2") else 1.0
        assert (gradient - factor * multiplied[block, role]).norm() <= EXACT * gradient.norm(), (block, role)


def input_gradients(setting, t):
    """Norm of the gradient on each position of x_0 under a random cotangent on position t of the hidden states."""
    x, _, weights, _ = drawn(setting)
    x.requires_grad_()
    hidden = stack.forward(x, weights, setting, BLIND)
    cotangent = torch.zeros_like(hidden)
    cotangent[:, t] = normal(raw_draw(0, "test", t, tuple(hidden[:, t].shape)), 1.0)
    return torch.autograd.grad(hidden, x, cotangent)[0].norm(dim=(0, 2))


@every_norm
@every_init
@every_placement
def test_under_a_causal_mask_no_gradient_reaches_a_later_token(placement, init, norm):
    for t in range(SMALL.seq_len):
        norms = input_gradients(small(placement, init, norm=norm), t)
        first = t if placement == "rezero" else 0
        assert (norms[first : t + 1] > 0).all()
        assert (norms[t + 1 :] == 0).all()


@pytest.mark.parametrize("attention", ["bidirectional", "uniform"])
@pytest.mark.parametrize("placement", [name for name in PLACEMENTS if name != "rezero"])
def test_without_a_mask_gradient_reaches_every_token(placement, attention):
    assert (input_gradients(small(placement, attention=attention), 1) > 0).all()


def silent(setting, watch):
    """The hidden states where every matrix is zero, and x_0."""
    x, _, weights, _ = drawn(setting)
    zero = [{role: torch.zeros_like(matrix) for role, matrix in matrices.items()} for matrices in weights]
    return stack.forward(x, zero, setting, watch), x


@every_norm
def test_silent_sublayers_make_every_pre_ln_block_the_identity(norm):
    left = []
    watch = SimpleNamespace(**vars(BLIND) | {"leave": lambda output, dual: left.append(output)})
    _, x = silent(small("pre", norm=norm), watch)
    assert len(left) == 4
    assert all(torch.equal(output, x) for output in left)


@every_norm
@every_placement
def test_silent_sublayers_leave_only_what_the_update_does_to_the_stream(placement, norm):
    setting = small(placement, norm=norm)
    hidden, x = silent(setting, BLIND)
    update, notes = update_of(placement), {}

    def by_hand(y):
        y = y - y.mean(-1, keepdim=True) if norm == "layernorm" else y
        return y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    def nothing(y, *_, **__):
        return torch.zeros_like(y)

    for block in range(1, setting.depth + 1):
        x = update.block(x, Site(block, setting.depth, by_hand, nothing, nothing, notes))[1].stream
    assert (hidden - closed(update, x, notes, by_hand)).norm() <= EXACT * x.norm()


@every_init
def test_no_two_placements_are_alike_on_the_same_draws(init):
    """At four blocks no two updates of the catalogue are equal; where weights are shared, rounding is 1e-15.

    But without queries and keys to norm, OLMo 2's update and its control are the same.
    """
    found = {placement: run(small(placement, init)) for placement in PLACEMENTS}
    for one, other in combinations(PLACEMENTS, 2):
        (hidden, gradients), (other_hidden, other_gradients) = found[one], found[other]
        alike = init == "theory" and {one, other} == {"reordered", "reordered_no_qk"}
        assert ((hidden - other_hidden).abs().max() > 1e-9) != alike, (one, other)
        for key, gradient in gradients.items():
            silent_too = is_silent(one, init, key[1]) and is_silent(other, init, key[1])
            differ = (gradient - other_gradients[key]).norm() > 1e-6 * gradient.norm()
            assert differ != (alike or silent_too), (one, other, key)


@pytest.mark.parametrize(("one", "other", "depth"), [("layernorm_scaling", "pre", 1), ("mix_ln", "pre", 3)])
def test_some_placements_are_alike_in_shallow_stacks(one, other, depth):
    (hidden, gradients), (same, alike) = run(small(one, depth=depth)), run(small(other, depth=depth))
    assert torch.equal(hidden, same)
    assert all(torch.equal(gradients[key], alike[key]) for key in gradients)


def test_rezero_is_the_identity_and_moves_no_matrix():
    setting = small("rezero")
    hidden, gradients = run(setting)
    assert torch.equal(hidden, drawn(setting)[0])
    assert all((gradient == 0).all() for gradient in gradients.values())


def test_zero_sublayers_make_pre_ln_of_any_depth_one_norm_of_x_0():
    setting = small("pre", depth=7)
    hidden, x = silent(setting, BLIND)
    assert torch.equal(hidden, stack.normalise(x, setting.setup, BLIND))


@every_init
@every_placement
def test_no_branch_is_dead_and_no_two_blocks_are_copies(placement, init):
    setting = small(placement, init)
    hidden, gradients = run(setting)
    assert all((g.norm() > 0) != is_silent(placement, init, role) for (_, role), g in gradients.items())
    for matrices, later in combinations(draw_blocks(setting), 2):
        assert not any(torch.equal(m, later[role]) for role, m in matrices.items() if m.any())
    for block in range(1, setting.depth + 1):
        x, _, weights, _ = drawn(setting)
        for role in ("wo", "w2"):
            muted = [dict(matrices) for matrices in weights]
            muted[block - 1][role] = torch.zeros_like(muted[block - 1][role])
            differs = (stack.forward(x, muted, setting, BLIND) - hidden).abs().max() > 1e-9
            assert differs != (placement == "rezero"), (block, role)


@pytest.mark.parametrize(("depth", "scale"), [(18, 0.1), (19, 1e-5), (24, 1e-5), (25, 1e-6)])
def test_layerscale_multiplies_branches_by_less_in_deeper_stacks(depth, scale):
    """In the first block, whose input every stack shares."""
    seen = {}
    for placement in ("pre", "layerscale"):
        branches = []
        watch = SimpleNamespace(**vars(BLIND) | {"add": lambda name, x, y, kept=branches: kept.append(y) or x + y})
        x, _, weights, _ = drawn(small(placement, depth=depth))
        stack.forward(x, weights, small(placement, depth=depth), watch)
        seen[placement] = branches[0]
    assert torch.allclose(seen["layerscale"], scale * seen["pre"], rtol=EXACT, atol=0)
