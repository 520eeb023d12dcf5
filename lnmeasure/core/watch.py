"""The instrument: reads every tensor as it passes forward, and what a block's gradients come to."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lnmeasure.core import metrics
from lnmeasure.records import QUANTITIES, Reading, Setup


class Bystander:
    """A Watch that reads nothing. It remembers the last residual sum, and the input of the last norm.

    The un-normalised stream leaving a block is its last residual sum: in post-LN that is the input of the block's
    last norm, in pre-LN the block's output. sigma is taken from the last norm of the whole stack.
    """

    def __init__(self) -> None:
        self.sum: Tensor | None = None
        self.divided: Tensor | None = None

    def enter(self, block: int) -> None:
        """Block number block (from 1) begins."""

    def add(self, sublayer: str, stream: Tensor, branch: Tensor) -> Tensor:
        """Returns stream + branch, [batch, seq, d]."""
        self.sum = stream + branch
        return self.sum

    def attended(self, logits: Tensor | None, visible: Tensor, weights: Tensor) -> None:
        """Attention has been paid."""

    def normed(self, x: Tensor) -> None:
        """Remembers what a norm divides, [batch, seq, d]."""
        self.divided = x.detach()

    def leave(self, output: Tensor, dual: Tensor | None) -> None:
        """The block ends."""


Value = float | str | None
"""A number, or the status that says why there is none; None where the quantity does not exist here."""


class Instrument(Bystander):
    """The Watch that keeps the readings of one forward pass, and of the backward pass of every depth it stands for.

    Of several seeds run side by side it reads each: their tensors are [seeds, batch, seq, d] and [seeds, n_out, n_in].
    """

    def __init__(self, setup: Setup, seeds: int = 1) -> None:
        super().__init__()
        self._setup, self._seeds = setup, seeds
        self._values: dict[tuple[str, int | None, int | None], Sequence[Value]] = {}
        self._block = 0

    def parts(self, x: Tensor) -> Sequence[Tensor]:
        """The part of each seed."""
        return x.detach().unbind() if self._seeds > 1 else [x.detach()]

    def enter(self, block: int) -> None:
        """Block number block (from 1) begins."""
        self._block = block

    def add(self, sublayer: str, stream: Tensor, branch: Tensor) -> Tensor:
        """Reads the branch and returns stream + branch, [batch, seq, d]."""
        self.read(f"branch_rms_{sublayer}", [metrics.rms(part) for part in self.parts(branch)], self._block)
        return super().add(sublayer, stream, branch)

    def attended(self, logits: Tensor | None, visible: Tensor, weights: Tensor) -> None:
        """Reads how wide the attention logits are and how few tokens the weights pick."""
        if logits is None:
            self.read("attention_participation", [metrics.participation(weights)] * self._seeds, self._block)
            return
        self.read("attention_logit_std", [metrics.logit_std(part, visible) for part in self.parts(logits)], self._block)
        self.read("attention_participation", [metrics.participation(p) for p in self.parts(weights)], self._block)

    def leave(self, output: Tensor, dual: Tensor | None) -> None:
        """Reads the finished block."""
        if dual is not None:
            self.read("stream_rms_dual", [metrics.rms(part) for part in self.parts(dual)], self._block)
        self.read("stream_rms", [metrics.rms(part) for part in self.parts(self.sum)], self._block)
        within, across = zip(*map(metrics.cosines, self.parts(output)), strict=True)
        self.read("token_cosine", within, self._block)
        self.read("cross_sequence_cosine", across, self._block)

    def read(self, quantity: str, values: Sequence[Value], block: int | None = None, depth: int | None = None) -> None:
        """Keeps one value a seed. depth says in which stack; None where it is the same in all."""
        self._values[quantity, block, depth] = values

    def read_sigma(self, depth: int, quantity: str = "sigma") -> None:
        """Reads sigma, or sigma_dual, of the stack that ends where the last norm seen was; nothing where none was."""
        rule: Callable = metrics.centred_rms if self._setup.norm == "layernorm" else metrics.rms
        if self.divided is not None:
            self.read(quantity, [rule(part) for part in self.parts(self.divided)], depth=depth)

    def read_weight_gradient(self, role: str, gradient: Tensor, block: int, depth: int) -> Sequence[float]:
        """Reads the gradient of one matrix, [n_out, n_in], in the stack of a depth; the last block's W2 is the top.

        Its norms, one a seed, also where they are too small to be kept.
        """
        norms = [metrics.frobenius(part) for part in self.parts(gradient)]
        least = torch.finfo(gradient.dtype).tiny * math.sqrt(gradient.numel() / self._seeds)
        values = ["underflow" if 0 < norm < least else norm for norm in norms]
        self.read(f"grad_{role}", values, block, depth)
        if role == "w2" and block == depth:
            self.read("top_grad_w2", values, depth=depth)
        return norms

    def read_stream_gradient(self, quantity: str, gradient: Tensor, block: int, depth: int) -> None:
        """Reads the gradient of the stream, [batch, seq, d], at a block of the stack of a depth."""
        self.read(quantity, [metrics.frobenius(part) for part in self.parts(gradient)], block, depth)

    def readings(self, depth: int, seed: int = 0, blocks: bool = True) -> list[Reading]:
        """Every quantity of the whole stack of a depth, then, where blocks, every quantity of each block from 1.

        seed is the seed's place among those run side by side.
        """
        whole = [name for name, quantity in QUANTITIES.items() if not quantity.per_block]
        names = [name for name, quantity in QUANTITIES.items() if quantity.per_block]
        wanted = [(name, None) for name in whole]
        wanted += [(name, block) for block in range(1, depth + 1) for name in names] if blocks else []
        return [self._reading(name, block, depth, seed) for name, block in wanted]

    def _reading(self, quantity: str, block: int | None, depth: int, seed: int) -> Reading:
        values = self._values.get((quantity, block, depth), self._values.get((quantity, block, None)))
        value = None if values is None else values[seed]
        if value is None or isinstance(value, str):
            return Reading(quantity=quantity, value=None, block=block, status=value or "absent")
        if not math.isfinite(value):
            return Reading(quantity=quantity, value=None, block=block, status="overflow")
        return Reading(quantity=quantity, value=value, block=block)
