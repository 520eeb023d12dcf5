"""predict: a Setting becomes what the mean-field recursion says it reads. Nothing is fitted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lnmeasure.records import Setting, Setup
from lnmeasure.theory.flow import Array, Flow, added, correlation, gradients, normed
from lnmeasure.theory.sublayers import Attention, FeedForward, Gains, Sampler, attention, feed_forward
from lnmeasure.theory.updates import FINAL_NORM, GAINS, UPDATES
from lnmeasure.theory.variances import VARIANCES, embedding_variance, head_variance, variance

THEORY = "mean_field"
SOURCE = "mean-field recursion over token covariances (lnmeasure/theory), version 3"
"""Raised in its version whenever a prediction of an unchanged setting may change: all are then made again."""
FORWARD_ONLY = ("none", "residual", "rezero")
"""Placements whose head does not read a normed stream: how the loss gradient begins is not said."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """One predicted reading: a quantity, at a block (from 1) or, with block None, of the whole stack."""

    quantity: str
    value: float
    block: int | None = None
    theory: str = THEORY
    source: str = SOURCE


def says(setting: Setting) -> bool:
    """Whether the recursion can express a setting: its placement and init are known, its activation is ReLU."""
    setup = setting.setup
    return (
        setting.placement in UPDATES
        and setting.init in VARIANCES
        and setup.activation == "relu"
        and not setup.tied_head
        and setup.seq_len > 1
        and setup.encoder == "none"
    )


def predict(setting: Setting, draw: int = 0) -> list[Predicted]:
    """Every reading the recursion can say of a setting; none where it says nothing. Its seed does not matter.

    sigma, stream_rms, branches, cosines, attention, loss; and but for FORWARD_ONLY gradients of W_1, W_2 and stream.
    draw says which random numbers attention is averaged over: what is kept is of draw 0.
    """
    return list(_Stack(setting, draw).readings()) if says(setting) else []


def sampling_error(setting: Setting, draws: int = 4) -> dict[str, float]:
    """Relative standard deviation between draws, by quantity: of a profile at the block where it is largest."""
    by_reading: dict[tuple[str, int | None], list[float]] = {}
    for draw in range(draws):
        for said in predict(setting, draw):
            by_reading.setdefault((said.quantity, said.block), []).append(said.value)
    found: dict[str, float] = {}
    for (quantity, _), values in by_reading.items():
        mean = abs(np.mean(values))
        found[quantity] = max(found.get(quantity, 0.0), float(np.std(values, ddof=1) / mean) if mean else 0.0)
    return found


@dataclass(kw_only=True)
class _Block:
    """What a block leaves behind for its readings."""

    attention: Attention | None = None
    ffn: FeedForward | None = None
    branches: list[Flow] = field(default_factory=list)
    total: Flow | None = None
    output: Flow | None = None
    dual: Array | None = None


class _Stack:
    """A stack's flows, block by block. It is the Site of its updates."""

    def __init__(self, setting: Setting, draw: int = 0) -> None:
        self._setting, self._setup = setting, setting.setup
        self.depth, self.block, self.memory = setting.depth, 0, {}
        self._sampler = Sampler(self._setup, draw)
        self.blocks: list[_Block] = []
        self._divided: Flow | None = None

    def attention(self, x: Flow, normed: str = "", by_head: bool = False) -> Flow:
        """What attention makes of x."""
        made = attention(x, self._gains(), self._setup, self._sampler, normed, by_head)
        self.blocks[-1].attention = made
        return made.out

    def ffn(self, x: Flow, normed: str = "") -> Flow:
        """What the FFN makes of x."""
        made = feed_forward(x, self._gains(), self._setup, hidden_norm=bool(normed))
        self.blocks[-1].ffn = made
        return made.out

    def norm(self, x: Flow) -> Flow:
        """x normed, and remembered as what a norm divided last.

        The Jacobian removes two directions of d, the mean's and x's own. From a residual sum it removes nothing: the
        gradient that comes down to it from the blocks above has no such part. Scaling what they read scales what they
        give, so by Euler's theorem x . dL/dx = 0 goes down from norm to norm.
        """
        self._divided = x
        removed = 0 if x is self.blocks[-1].total else 2 if self._setup.norm == "layernorm" else 1
        return normed(x, self._setup.eps, 1 - removed / self._setup.width)

    def add(self, stream: Flow, branch: Flow) -> Flow:
        """The residual sum, kept with its branch."""
        here = self.blocks[-1]
        here.branches.append(branch)
        here.total = added(stream, branch)
        return here.total

    def readings(self) -> Iterator[Predicted]:
        """Run up, then down."""
        start = x = Flow(start_covariance(self._setting))
        while self.block < self.depth:
            self.block += 1
            self.blocks.append(_Block())
            x = UPDATES[self._setting.placement](x, self)
            self.blocks[-1].output, self.blocks[-1].dual = x, self.memory.get("dual")
        top = self.norm(x) if self._setting.placement in FINAL_NORM else x
        yield Predicted(quantity="embedding_rms", value=start.rms)
        yield from self._up(top)
        if self._setting.placement not in FORWARD_ONLY:
            yield from self._down(top)

    def _up(self, top: Flow) -> Iterator[Predicted]:
        if self._divided is not None:
            yield Predicted(quantity="sigma", value=self._divided.rms)
        if self._setting.placement not in FORWARD_ONLY:
            half = self._setup.width * head_variance(self._setting.init, self._setup) * top.power.mean() / 2
            yield Predicted(quantity="loss", value=math.log(self._setup.vocab) + half)
        for number, block in enumerate(self.blocks, start=1):
            yield from _of_block(number, block)
        if self.blocks[-1].dual is not None:
            yield Predicted(quantity="sigma_dual", value=_rms(self.blocks[-1].dual))

    def _down(self, top: Flow) -> Iterator[Predicted]:
        found = gradients(top, self._head_gradient(top))
        width, hidden = self._setup.width, self._setup.d_ff
        for number, block in enumerate(self.blocks, start=1):
            on_branch = found[id(block.ffn.out)]
            w2 = self._size(on_branch, hidden * block.ffn.hidden)
            w1 = self._size(on_branch * block.ffn.to_hidden, width * block.ffn.x.cov)
            values = {"grad_w2": w2, "grad_w1": w1}
            values["grad_stream"] = self._size(found[id(block.output)])
            values["grad_presum"] = self._size(found[id(block.total)])
            yield from (Predicted(quantity=name, value=value, block=number) for name, value in values.items())
        yield Predicted(quantity="top_grad_w2", value=w2)

    def _size(self, gradient: Array, activations: Array | None = None) -> float:
        """Frobenius norm: over all tokens, or of the matrix that meets activations, over all pairs of tokens."""
        size, batch = self._setup.seq_len, self._setup.batch
        if activations is None:
            return math.sqrt(batch * np.diagonal(gradient)[:size].sum())
        pairs = gradient * activations
        return math.sqrt(batch * pairs[:size, :size].sum() + batch * (batch - 1) * pairs[:size, size:].sum())

    def _head_gradient(self, top: Flow) -> Array:
        """The covariance of the loss gradient on what the head reads, [2T, 2T]: targets, and softmax's coherent part.

        Per token W^T (p - e_y) / (B T). Targets are drawn one by one: 1 - 1/V on the diagonal. Of softmax's part the
        norm projects out what lies along the stream; the spread of W^T W leaves (e^(s^2 R) - 1) / V, s^2 = d v.
        """
        setup, head = self._setup, head_variance(self._setting.init, self._setup)
        logits = setup.width * head * top.cov
        alone = (1 - self._coincidence()) * np.eye(len(logits))
        coherent = np.expm1(logits) / setup.vocab
        return setup.width * head * (alone + coherent) / (setup.batch * setup.seq_len) ** 2

    def _coincidence(self) -> float:
        return coincidence(self._setup)

    def _gains(self) -> Gains:
        setting, setup = self._setting, self._setup
        shapes = setup.weight_shapes()
        beta = GAINS.get(setting.placement, lambda role, depth: 1.0)
        return Gains(
            **{
                role: n_in * variance(setting.init, setup, role, self.block, self.depth) * beta(role, self.depth)
                for role, (_, n_in) in shapes.items()
            }
        )


def _of_block(number: int, block: _Block) -> Iterator[Predicted]:
    half = len(block.output.cov) // 2
    corr = correlation(block.output.cov)
    off = ~np.eye(half, dtype=bool)
    values = {
        "stream_rms": block.total.rms,
        "branch_rms_attention": block.branches[0].rms,
        "branch_rms_ffn": block.branches[1].rms,
        "token_cosine": corr[:half, :half][off].mean(),
        "cross_sequence_cosine": corr[:half, half:].mean(),
        "attention_participation": block.attention.participation,
    }
    if block.attention.logit_std is not None:
        values["attention_logit_std"] = block.attention.logit_std
    if block.dual is not None:
        values["stream_rms_dual"] = _rms(block.dual)
    return (Predicted(quantity=name, value=float(value), block=number) for name, value in values.items())


def _rms(cov: Array) -> float:
    return math.sqrt(np.diagonal(cov).mean())


def start_covariance(setting: Setting) -> Array:
    """x_0's: embedding_std^2 on the diagonal, and where two tokens may be the same as much as they are, [2T, 2T]."""
    setup, size = setting.setup, 2 * setting.setup.seq_len
    same = coincidence(setup) if setup.input == "tokens" else 0.0
    power = embedding_variance(setting.init, setup) if setup.input == "tokens" else setup.embedding_std**2
    return power * (same * np.ones((size, size)) + (1 - same) * np.eye(size))


def coincidence(setup: Setup) -> float:
    """The chance that two tokens are the same: 1/V, or more where some are drawn more often."""
    if setup.data == "uniform":
        return 1 / setup.vocab
    weight = 1 / np.arange(1, setup.vocab + 1)
    return float(np.square(weight / weight.sum()).sum())
