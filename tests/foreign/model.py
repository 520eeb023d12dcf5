"""A model somebody else wrote, with our draws in it, and what is read off it. Nothing of the core but its draws."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lnmeasure.core.draws import integers
from lnmeasure.core.initialise import draw_blocks
from lnmeasure.core.measure import draw_ends
from lnmeasure.records import Setting


def as_it_is(matrix: Tensor) -> Tensor:
    return matrix


class Slot(NamedTuple):
    """Where one of our matrices, [n_out, n_in], goes: a parameter, and our matrix's view of it."""

    parameter: nn.Parameter
    view: Callable[[Tensor], Tensor] = as_it_is


class Probe(NamedTuple):
    """A tensor, [batch, seq, d], that a module takes in or gives out."""

    module: nn.Module
    side: str = "output"


class Block(NamedTuple):
    """One block of a foreign model: its matrices by role, its un-normalised stream, and what the next block gets."""

    matrices: dict[str, Slot]
    sum: Probe
    output: Probe


class Model(NamedTuple):
    """A foreign stack: run(x_0) -> what the head reads, both [batch, seq, d]; the module it is; and its blocks."""

    run: Callable[[Tensor], Tensor]
    module: nn.Module
    blocks: list[Block]


def answer(setting: Setting, build: Callable[[Setting], Model]) -> dict:
    """The readings of a foreign model by (quantity, block), and under 'hidden' what the head reads."""
    torch.set_default_dtype(getattr(torch, setting.setup.dtype))  # a module brought to it later has rounded already
    model = build(setting)
    fill(model, draw_blocks(setting))
    x, head = draw_ends(setting)
    seen = [(watch(block.sum), watch(block.output)) for block in model.blocks]
    hidden = model.run(x)
    targets = integers(setting.seed, "targets", setting.setup)
    loss = F.cross_entropy(F.linear(hidden, head).flatten(0, 1), targets.flatten())
    loss.backward()
    readings = {("loss", None): loss.item()}
    for number, (block, (total, output)) in enumerate(zip(model.blocks, seen, strict=True), start=1):
        readings |= {(name, number): value for name, value in of_block(block, total[-1], output[-1]).items()}
    return {"hidden": hidden.detach(), "readings": readings}


def fill(model: Model, drawn: list[dict[str, Tensor]]) -> None:
    """Our draws become the model's matrices; its biases become zero."""
    for name, parameter in model.module.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    for block, matrices in zip(model.blocks, drawn, strict=True):
        assert block.matrices.keys() == matrices.keys()
        for role, matrix in matrices.items():
            slot = block.matrices[role]
            slot.view(slot.parameter.data).copy_(matrix)


def watch(probe: Probe) -> list[Tensor]:
    """A list that will hold what passes the probe, with its gradient."""
    seen: list[Tensor] = []

    def see(tensors: object) -> None:
        tensor = tensors if isinstance(tensors, Tensor) else tensors[0]
        if tensor.requires_grad:
            tensor.retain_grad()
            seen.append(tensor)

    if probe.side == "input":
        probe.module.register_forward_pre_hook(lambda module, taken: see(taken))
    else:
        probe.module.register_forward_hook(lambda module, taken, given: see(given))
    return seen


def of_block(block: Block, total: Tensor, output: Tensor) -> dict[str, float]:
    """Stream and gradients of one block."""
    found = {
        "stream_rms": norm(total) / math.sqrt(total.numel()),
        "grad_presum": norm(total.grad),
        "grad_stream": norm(output.grad),
    }
    return found | {f"grad_{role}": norm(slot.view(slot.parameter.grad)) for role, slot in block.matrices.items()}


def norm(x: Tensor) -> float:
    """Frobenius norm, summed in float64."""
    return x.detach().double().square().sum().sqrt().item()
