"""Attention and FFN as maps of covariances, up and down."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lnmeasure.records import Setup
from lnmeasure.theory.flow import Array, Flow, correlation

_SAMPLES = 64
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
    """W2 relu(W1 x). hidden: [2T, 2T], per unit; out: what it adds; slope: of the pre-activations' gradient by out's."""

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
    # a gradient g on the output is W2^T g on the hidden units: their sum over units is gains.w2 / r d of g's per unit of r d
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
    """Attention weights of random logits, the same random numbers for every block."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        half = np.random.default_rng(0).standard_normal((_SAMPLES // 2, 2 * setup.seq_len, 2 * setup.seq_len))
        self._noise = np.concatenate([half, -half])

    @cached_property
    def visible(self) -> Array:
        """Which keys a query sees: [T, T]."""
        full = np.ones((self._setup.seq_len, self._setup.seq_len), dtype=bool)
        return np.tril(full) if self._setup.attention == "causal" else full

    def weights(self, cov: Array, spread: float) -> tuple[Array, Array]:
        """Softmax weights of both sequences, [samples, T, T] each, of logits whose covariance is spread^2 K_ii' K_jj'."""
        size = self._setup.seq_len
        root = np.linalg.cholesky(cov + _JITTER * cov.trace() / len(cov) * np.eye(len(cov)))
        return tuple(
            _softmax(spread * root[part] @ self._noise @ root[part].T, self.visible)
            for part in (slice(0, size), slice(size, 2 * size))
        )


def attention(x: Flow, gains: Gains, setup: Setup, sampler: Sampler, normed: str = "") -> Attention:
    """The attention of a flow. normed: which of queries, keys and values are normed, as letters of 'qkv'."""
    size = setup.seq_len
    corr = correlation(x.cov)
    values = corr if "v" in normed else gains.wv * x.cov
    is_uniform = setup.attention == "uniform"
    logits = corr if "q" in normed else x.cov
    spread = 0.0 if is_uniform else (1.0 if gains.wq * gains.wk else 0.0) if "q" in normed else np.sqrt(gains.wq * gains.wk)
    if spread:
        pair = sampler.weights(logits, spread)
    else:
        plain = sampler.visible / sampler.visible.sum(-1, keepdims=True)
        pair = (plain[None], plain[None])
    mixed = gains.wo * _mixed(pair, values)
    per_sample = np.stack([np.einsum("ij,jk,ik->i", a, values[:size, :size], a) for a in pair[0]])
    error = per_sample.mean(-1).std() / np.sqrt(len(per_sample)) / max(per_sample.mean(), 1e-300)
    through_values = gains.wo * (np.outer(*[1 / np.sqrt(np.maximum(x.power, 1e-300))] * 2) if "v" in normed else gains.wv)

    def pull(gradient: Array) -> Array:
        down = through_values * _mixed(pair, gradient, transposed=True)
        if spread and "q" not in normed:
            down += _through_logits(pair[0], gradient, x.cov, values, gains) if gains.wq * gains.wk else 0.0
        elif spread:
            down += _through_logits(pair[0], gradient, corr, values, gains, unit=True) / np.outer(*[np.sqrt(x.power)] * 2)
        return down

    seen = sampler.visible
    return Attention(
        out=Flow(mixed, [(x, pull)]),
        logit_std=None if is_uniform else float(spread * np.sqrt(np.multiply.outer(*[np.diagonal(logits)[:size]] * 2)[seen].mean())),
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


def _through_logits(a: Array, gradient: Array, cov: Array, values: Array, gains: Gains, unit: bool = False) -> Array:
    """The gradient that reaches a sequence's tokens through queries and keys, [2T, 2T], each token's by itself.

    A row's softmax has the Jacobian J = diag(a) - a a^T; the gradient on its logits has covariance G_ii J V J / d_head,
    and queries take it times keys, keys times queries.
    """
    size = a.shape[-1]
    own, keys = np.diagonal(gradient)[:size], cov[:size, :size]
    jacobian = np.einsum("nij,jk->nijk", a, np.eye(size)) - a[..., :, None] * a[..., None, :]
    spread = np.mean(jacobian @ values[:size, :size] @ jacobian, axis=0) * (gains.wo * own)[:, None, None]
    both = 1.0 if unit else gains.wq * gains.wk
    queries = np.einsum("ijk,jk->i", spread, keys)
    by_key = np.einsum("ijk,i->jk", spread, np.diagonal(keys))
    within = both * (np.diag(queries) + by_key)
    down = np.zeros_like(gradient)
    down[:size, :size] = down[size:, size:] = within
    return down


def _softmax(logits: Array, visible: Array) -> Array:
    shown = np.where(visible, logits, -np.inf)
    raised = np.exp(shown - shown.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
