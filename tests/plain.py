"""A slow, plain Transformer to check the core against: it takes the core's draws and nothing else of the core.

Its forward pass is written out by hand from the update equations, its gradients come from torch.autograd.grad on
tensors it keeps, and its statistics are loops over definitions. To cover a new placement, add it to UPDATES.
"""

import math
import statistics
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lnmeasure.core.initialise import draw_blocks
from lnmeasure.core.measure import draw_ends, integers
from lnmeasure.records import Setting, Setup

NO_UPDATE = "tests/plain.py has no update for the placement {!r}: write its equation there and add it to UPDATES."
WEIGHTS = ("w1", "w2", "wq", "wk", "wv", "wo")


class Step(NamedTuple):
    """One sublayer: the new stream, what was added to the old one, and the sum before any norm after it."""

    stream: Tensor
    branch: Tensor
    total: Tensor


class Update(NamedTuple):
    """A placement: step(x, sublayer, norm, block, depth) -> Step, and whether a norm follows the last block."""

    step: Callable[..., Step]
    final_norm: bool


def post(x, sublayer, norm, block, depth):
    branch = sublayer(x)
    total = x + branch
    return Step(stream=norm(total), branch=branch, total=total)


def pre(x, sublayer, norm, block, depth):
    branch = sublayer(norm(x))
    total = x + branch
    return Step(stream=total, branch=branch, total=total)


UPDATES = {"post": Update(post, final_norm=False), "pre": Update(pre, final_norm=True)}


def update_of(placement: str) -> Update:
    """The reference update of a placement; an AssertionError that says where to write it if there is none."""
    assert placement in UPDATES, NO_UPDATE.format(placement)
    return UPDATES[placement]


class PlainTransformer(nn.Module):
    """The stack of one setting, with the core's draws as parameters. Keeps what a forward pass made in self.kept."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting, self.setup = setting, setting.setup
        self.blocks = nn.ModuleList(
            nn.ParameterDict({role: nn.Parameter(matrix.clone()) for role, matrix in matrices.items()})
            for matrices in draw_blocks(setting)
        )
        x, head = draw_ends(setting)
        self.register_buffer("x", x.clone())
        self.register_buffer("head", head.clone())
        self.kept: list[dict] = []

    def forward(self, x: Tensor) -> Tensor:
        """[batch, seq, d] -> [batch, seq, d]."""
        update, depth = update_of(self.setting.placement), len(self.blocks)
        self.kept = []
        for number, matrices in enumerate(self.blocks, start=1):
            kept: dict = {"logits": [], "weights": []}
            attention = update.step(x, lambda y, m=matrices, k=kept: self.attend(y, m, k), self.norm, number, depth)
            ffn = update.step(attention.stream, lambda y, m=matrices: self.feed(y, m), self.norm, number, depth)
            x = ffn.stream
            self.kept.append(kept | {"attention": attention, "ffn": ffn, "output": x})
        self.divided = x if update.final_norm else self.kept[-1]["ffn"].total
        return self.norm(x) if update.final_norm else x

    def norm(self, x: Tensor) -> Tensor:
        """(x - mean) / sqrt(var + eps) for LayerNorm, x / sqrt(mean x^2 + eps) for RMSNorm."""
        if self.setup.norm == "layernorm":
            x = x - x.sum(-1, keepdim=True) / self.setup.width
        return x / ((x * x).sum(-1, keepdim=True) / self.setup.width + self.setup.eps) ** 0.5

    def attend(self, x: Tensor, matrices: nn.ParameterDict, kept: dict) -> Tensor:
        """Attention head by head, sequence by sequence, row by row. [batch, seq, d] -> [batch, seq, d]."""
        out = torch.stack([self.attend_one(sequence, matrices, kept) for sequence in x])
        return out @ matrices["wo"].T if self.setup.output_projection else out

    def attend_one(self, x: Tensor, matrices: nn.ParameterDict, kept: dict) -> Tensor:
        """The heads of one sequence side by side. [seq, d] -> [seq, d]."""
        size, heads = self.setup.width // self.setup.heads, []
        for h in range(self.setup.heads):
            rows = slice(h * size, (h + 1) * size)
            values = x @ matrices["wv"][rows].T
            heads.append(torch.stack([self.mix(t, x, values, matrices, rows, kept) for t in range(len(x))]))
        return torch.cat(heads, dim=-1)

    def mix(self, t: int, x: Tensor, values: Tensor, matrices: nn.ParameterDict, rows: slice, kept: dict) -> Tensor:
        """What token t of one head picks up: [d_head]. Only the tokens it sees enter the softmax."""
        seen = t + 1 if self.setup.attention == "causal" else len(x)
        if self.setup.attention == "uniform":
            weights = torch.full((seen,), 1 / seen, dtype=x.dtype)
        else:
            query, keys = matrices["wq"][rows] @ x[t], x[:seen] @ matrices["wk"][rows].T
            logits = keys @ query / (self.setup.width / self.setup.heads) ** 0.5
            kept["logits"] += logits.tolist()
            raised = (logits - logits.max()).exp()
            weights = raised / raised.sum()
        kept["weights"].append(weights.tolist())
        return weights @ values[:seen]

    def feed(self, x: Tensor, matrices: nn.ParameterDict) -> Tensor:
        """W2 phi(W1 x), phi = max(x, 0) or x Phi(x). [batch, seq, d] -> [batch, seq, d]."""
        inner = x @ matrices["w1"].T
        relu = self.setup.activation == "relu"
        active = inner * (inner > 0) if relu else inner * (1 + torch.erf(inner / 2**0.5)) / 2
        return active @ matrices["w2"].T


def token_losses(hidden: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """ln sum_v exp z_v - z_target of each token, in nats: [batch * seq]."""
    logits = (hidden @ head.T).flatten(0, 1)
    return logits.exp().sum(-1).log() - logits[torch.arange(len(logits)), targets.flatten()]


def plain_readings(setting: Setting) -> dict[tuple[str, int | None], float | None]:
    """Every quantity of measurement.md that the setting has, by (quantity, block); None where it does not exist."""
    model = PlainTransformer(setting)
    hidden = model(model.x)
    losses = token_losses(hidden, model.head, integers(setting.seed, "targets", setting.setup))
    loss = losses.sum() / len(losses)
    found = {("loss", None): loss.item(), ("embedding_rms", None): rms(model.x), ("sigma_dual", None): None}
    found["sigma", None] = centred_rms(model.divided) if setting.setup.norm == "layernorm" else rms(model.divided)
    for block, kept in enumerate(model.kept, start=1):
        found |= {(name, block): value for name, value in forward_of(kept, setting.setup).items()}
    found |= gradients_of(model, loss)
    return found | {("top_grad_w2", None): found["grad_w2", setting.depth]}


def forward_of(kept: dict, setup: Setup) -> dict[str, float | None]:
    """What a block's forward pass says."""
    return {
        "stream_rms": rms(kept["ffn"].total),
        "branch_rms_attention": rms(kept["attention"].branch),
        "branch_rms_ffn": rms(kept["ffn"].branch),
        "token_cosine": cosine(kept["output"], same_sequence=True),
        "cross_sequence_cosine": cosine(kept["output"], same_sequence=False),
        "attention_logit_std": None if setup.attention == "uniform" else statistics.pstdev(kept["logits"]),
        "attention_participation": statistics.fmean(sum(w * w for w in row) for row in kept["weights"]),
    }


def gradients_of(model: PlainTransformer, loss: Tensor) -> dict[tuple[str, int], float | None]:
    """Frobenius norm of the loss gradient with respect to each matrix and each block's output and sum."""
    wanted = {(f"grad_{role}", b): m for b, matrices in enumerate(model.blocks, 1) for role, m in matrices.items()}
    for b, kept in enumerate(model.kept, start=1):
        wanted |= {("grad_stream", b): kept["output"], ("grad_presum", b): kept["ffn"].total}
    gradients = torch.autograd.grad(loss, list(wanted.values()))
    found = {key: rms(g) * math.sqrt(g.numel()) for key, g in zip(wanted, gradients, strict=True)}
    missing = {(f"grad_{role}", b): None for b in range(1, len(model.blocks) + 1) for role in WEIGHTS}
    return missing | found


def rms(x: Tensor) -> float:
    """Square root of the mean square entry."""
    return math.sqrt(statistics.fmean(value * value for value in x.double().flatten().tolist()))


def centred_rms(x: Tensor) -> float:
    """Square root of the mean over tokens of each token's population variance."""
    return math.sqrt(statistics.fmean(statistics.pvariance(row) for row in x.double().flatten(0, 1).tolist()))


def cosine(x: Tensor, *, same_sequence: bool) -> float | None:
    """Mean cosine over unordered pairs of tokens, either within a sequence or across two. None without a pair."""
    batch, seq, _ = x.shape
    tokens = [(b, x[b, t].double()) for b in range(batch) for t in range(seq)]
    pairs = [(u, v) for (b, u), (c, v) in combinations(tokens, 2) if (b == c) == same_sequence]
    cosines = [(u @ v / (u @ u).sqrt() / (v @ v).sqrt()).item() for u, v in pairs]
    return statistics.fmean(cosines) if cosines else None
