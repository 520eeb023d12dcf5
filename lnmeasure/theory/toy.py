"""The handbook's toy: one token of width d through n blocks of tanh(x W), and its gradient on the way down.

Backward once as the handbook simplifies it, where no norm has a Jacobian and a factor is set by hand, and once exactly.
pre: x <- x + tanh(N(x) W); post: x <- N(x + tanh(x W)). W ~ N(0, scale^2), drawn anew for each draw and block.
"""

from dataclasses import dataclass

import numpy as np

from lnmeasure.theory.flow import Array
from lnmeasure.theory.jacobian import layer_norm

PRE_FACTOR = 0.5
"""What the handbook multiplies pre-norm's branch by on the way down."""
PLACEMENTS = ("post", "pre")
_EPS = 1e-5


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A toy: blocks n, width d, standard deviation of a weight, and post-norm's hand-set factor per block."""

    blocks: int
    width: int = 64
    scale: float = 0.02
    factor: float = 0.95
    draws: int = 64


def profiles(toy: Toy, placement: str, exact: bool, seed: int = 0) -> Array:
    """||g|| / sqrt(d) of the gradient on the input of every block and on the last output, [draws, n + 1].

    g on the last output is N(0, 1), a random cotangent: through a LayerNorm one of ones comes to nothing.
    """
    random = np.random.default_rng(seed)
    x = random.standard_normal((toy.draws, toy.width))
    weights = toy.scale * random.standard_normal((toy.blocks, toy.draws, toy.width, toy.width))
    gradient = random.standard_normal((toy.draws, toy.width))
    inputs = []
    for weight in weights:
        inputs.append(x)
        x = _block(x, weight, placement)
    sizes = [_size(gradient)]
    pull = _pull_exactly if exact else _pull_simply
    for x, weight in zip(reversed(inputs), reversed(weights), strict=True):
        gradient = pull(gradient, x, weight, placement, toy.factor)
        sizes.append(_size(gradient))
    return np.stack(sizes[::-1], axis=1)


def _block(x: Array, weight: Array, placement: str) -> Array:
    if placement == "pre":
        return x + np.tanh(_times(layer_norm(x, _EPS), weight))
    return layer_norm(x + np.tanh(_times(x, weight)), _EPS)


def _pull_simply(gradient: Array, x: Array, weight: Array, placement: str, factor: float) -> Array:
    if placement == "pre":
        return gradient + PRE_FACTOR * _through_branch(gradient, layer_norm(x, _EPS), weight)
    return factor * (gradient + _through_branch(gradient, x, weight))


def _pull_exactly(gradient: Array, x: Array, weight: Array, placement: str, factor: float) -> Array:
    if placement == "pre":
        return gradient + _through_norm(_through_branch(gradient, layer_norm(x, _EPS), weight), x)
    gradient = _through_norm(gradient, x + np.tanh(_times(x, weight)))
    return gradient + _through_branch(gradient, x, weight)


def _through_branch(gradient: Array, x: Array, weight: Array) -> Array:
    """W (g (1 - tanh^2(x W)))"""
    return _times(gradient * (1 - np.square(np.tanh(_times(x, weight)))), np.swapaxes(weight, 1, 2))


def _through_norm(gradient: Array, x: Array) -> Array:
    """J_LN(x)^T g = (g - mean g - y mean(g y)) / sqrt(var x + eps), y = LN(x); J_LN is symmetric."""
    y = layer_norm(x, _EPS)
    spread = np.sqrt(x.var(-1, keepdims=True) + _EPS)
    return (gradient - gradient.mean(-1, keepdims=True) - y * (gradient * y).mean(-1, keepdims=True)) / spread


def _times(x: Array, weight: Array) -> Array:
    return np.einsum("ni,nij->nj", x, weight)


def _size(gradient: Array) -> Array:
    return np.sqrt(np.square(gradient).mean(-1))
