"""Attention and FFN as maps of covariances, up and down."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lnmeasure.records import Setup
from lnmeasure.theory.flow import Array, Flow, correlation

_SAMPLES, _HARD_SAMPLES = 32, 128
_HARD = 2.0
"""Standard deviation of logits from which softmax weights vary so much that more samples are taken."""
_JITTER = 1e-9


@dataclass(frozen=True, kw_only=True)
class Gains:
    """What a sublayer's matrices do to a mean square: n_in times the variance of an entry, by role."""

    wq: float = 0.0
    wk: float = 0.0
    wv: float = 0.0
    wo: float = 1.0
    w1: float = 0.0
    w2: float = 0.0


def relu_product(rho: Array) -> Array:
    """E[relu(a) relu(b)] for unit normal a, b of correlation rho: (sin th + (pi - th) rho) / 2 pi, th = arccos rho.

    Cho and Saul 2009, degree 1; 1/2 at rho = 1.
    """
    angle = np.arccos(rho)
    return (np.sin(angle) + (np.pi - angle) * rho) / (2 * np.pi)


def relu_slope_product(rho: Array) -> Array:
    """E[relu'(a) relu'(b)], (pi - th) / 2 pi. Cho and Saul 2009, degree 0; 1/2 at rho = 1."""
    return (np.pi - np.arccos(rho)) / (2 * np.pi)


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """W2 relu(W1 x) of x: what it adds; the hidden units' covariance, per unit, and the gradient's on them by out's."""

    x: Flow
    out: Flow
    hidden: Array
    to_hidden: Array


def feed_forward(x: Flow, gains: Gains, setup: Setup, hidden_norm: bool = False) -> FeedForward:
    """The FFN of a flow. With hidden_norm what leaves the activation is normed, over its r d units."""
    rho, spread = correlation(x.cov), np.sqrt(gains.w1 * x.power)
    both = np.multiply.outer(spread, spread)
    hidden, slope = both * relu_product(rho), relu_slope_product(rho)
    if hidden_norm:
        centre = both / (2 * np.pi) if setup.norm == "layernorm" else 0.0
        by = 1 / np.sqrt(np.diagonal(hidden - centre) + setup.eps)
        norm = np.multiply.outer(by, by)
        hidden, slope = (hidden - centre) * norm, slope * norm
    # a gradient g on the output is W2^T g on the hidden units: summed over them its square is gains.w2 times g's
    to_hidden = gains.w2 * slope
    return FeedForward(
        x=x,
        out=Flow(gains.w2 * hidden, [(x, lambda gradient: gradient * to_hidden * gains.w1)]),
        hidden=hidden,
        to_hidden=to_hidden,
    )


@dataclass(frozen=True, kw_only=True)
class Attention:
    """What attention adds, the spread of its logits, the mean sum of squared weights, and the sampling error of out."""

    out: Flow
    logit_std: float | None
    participation: float
    error: float


class Sampler:
    """Attention weights of random logits, the same random numbers for every block; draw says which."""

    def __init__(self, setup: Setup, draw: int = 0) -> None:
        self._setup = setup
        half = np.random.default_rng(draw).standard_normal((_HARD_SAMPLES // 2, 2 * setup.seq_len, 2 * setup.seq_len))
        self._noise = np.stack([half, -half], axis=1).reshape(_HARD_SAMPLES, *half.shape[1:])

    @cached_property
    def visible(self) -> Array:
        """Which keys a query sees: [T, T]."""
        full = np.ones((self._setup.seq_len, self._setup.seq_len), dtype=bool)
        return np.tril(full) if self._setup.attention == "causal" else full

    def weights(self, cov: Array, spread: float) -> tuple[Array, Array]:
        """Softmax weights of both sequences, [samples, T, T] each; logits have the covariance spread^2 K_ii' K_jj'."""
        size = self._setup.seq_len
        noise = self._noise[: _HARD_SAMPLES if spread * np.diagonal(cov).mean() > _HARD else _SAMPLES]
        root = np.linalg.cholesky(cov + _JITTER * cov.trace() / len(cov) * np.eye(len(cov)))
        return tuple(
            _softmax(spread * root[part] @ noise @ root[part].T, self.visible)
            for part in (slice(0, size), slice(size, 2 * size))
        )


def attention(
    x: Flow, gains: Gains, setup: Setup, sampler: Sampler, normed: str = "", by_head: bool = False
) -> Attention:
    """The attention of a flow. normed: which of queries, keys and values are normed, as letters of 'qkv'.

    What such a norm's Jacobian removes of a gradient, two directions for LayerNorm and one for RMSNorm, is lost.
    """
    size = setup.seq_len
    corr = correlation(x.cov)
    values = corr if "v" in normed else gains.wv * x.cov
    is_uniform = setup.attention == "uniform"
    logits = corr if "q" in normed else x.cov
    spread = 0.0 if is_uniform else np.sqrt(gains.wq * gains.wk)
    if spread and "q" in normed:
        spread = 1.0
    if spread:
        pair = sampler.weights(logits, spread)
    else:
        plain = sampler.visible / sampler.visible.sum(-1, keepdims=True)
        pair = (plain[None], plain[None])
    mixed = gains.wo * _mixed(pair, values)
    per_sample = np.stack([np.einsum("ij,jk,ik->i", a, values[:size, :size], a) for a in pair[0]])
    error = per_sample.mean(-1).std() / np.sqrt(len(per_sample)) / max(per_sample.mean(), 1e-300)
    kept = 1 - (2 if setup.norm == "layernorm" else 1) / (setup.d_head if by_head else setup.width)
    through_values = gains.wo * (kept / np.outer(*[np.sqrt(x.power)] * 2) if "v" in normed else gains.wv)

    by_row = gains.wo * _softmax_spread(pair[0], values[:size, :size]) if spread else None
    through_logits = kept / np.outer(*[np.sqrt(x.power[:size])] * 2) if "q" in normed else gains.wq * gains.wk

    def pull(gradient: Array) -> Array:
        down = through_values * _mixed(pair, gradient, transposed=True)
        if by_row is not None:
            within = through_logits * _through_logits(by_row, gradient, logits[:size, :size])
            down[:size, :size] += within
            down[size:, size:] += within
        return down

    power = np.diagonal(logits)[:size]
    shown = np.multiply.outer(power, power)[sampler.visible].mean()
    return Attention(
        out=Flow(mixed, [(x, pull)]),
        logit_std=None if is_uniform else float(spread * np.sqrt(shown)),
        participation=float(np.mean([np.square(a).sum(-1).mean() for a in pair])),
        error=float(error),
    )


def _mixed(pair: tuple[Array, Array], cov: Array, transposed: bool = False) -> Array:
    """E[A K A^T], or E[A^T K A], A block-diagonal over the two sequences."""
    size = len(cov) // 2
    parts = (slice(0, size), slice(size, 2 * size))
    out = np.empty_like(cov)
    for i, a in zip(parts, pair, strict=True):
        for j, b in zip(parts, pair, strict=True):
            left, right = (a.transpose(0, 2, 1), b) if transposed else (a, b.transpose(0, 2, 1))
            out[i, j] = np.mean(left @ cov[i, j] @ right, axis=0)
    return out


def _softmax_spread(a: Array, values: Array) -> Array:
    """J V J of each row of the weights, averaged: [T, T, T]. J = diag(a) - a a^T is the softmax's Jacobian."""
    mixed = a @ values
    inner = np.einsum("nij,nij->ni", mixed, a)
    whole = np.einsum("nij,jk,nik->ijk", a, values, a, optimize=True)
    crossed = np.einsum("nij,nij,nik->ijk", a, mixed, a, optimize=True)
    own = np.einsum("ni,nij,nik->ijk", inner, a, a, optimize=True)
    return (whole - crossed - crossed.transpose(0, 2, 1) + own) / len(a)


def _through_logits(by_row: Array, gradient: Array, cov: Array) -> Array:
    """The gradient that reaches a sequence's tokens through queries and keys, [T, T], each row's logits by themselves.

    The gradient on a row's logits has covariance G_ii J V J / d_head; queries take it times keys, keys times queries.
    """
    own = np.diagonal(gradient)[: len(cov)]
    queries = own * np.einsum("ijk,jk->i", by_row, cov)
    keys = np.einsum("ijk,i->jk", by_row, own * np.diagonal(cov))
    return np.diag(queries) + keys


def _softmax(logits: Array, visible: Array) -> Array:
    shown = np.where(visible, logits, -np.inf)
    raised = np.exp(shown - shown.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
