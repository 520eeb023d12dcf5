"""Bounds and guides: what papers state, each as a function with its assumptions. Per element where a size is meant."""

import math
from collections.abc import Sequence

XIONG = "Xiong et al. 2020, arXiv:2002.04745"


def ffn_gain(ratio: float) -> float:
    """What a Xavier FFN of ratio r adds to a unit mean square: 2r/(1+r)^2, which is 1/2 for r = 1.

    The first matrix has variance 2/(d + rd), ReLU halves, the second has the same variance and r d inputs.
    """
    return 2 * ratio / (1 + ratio) ** 2


def relu_square(variance: float) -> float:
    """E relu(x)^2 per element for x ~ N(0, variance): variance / 2. Lemma 1 of Xiong et al. 2020."""
    return variance / 2


def post_stream_square(ratio: float = 1.0) -> float:
    """E ||x_5||^2 / d of post-LN, before the norm after the FFN, at every block: 1 + 2r/(1+r)^2, 3/2 for r = 1.

    Lemma 2 of Xiong et al. 2020, which has r = 1: Xavier weights, an FFN input of unit rms.
    """
    return 1 + ffn_gain(ratio)


def pre_stream_square(block: int, ratio: float = 1.0) -> tuple[float, float]:
    """Bounds on E ||x_l||^2 / d of pre-LN after a block l: 1 + g l and 1 + (1 + g) l; l/2 and 3l/2 for r = 1.

    Lemma 2 of Xiong et al. 2020: W_Q = W_K = 0, so that attention adds the mean of what it sees, between 0 and 1.
    """
    gain = ffn_gain(ratio)
    return 1 + gain * block, 1 + (1 + gain) * block


def norm_jacobian(length: float, width: int) -> float:
    """||J_LN(x)||_2 = sqrt(d) / ||x||, for x of mean zero and without eps. Lemma 3 of Xiong et al. 2020."""
    return math.sqrt(width) / length


def top_gradient_scale(placement: str, width: int, depth: int) -> float:
    """What the last FFN's gradient is O() of: d sqrt(ln d) in post-LN, d sqrt(ln d / L) in pre-LN.

    Theorem 1 of Xiong et al. 2020: an upper bound up to a constant it does not state. ValueError for other placements.
    """
    if placement not in ("post", "pre"):
        raise ValueError(f"placement is {placement!r}: the theorem speaks of post and pre.")
    return width * math.sqrt(math.log(width) / (1 if placement == "post" else depth))


def root_guide(depth: float, anchor_depth: float, anchor: float) -> float:
    """1/sqrt(L) through a value at one depth: the guide of the depth chart."""
    return anchor * math.sqrt(anchor_depth / depth)


def scalar_decay(factor: float, blocks: int) -> float:
    """f^n: what a factor per block leaves after n blocks. S1's chart."""
    return factor**blocks


def shortcut_product(sigmas: Sequence[float]) -> float:
    """The product of 1/sigma over norms: what is left of a gradient that takes shortcuts only."""
    return math.prod(1 / sigma for sigma in sigmas)
