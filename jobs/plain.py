"""A plain script for what core measures: one nn.Module, hooks, one autograd backward per cell. Slow, and easy to check.

The benchmark compares with it, the tests hold the core's readings against it. It knows the placements post and pre.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lnmeasure.records import Setup

Weights = list[dict[str, Tensor]]


class PlainBlock(nn.Module):
    """Attention then FFN, without biases, with the norms where the placement puts them."""

    def __init__(self, setup: Setup, placement: str) -> None:
        super().__init__()
        if placement not in ("post", "pre"):
            raise ValueError(f"placement is {placement!r}: the plain script knows post and pre.")
        self.setup, self.placement = setup, placement
        shapes = setup.weight_shapes().items()
        self.weight = nn.ParameterDict({role: nn.Parameter(torch.empty(shape)) for role, shape in shapes})
        for matrix in self.weight.values():
            nn.init.xavier_uniform_(matrix)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, seq, d] -> [batch, seq, d]. Leaves what is to be read in self.seen."""
        self.seen: dict[str, Tensor] = {}
        for name, sublayer in (("attention", self.attend), ("ffn", self.feed)):
            branch = sublayer(x if self.placement == "post" else self.norm(x))
            total = x + branch
            self.seen |= {f"branch_{name}": branch, "sum": total}
            x = self.norm(total) if self.placement == "post" else total
        self.seen["output"] = x
        for tensor in {id(t): t for t in (self.seen["sum"], x)}.values():
            tensor.retain_grad()
        return x

    def norm(self, x: Tensor) -> Tensor:
        """LayerNorm or RMSNorm over d."""
        rule = F.layer_norm if self.setup.norm == "layernorm" else F.rms_norm
        return rule(x, (self.setup.width,), eps=self.setup.eps)

    def attend(self, x: Tensor) -> Tensor:
        """Causal, bidirectional or uniform attention."""
        batch, seq, width = x.shape
        split = {
            role: F.linear(x, self.weight[role]).view(batch, seq, self.setup.heads, -1).transpose(1, 2)
            for role in ("wq", "wk", "wv")
            if role in self.weight
        }
        visible = torch.ones(seq, seq, dtype=torch.bool)
        if self.setup.attention == "uniform":
            attention = visible.to(x.dtype).expand(batch, self.setup.heads, seq, seq) / seq
        else:
            visible = visible.tril() if self.setup.attention == "causal" else visible
            logits = split["wq"] @ split["wk"].transpose(-1, -2) / math.sqrt(self.setup.d_head)
            attention = logits.masked_fill(~visible, -math.inf).softmax(-1)
            self.seen["logits"] = logits[..., visible]
        self.seen["attention"] = attention
        mixed = (attention @ split["wv"]).transpose(1, 2).reshape(batch, seq, width)
        return F.linear(mixed, self.weight["wo"]) if "wo" in self.weight else mixed

    def feed(self, x: Tensor) -> Tensor:
        """W2 activation(W1 x)."""
        return F.linear(getattr(F, self.setup.activation)(F.linear(x, self.weight["w1"])), self.weight["w2"])


class PlainStack(nn.Module):
    """So many blocks, the final norm of pre, and a head that takes no gradient."""

    def __init__(self, setup: Setup, placement: str, depth: int) -> None:
        super().__init__()
        self.setup, self.placement = setup, placement
        self.blocks = nn.ModuleList(PlainBlock(setup, placement) for _ in range(depth))

    def take(self, weights: Weights) -> "PlainStack":
        """Use these weights instead of the ones drawn."""
        for block, matrices in zip(self.blocks, weights, strict=True):
            block.weight = nn.ParameterDict({role: nn.Parameter(matrix) for role, matrix in matrices.items()})
        return self

    def readings(self, x: Tensor, head: Tensor, targets: Tensor) -> dict[tuple[str, int | None], float]:
        """By (quantity, block). x: [batch, seq, d], head: [V, d], targets: [batch, seq]."""
        found = {("embedding_rms", None): _rms(x)}
        for block in self.blocks:
            x = block(x)
        last = x if self.placement == "pre" else self.blocks[-1].seen["sum"]
        centred = last - last.mean(-1, keepdim=True) if self.setup.norm == "layernorm" else last
        hidden = self.blocks[-1].norm(x) if self.placement == "pre" else x
        loss = F.cross_entropy(F.linear(hidden, head).flatten(0, 1), targets.flatten())
        loss.backward()
        found |= {("sigma", None): _rms(centred), ("loss", None): loss.item()}
        for number, block in enumerate(self.blocks, start=1):
            found |= {(name, number): value for name, value in _of_block(block).items()}
        return found | {("top_grad_w2", None): found["grad_w2", len(self.blocks)]}


def _of_block(block: PlainBlock) -> dict[str, float]:
    seen = {name: tensor.detach() for name, tensor in block.seen.items()}
    found = {
        "stream_rms": _rms(seen["sum"]),
        "branch_rms_attention": _rms(seen["branch_attention"]),
        "branch_rms_ffn": _rms(seen["branch_ffn"]),
        "attention_participation": seen["attention"].double().square().sum(-1).mean().item(),
        "grad_stream": block.seen["output"].grad.norm().item(),
        "grad_presum": block.seen["sum"].grad.norm().item(),
    }
    if "logits" in seen:
        found["attention_logit_std"] = seen["logits"].double().std(correction=0).item()
    unit = F.normalize(seen["output"].double(), dim=-1)
    batch, seq, _ = unit.shape
    own = unit.sum(1).square().sum().item()
    if seq > 1:
        found["token_cosine"] = (own - batch * seq) / (batch * seq * (seq - 1))
    if batch > 1:
        all_pairs = unit.sum((0, 1)).square().sum().item()
        found["cross_sequence_cosine"] = (all_pairs - own) / (batch * (batch - 1) * seq**2)
    return found | {f"grad_{role}": matrix.grad.norm().item() for role, matrix in block.weight.items()}


def _rms(x: Tensor) -> float:
    return x.detach().double().square().mean().sqrt().item()
