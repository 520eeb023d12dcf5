"""The instrument: reads every tensor as it passes, forward at once, backward through hooks that keep only norms."""

import math
from functools import partial

import torch
from torch import Tensor

from lnmeasure.core import metrics
from lnmeasure.core.initialise import Weights
from lnmeasure.records import QUANTITIES, Reading, Setup


class Instrument:
    """Collects the readings of one forward and one backward pass. It is the Watch that measure gives to the stack.

    The un-normalised stream leaving a block is its last residual sum: in post-LN that is the input of the block's
    last norm, in pre-LN the block's output. sigma is taken from the last norm of the whole stack.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._values: dict[tuple[str, int | None], float | str | None] = {}
        self._block = 0
        self._sum: Tensor | None = None
        self._divided: Tensor | None = None

    def enter(self, block: int) -> None:
        """Block number block (from 1) begins."""
        self._block = block

    def add(self, sublayer: str, stream: Tensor, branch: Tensor) -> Tensor:
        """Reads the branch and returns stream + branch, [batch, seq, d]."""
        self.read(f"branch_rms_{sublayer}", metrics.rms(branch.detach()), self._block)
        self._sum = stream + branch
        return self._sum

    def attended(self, logits: Tensor | None, visible: Tensor, weights: Tensor) -> None:
        """Reads how wide the attention logits are and how few tokens the weights pick."""
        if logits is not None:
            self.read("attention_logit_std", metrics.logit_std(logits.detach(), visible), self._block)
        self.read("attention_participation", metrics.participation(weights.detach()), self._block)

    def normed(self, x: Tensor) -> None:
        """Remembers the input of the last norm seen, [batch, seq, d]."""
        self._divided = x.detach()

    def leave(self, output: Tensor) -> None:
        """Reads the finished block and hooks its stream, so that the backward pass leaves its norms here."""
        block, stream, rows = self._block, self._sum, output.detach()
        self._sum = None  # the stream's hooks hold the instrument: holding the stream too would keep all of it alive
        self.read("stream_rms", metrics.rms(stream.detach()), block)
        self.read("token_cosine", metrics.token_cosine(rows), block)
        self.read("cross_sequence_cosine", metrics.cross_sequence_cosine(rows), block)
        stream.register_hook(partial(self._read_gradient, "grad_presum", block))
        output.register_hook(partial(self._read_gradient, "grad_stream", block))

    def follow(self, weights: Weights) -> None:
        """Makes every matrix a leaf whose gradient is reduced to its norm and dropped as soon as it is complete."""
        for block, matrices in enumerate(weights, start=1):
            for role, matrix in matrices.items():
                matrix.requires_grad_().register_post_accumulate_grad_hook(
                    partial(self._read_weight_gradient, f"grad_{role}", block)
                )

    def read(self, quantity: str, value: float | str | None, block: int | None = None) -> None:
        """Keeps one number, or the status that says why there is none; None where the quantity does not exist here."""
        self._values[quantity, block] = value

    def readings(self, depth: int) -> list[Reading]:
        """Every quantity of the whole stack, then every quantity of each block from 1 to depth."""
        self.read("top_grad_w2", self._values.get(("grad_w2", depth)))
        self.read("sigma", self._sigma())
        whole = [self._reading(name, None) for name, quantity in QUANTITIES.items() if not quantity.per_block]
        blocks = range(1, depth + 1)
        names = [name for name, quantity in QUANTITIES.items() if quantity.per_block]
        return whole + [self._reading(name, block) for block in blocks for name in names]

    def _sigma(self) -> float | None:
        if self._divided is None:
            return None
        return (metrics.centred_rms if self._setup.norm == "layernorm" else metrics.rms)(self._divided)

    def _read_gradient(self, quantity: str, block: int, gradient: Tensor) -> None:
        self.read(quantity, metrics.frobenius(gradient), block)

    def _read_weight_gradient(self, quantity: str, block: int, matrix: Tensor) -> None:
        gradient = matrix.grad
        value = metrics.frobenius(gradient)
        tiny = torch.finfo(gradient.dtype).tiny * math.sqrt(gradient.numel())
        self.read(quantity, "underflow" if 0 < value < tiny else value, block)
        matrix.grad = None

    def _reading(self, quantity: str, block: int | None) -> Reading:
        value = self._values.get((quantity, block))
        if value is None or isinstance(value, str):
            return Reading(quantity=quantity, value=None, block=block, status=value or "absent")
        if not math.isfinite(value):
            return Reading(quantity=quantity, value=None, block=block, status="overflow")
        return Reading(quantity=quantity, value=value, block=block)
