"""The handbook's toy: its simplified backward as described, and an exact one that is autograd's."""

import numpy as np
import pytest
import torch

from lnmeasure.theory.toy import PLACEMENTS, Toy, profiles


def by_autograd(toy, placement, seed):
    """The same draws through torch: ||g|| / sqrt(d) at every block, [draws, n + 1]."""
    random = np.random.default_rng(seed)
    start = torch.tensor(random.standard_normal((toy.draws, toy.width)))
    weights = torch.tensor(toy.scale * random.standard_normal((toy.blocks, toy.draws, toy.width, toy.width)))
    cotangent = torch.tensor(random.standard_normal((toy.draws, toy.width)))

    def norm(x):
        return torch.nn.functional.layer_norm(x, (toy.width,))

    streams = [start.requires_grad_()]
    for weight in weights:
        x = streams[-1]
        inner = norm(x) if placement == "pre" else x
        total = x + torch.tanh(torch.einsum("ni,nij->nj", inner, weight))
        streams.append(total if placement == "pre" else norm(total))
    found = torch.autograd.grad(streams[-1], streams, cotangent)
    return np.stack([g.square().mean(-1).sqrt().numpy() for g in found], axis=1)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_exact_profile_is_autograds(placement):
    toy = Toy(blocks=7, width=16, scale=0.1, draws=3)
    assert profiles(toy, placement, exact=True, seed=4) == pytest.approx(by_autograd(toy, placement, 4), rel=1e-10)


def test_the_simplified_post_norm_falls_by_its_factor_and_nothing_else():
    """0.963 a block, 0.95 sqrt(1 + d 0.02^2): what the factor takes; with factor 1 it grows instead."""
    sizes = profiles(Toy(blocks=48), "post", exact=False).mean(0)
    assert (sizes[0] / sizes[-1]) ** (1 / 48) == pytest.approx(0.95 * (1 + 64 * 0.02**2) ** 0.5, rel=0.004)
    free = profiles(Toy(blocks=48, factor=1.0), "post", exact=False).mean(0)
    assert free[0] > free[-1]


def test_exact_gradients_of_the_toy_do_not_decay_in_either_placement():
    """The handbook's point is gone: at 48 blocks both are larger at the bottom than the simplified post-norm's 0.16."""
    for placement in PLACEMENTS:
        sizes = profiles(Toy(blocks=48), placement, exact=True).mean(0)
        assert 0.9 < sizes[0] / sizes[-1] < 1.7


def test_a_cotangent_of_ones_comes_to_nothing_through_a_layer_norm():
    from lnmeasure.theory import toy

    x = np.random.default_rng(0).standard_normal((2, 16))
    assert toy._through_norm(np.ones((2, 16)), x) == pytest.approx(0, abs=1e-12)
