"""Paths from block to block: how large d x_j / d x_i is, and how much of it is the identity, by random cotangents.

For v ~ N(0, 1) the mean of ||J^T v||^2 is ||J||_F^2, and that of v . J^T v the trace of J (Hutchinson 1990). One
backward pass from x_j serves every x_i below it.
"""

import math

import torch
from torch import Tensor

from lnmeasure.core.draws import normal, raw_draw
from lnmeasure.core.initialise import draw_block
from lnmeasure.core.placements import PLACEMENTS, Place
from lnmeasure.core.stack import begin, run_block
from lnmeasure.core.watch import Bystander
from lnmeasure.records import PathReading, Setting


def measure_paths(setting: Setting, start: Tensor, device: str = "cpu") -> list[PathReading]:
    """Every pair of blocks i < j of one cell, i from 0. start: x_0, [batch, seq, d].

    x is all that a block hands to the next: with two streams both, [2, batch, seq, d]. A sequence's Jacobian is that
    of its own tokens, and the readings are means over the batch's. ValueError where the setup has an encoder.
    """
    if setting.setup.encoder != "none":
        raise ValueError(
            f"Setup.encoder is {setting.setup.encoder!r}: paths are measured of stacks without an encoder. Use 'none'."
        )
    inputs, outputs = _run(begin(start.to(device), setting), setting)
    found = []
    for to_block in range(1, setting.depth + 1):
        probe = _probe(setting, to_block, outputs[to_block - 1].shape).to(outputs[0])
        cotangent = probe
        for block in range(to_block, 0, -1):
            (cotangent,) = torch.autograd.grad(outputs[block - 1], inputs[block - 1], cotangent, retain_graph=True)
            found.append(_reading(setting, block - 1, to_block, probe, cotangent))
    return sorted(found, key=lambda reading: (reading.from_block, reading.to_block))


def _run(x: Tensor, setting: Setting) -> tuple[list[Tensor], list[Tensor]]:
    """Each block's input, cut off from the graph below, and its output."""
    inputs, outputs, memory = [], [], {}
    for block in range(1, setting.depth + 1):
        inputs.append(x.detach().requires_grad_())
        matrices = {role: matrix.to(x.device) for role, matrix in draw_block(setting, block, setting.depth).items()}
        place = Place(block=block, stack_depth=setting.depth, memory=memory)
        x = run_block(inputs[-1], matrices, setting, place, Bystander())
        outputs.append(x)
    return inputs, outputs


def _probe(setting: Setting, to_block: int, shape: torch.Size) -> Tensor:
    return normal(raw_draw(setting.seed, "probe", to_block, tuple(shape)), 1.0)


def _reading(setting: Setting, from_block: int, to_block: int, probe: Tensor, pulled: Tensor) -> PathReading:
    batch_axis = 1 if PLACEMENTS[setting.placement].dual else 0
    v, u = (x.detach().double().movedim(batch_axis, 0).flatten(1) for x in (probe, pulled))
    square, square_se = _over_probes(u.square().mean(dim=1))
    trace, trace_se = _over_probes((u * v).mean(dim=1))
    return PathReading(
        from_block=from_block,
        to_block=to_block,
        n_probes=len(v),
        square=square,
        square_se=square_se,
        trace=trace,
        trace_se=trace_se,
    )


def _over_probes(values: Tensor) -> tuple[float | None, float | None]:
    """Mean and standard error, the latter None of one probe; both None where they are not finite."""
    mean = values.mean().item()
    error = values.std().item() / math.sqrt(len(values)) if len(values) > 1 else None
    return (mean, error) if math.isfinite(mean) else (None, None)
