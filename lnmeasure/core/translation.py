"""Stacks that attend to an encoder's outputs: measured whole, an encoder of the decoder's depth beside it.

Xiong et al. 2020 measure such stacks, and their Appendix F speaks of them. The encoder attends in both directions.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lnmeasure.core import metrics
from lnmeasure.core.draws import integers, normal, raw_draw
from lnmeasure.core.initialise import draw_block, draw_embedding
from lnmeasure.core.placements import Place
from lnmeasure.core.stack import begin, close, cross_entropy, run_block
from lnmeasure.core.watch import Instrument
from lnmeasure.records import Reading, Setting


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One block that was run: its matrices, its last residual sum, and its output, in the graph of the loss."""

    matrices: dict[str, Tensor]
    sum: Tensor
    output: Tensor

    def wanted(self) -> dict[str, Tensor]:
        """What the loss gradient is read of: grad_<role> of matrices, grad_stream and grad_presum."""
        found = {f"grad_{role}": matrix for role, matrix in self.matrices.items()}
        return found | {"grad_stream": self.output, "grad_presum": self.sum}


class Side:
    """An encoder or decoder: run forward with a graph, then read backward."""

    def __init__(self, setting: Setting, stack: str, device: str = "cpu") -> None:
        self._setting, self._stack, self._device = setting, stack, device
        self.instrument = Instrument(setting.setup)
        self.blocks: list[_Block] = []

    def run(self, x: Tensor, encoded: Tensor | None = None) -> Tensor:
        """What leaves the stack, [batch, seq, d], from x_0 and, where it is a decoder, the encoder's outputs."""
        setting, memory = self._setting, {}
        self.instrument.read("embedding_rms", [metrics.rms(x)])
        x = begin(x, setting)
        for block in range(1, setting.depth + 1):
            drawn = draw_block(setting, block, setting.depth, self._stack)
            matrices = {role: matrix.to(self._device).requires_grad_() for role, matrix in drawn.items()}
            place = Place(block=block, stack_depth=setting.depth, memory=memory)
            x = run_block(x, matrices, setting, place, self.instrument, encoded)
            self.blocks.append(_Block(matrices=matrices, sum=self.instrument.sum, output=x))
        return close(x, setting, self.instrument)

    def wanted(self) -> list[Tensor]:
        """Every tensor whose gradient is read, block by block."""
        return [tensor for block in self.blocks for tensor in block.wanted().values()]

    def read(self, gradients: list[Tensor]) -> None:
        """Read the gradients of what was wanted."""
        left, depth = iter(gradients), self._setting.depth
        for number, block in enumerate(self.blocks, start=1):
            for name in block.wanted():
                role, gradient = name.removeprefix("grad_"), next(left)
                if role in block.matrices:
                    self.instrument.read_weight_gradient(role, gradient, number, depth)
                else:
                    self.instrument.read_stream_gradient(name, gradient, number, depth)


def measure_translation(
    setting: Setting, start: Tensor, head: Tensor, whole_only: bool = False, device: str = "cpu"
) -> list[Reading]:
    """Every reading of a cell whose setup has an encoder. start: x_0 of the decoder, [batch, seq, d]; head: [V, d].

    Whole-stack readings, and blocks of stack 'decoder', are the decoder's; those of the encoder's blocks follow.
    """
    encoder = None
    if setting.setup.encoder == "stack":
        encoder = Side(encoder_of(setting), "encoder", device)
        encoded = encoder.run(draw_source(setting).to(device))
    else:
        encoded = outputs_of_cosine(setting).to(device)
    decoder = Side(setting, "decoder", device)
    hidden = decoder.run(start.to(device), encoded)
    loss = cross_entropy(hidden, head.to(device), integers(setting.seed, "targets", setting.setup).to(device))
    sides = [side for side in (decoder, encoder) if side]
    gradients = iter(torch.autograd.grad(loss, [tensor for side in sides for tensor in side.wanted()]))
    for side in sides:
        side.read([next(gradients) for _ in side.wanted()])
    decoder.instrument.read("loss", [loss.item()], depth=setting.depth)
    decoder.instrument.read_sigma(setting.depth)
    readings = decoder.instrument.readings(setting.depth, blocks=not whole_only)
    if encoder is None or whole_only:
        return readings
    theirs = [replace(r, stack="encoder") for r in encoder.instrument.readings(setting.depth) if r.block]
    return readings + theirs


def encoder_of(setting: Setting) -> Setting:
    """The encoder's own setting: as deep, attending in both directions where the decoder's attention is causal."""
    attention = "bidirectional" if setting.setup.attention == "causal" else setting.setup.attention
    return replace(setting, setup=replace(setting.setup, attention=attention, encoder="none"))


def draw_source(setting: Setting) -> Tensor:
    """What the encoder begins with, [batch, seq, d]: tokens of its own, with the decoder's embedding; or Gaussian."""
    setup = setting.setup
    if setup.input == "gaussian":
        return _normal(setting, "source_inputs", setup.embedding_std)
    return draw_embedding(setting)[integers(setting.seed, "source", setup)]


def outputs_of_cosine(setting: Setting) -> Tensor:
    """Encoder outputs, [batch, seq, d], of unit size, sqrt(rho) c + sqrt(1 - rho) z: any two have a cosine near rho."""
    rho = setting.setup.encoder_cosine
    common = _normal(setting, "encoded_common", 1.0)[:1, :1]
    return math.sqrt(rho) * common + math.sqrt(1 - rho) * _normal(setting, "encoded", 1.0)


def _normal(setting: Setting, role: str, std: float) -> Tensor:
    setup = setting.setup
    raw = raw_draw(setting.seed, role, 0, (setup.batch, setup.seq_len, setup.width))
    return normal(raw, std).to(getattr(torch, setup.dtype))
