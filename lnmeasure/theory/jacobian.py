"""The Jacobian of LayerNorm, taken by differences: what Lemma 3 of Xiong et al. 2020 bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lnmeasure.theory.bounds import norm_jacobian
from lnmeasure.theory.flow import Array

_STEP = 1e-5
"""Of central differences, in units of the input's scale: error 1e-10 by curvature and 1e-11 by rounding, relative."""


@dataclass(frozen=True, kw_only=True)
class NormJacobian:
    """||J_LN(x)||_2 of inputs N(0, scale^2), one number per seed, beside the lemma's sqrt(d)/||x|| of each."""

    scale: float
    measured: Array
    lemma: Array


def layer_norm(x: Array, eps: float) -> Array:
    """LayerNorm over the last axis, at gain 1 and bias 0."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + eps)


def jacobian(function: Callable[[Array], Array], x: Array, step: float) -> Array:
    """J[i, j] = d function(x)_i / d x_j by central differences; function takes many x at once, [n, d]."""
    shifts = step * np.eye(len(x))
    return ((function(x + shifts) - function(x - shifts)) / (2 * step)).T


def norm_jacobians(scales: Sequence[float], width: int, eps: float, seeds: int = 10) -> list[NormJacobian]:
    """The spectral norm of LayerNorm's Jacobian at inputs of several scales; a seed's inputs differ by scale alone."""
    found = []
    for scale in scales:
        inputs = [scale * np.random.default_rng(seed).standard_normal(width) for seed in range(seeds)]
        measured = [np.linalg.norm(jacobian(lambda y: layer_norm(y, eps), x, _STEP * scale), 2) for x in inputs]
        lemma = [norm_jacobian(float(np.linalg.norm(x)), width) for x in inputs]
        found.append(NormJacobian(scale=scale, measured=np.array(measured), lemma=np.array(lemma)))
    return found
