"""What the benchmark runs in its processes: the limit itself, the plain script, torch's own encoder. Loads torch."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from jobs.batches import Batch
from jobs.plain import PlainStack
from lnmeasure.core.measure import Manner, measure_together, share_prefix
from lnmeasure.records import Setting

_SIZE = 1024


def prepare() -> None:
    """A plain process: torch as it comes."""


def warm_up(_: int) -> None:
    """Have torch loaded and its threads started."""
    x = torch.randn(_SIZE, _SIZE)
    for _ in range(10):
        x @ x


def multiply(seconds: float = 1.5) -> float:
    """Multiplications and additions a second of this process in products of large float32 matrices."""
    x, y, out = torch.randn(_SIZE, _SIZE), torch.randn(_SIZE, _SIZE), torch.empty(_SIZE, _SIZE)
    began, products = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        torch.mm(x, y, out=out)
        products += 1
    return products * 2 * _SIZE**3 / (time.perf_counter() - began)


def may_share(setting: Setting) -> bool:
    """Whether the depths of a setting are measured together."""
    return share_prefix(setting.placement, setting.init)


def flops_of(batch: Batch) -> int:
    """Multiplications and additions in the matrix products that measuring a batch executes, counted as it runs."""
    with FlopCounterMode(display=False) as counter:
        measure_together(batch.settings, Manner(streaming=batch.streaming, whole_only=batch.whole_only))
    return counter.get_total_flops()


def plain_cell(setting: Setting) -> None:
    """One cell by the plain script, drawn by torch."""
    torch.manual_seed(setting.seed)
    stack = PlainStack(setting.setup, setting.placement, setting.depth)
    stack.readings(*_ends(setting))


def encoder_cell(setting: Setting) -> None:
    """One cell by torch.nn.TransformerEncoder, hooks reading the norm of each block's output and of every gradient."""
    torch.manual_seed(setting.seed)
    setup, readings = setting.setup, []
    made = {"d_model": setup.width, "nhead": setup.heads, "dim_feedforward": setup.d_ff, "dropout": 0.0}
    made |= {"batch_first": True, "bias": False, "norm_first": setting.placement == "pre"}
    layers = nn.ModuleList(nn.TransformerEncoderLayer(**made) for _ in range(setting.depth))
    for layer in layers:
        for name, parameter in layer.named_parameters():
            parameter.requires_grad_("norm" not in name)
        layer.register_forward_hook(lambda _module, _inputs, output: readings.append(output.detach().norm().item()))
        layer.register_full_backward_hook(lambda _module, _inputs, outputs: readings.append(outputs[0].norm().item()))
    x, head, targets = _ends(setting)
    mask = nn.Transformer.generate_square_subsequent_mask(setup.seq_len)
    for layer in layers:
        x = layer(x, src_mask=mask, is_causal=True)
    hidden = F.layer_norm(x, (setup.width,)) if setting.placement == "pre" else x
    F.cross_entropy(F.linear(hidden, head).flatten(0, 1), targets.flatten()).backward()
    readings += [p.grad.norm().item() for layer in layers for p in layer.parameters() if p.requires_grad]


def _ends(setting: Setting) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    setup = setting.setup
    embedding, head = (
        torch.randn(setup.vocab, setup.width),
        nn.init.xavier_uniform_(torch.empty(setup.vocab, setup.width)),
    )
    tokens, targets = torch.randint(setup.vocab, (2, setup.batch, setup.seq_len))
    return embedding[tokens], head, targets
