"""A slow, plain Transformer to check the core against: it takes the core's draws and nothing else of the core.

Its forward pass is written out by hand from the update equations, its gradients come from torch.autograd.grad on
tensors it keeps, and its statistics are loops over definitions. To cover a new placement, add it to UPDATES.
"""

import math
import statistics
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from lnmeasure.core.initialise import draw_blocks
from lnmeasure.core.measure import draw_ends, integers
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.records import Setting, Setup

NO_UPDATE = "tests/plain.py has no update for the placement {!r}: write its equation there and add it to UPDATES."
WEIGHTS = ("w1", "w2", "wq", "wk", "wv", "wo")


class Step(NamedTuple):
    """One sublayer: the new stream, what was added to the old one, and the sum before any norm after it."""

    stream: Tensor
    branch: Tensor
    total: Tensor


class Site(NamedTuple):
    """What an update may use: its block of how many, the norm, attention and FFN, and notes kept through the stack."""

    block: int
    depth: int
    norm: Callable[[Tensor], Tensor]
    attention: Callable[..., Tensor]
    ffn: Callable[..., Tensor]
    notes: dict


class Update(NamedTuple):
    """A placement: block(x, site) -> the Steps of attention and FFN, what closes the stack, and the matrices' gain.

    last: 'sum' where the last residual sum is what the last norm divides, 'final' where a final norm follows, 'none'
    where there is no norm, 'dual' for ResiDual.
    """

    block: Callable[[Tensor, Site], tuple[Step, Step]]
    last: str
    gain: Callable[[str, int], float] = lambda role, depth: 1.0

    @property
    def final_norm(self) -> bool:
        """Whether a norm follows the last block."""
        return self.last == "final"


def plainly(x, branch):
    total = x + branch
    return Step(stream=total, branch=branch, total=total)


def normed_after(site, x, branch):
    total = x + branch
    return Step(stream=site.norm(total), branch=branch, total=total)


def post(x, site):
    attention = normed_after(site, x, site.attention(x))
    return attention, normed_after(site, attention.stream, site.ffn(attention.stream))


def scaled_pre(x, site, inside=1.0, outside=1.0):
    attention = plainly(x, outside * site.attention(site.norm(x) * inside))
    return attention, plainly(attention.stream, outside * site.ffn(site.norm(attention.stream) * inside))


def none(x, site):
    attention = plainly(x, site.attention(x))
    return attention, plainly(attention.stream, site.ffn(attention.stream))


def sandwich(x, site):
    attention = plainly(x, site.norm(site.attention(site.norm(x))))
    return attention, plainly(attention.stream, site.norm(site.ffn(site.norm(attention.stream))))


def reordered(x, site, normed="qk"):
    attention = plainly(x, site.norm(site.attention(x, normed)))
    return attention, plainly(attention.stream, site.norm(site.ffn(attention.stream)))


def deepnorm(x, site):
    alpha = (2 * site.depth) ** (1 / 4)
    attention = normed_after(site, alpha * x, site.attention(x))
    return attention, normed_after(site, alpha * attention.stream, site.ffn(attention.stream))


def keel(x, site):
    if site.block == 1:
        attention = plainly(x, site.attention(site.norm(x)))
        return attention, normed_after(site, attention.stream, site.ffn(site.norm(attention.stream)))
    alpha = 2 * site.depth
    attention = normed_after(site, alpha * x, site.attention(site.norm(x)))
    return attention, normed_after(site, alpha * attention.stream, site.ffn(site.norm(attention.stream)))


def admin(x, site):
    steps = []
    for sublayer in (site.attention, site.ffn):
        omega, branch = site.notes.get("omega", 1.0), sublayer(x)
        spread = [statistics.pvariance(y.flatten().tolist()) for y in (omega * x, branch)]
        site.notes["omega"] = math.sqrt(sum(spread))
        steps.append(normed_after(site, omega * x, branch))
        x = steps[-1].stream
    return tuple(steps)


def normformer(x, site):
    attention = plainly(x, site.norm(site.attention(site.norm(x))))
    return attention, plainly(attention.stream, site.ffn(site.norm(attention.stream), normed=True))


def layerscale(x, site):
    if site.depth <= 18:
        return scaled_pre(x, site, outside=0.1)
    return scaled_pre(x, site, outside=1e-5 if site.depth <= 24 else 1e-6)


def mix_ln(x, site):
    return post(x, site) if site.block <= math.floor(0.25 * site.depth) else scaled_pre(x, site)


def hybridnorm(x, site):
    attention = normed_after(site, x, site.attention(x, "QKV"))
    return attention, plainly(attention.stream, site.ffn(attention.stream))


def b2t(x, site):
    attention = normed_after(site, x, site.attention(x))
    return attention, normed_after(site, x + attention.stream, site.ffn(attention.stream))


def residual(x, site):
    attention, ffn = post(x, site)
    site.notes["dual"] = site.notes.get("dual", x) + attention.branch + ffn.branch
    return attention, ffn


def rezero(x, site):
    attention = plainly(x, 0 * site.attention(x))
    return attention, plainly(attention.stream, 0 * site.ffn(attention.stream))


UPDATES = {
    "post": Update(post, "sum"),
    "pre": Update(scaled_pre, "final"),
    "none": Update(none, "none"),
    "sandwich": Update(sandwich, "final"),
    "reordered": Update(reordered, "final"),
    "reordered_no_qk": Update(lambda x, site: reordered(x, site, ""), "final"),
    "deepnorm": Update(deepnorm, "sum", lambda role, depth: 1.0 if role in ("wq", "wk") else (8 * depth) ** (-1 / 4)),
    "keel": Update(keel, "sum"),
    "admin": Update(admin, "sum"),
    "normformer": Update(normformer, "final"),
    "layernorm_scaling": Update(lambda x, site: scaled_pre(x, site, inside=site.block**-0.5), "final"),
    "mix_ln": Update(mix_ln, "final"),
    "hybridnorm": Update(hybridnorm, "final"),
    "b2t": Update(b2t, "sum"),
    "residual": Update(residual, "dual"),
    "rezero": Update(rezero, "none"),
    "layerscale": Update(layerscale, "final"),
    "depth_mup": Update(lambda x, site: scaled_pre(x, site, outside=(2 * site.depth) ** -0.5), "final"),
    "completep": Update(lambda x, site: scaled_pre(x, site, outside=1 / (2 * site.depth)), "final"),
}


def update_of(placement: str) -> Update:
    """The reference update of a placement; an AssertionError that says where to write it if there is none.

    A plugin's placement has none: what needs it is skipped.
    """
    if PLACEMENTS[placement].function.__module__ != PLACEMENTS["pre"].function.__module__:
        pytest.skip(f"{placement} is a plugin's: no reference is kept here")
    assert placement in UPDATES, NO_UPDATE.format(placement)
    return UPDATES[placement]


def closed(update: Update, x: Tensor, notes: dict, norm: Callable) -> Tensor:
    """What the head reads."""
    return {"final": lambda: norm(x), "dual": lambda: x + norm(notes["dual"])}.get(update.last, lambda: x)()


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
        update, notes = update_of(self.setting.placement), {}
        self.kept = []
        for number, matrices in enumerate(self.blocks, start=1):
            kept: dict = {"logits": [], "weights": []}
            sublayers = partial(self.attend, matrices=matrices, kept=kept), partial(self.feed, matrices=matrices)
            attention, ffn = update.block(x, Site(number, len(self.blocks), self.norm, *sublayers, notes))
            x = ffn.stream
            self.kept.append(kept | {"attention": attention, "ffn": ffn, "output": x, "dual": notes.get("dual")})
        self.divided = {"final": x, "none": None}.get(update.last, self.kept[-1]["ffn"].total)
        return closed(update, x, notes, self.norm)

    def norm(self, x: Tensor) -> Tensor:
        """(x - mean) / sqrt(var + eps) for LayerNorm, x / sqrt(mean x^2 + eps) for RMSNorm."""
        if self.setup.norm == "layernorm":
            x = x - x.sum(-1, keepdim=True) / x.shape[-1]
        return x / ((x * x).sum(-1, keepdim=True) / x.shape[-1] + self.setup.eps) ** 0.5

    def attend(self, x: Tensor, normed: str = "", *, matrices: nn.ParameterDict, kept: dict) -> Tensor:
        """Attention head by head, sequence by sequence, row by row. [batch, seq, d] -> [batch, seq, d]."""
        out = torch.stack([self.attend_one(sequence, normed, matrices, kept) for sequence in x])
        return out @ matrices["wo"].T if self.setup.output_projection else out

    def attend_one(self, x: Tensor, normed: str, matrices: nn.ParameterDict, kept: dict) -> Tensor:
        """The heads of one sequence side by side. [seq, d] -> [seq, d]. Capitals in normed: head by head."""
        size, heads, parts = self.setup.width // self.setup.heads, [], {}
        for letter in "qkv":
            if f"w{letter}" in matrices:
                part = x @ matrices[f"w{letter}"].T
                parts[letter] = self.norm(part) if letter in normed else part
        for h in range(self.setup.heads):
            own = {letter: part[:, h * size : (h + 1) * size] for letter, part in parts.items()}
            own = {letter: self.norm(part) if letter.upper() in normed else part for letter, part in own.items()}
            heads.append(torch.stack([self.mix(t, own, kept) for t in range(len(x))]))
        return torch.cat(heads, dim=-1)

    def mix(self, t: int, own: dict[str, Tensor], kept: dict) -> Tensor:
        """What token t of one head picks up: [d_head]. Only the tokens it sees enter the softmax."""
        values = own["v"]
        seen = t + 1 if self.setup.attention == "causal" else len(values)
        if self.setup.attention == "uniform":
            weights = torch.full((seen,), 1 / seen, dtype=values.dtype)
        else:
            logits = own["k"][:seen] @ own["q"][t] / (self.setup.width / self.setup.heads) ** 0.5
            kept["logits"] += logits.tolist()
            raised = (logits - logits.max()).exp()
            weights = raised / raised.sum()
        kept["weights"].append(weights.tolist())
        return weights @ values[:seen]

    def feed(self, x: Tensor, normed: bool = False, *, matrices: nn.ParameterDict) -> Tensor:
        """W2 phi(W1 x), phi = max(x, 0) or x Phi(x). [batch, seq, d] -> [batch, seq, d]."""
        inner = x @ matrices["w1"].T
        relu = self.setup.activation == "relu"
        active = inner * (inner > 0) if relu else inner * (1 + torch.erf(inner / 2**0.5)) / 2
        return (self.norm(active) if normed else active) @ matrices["w2"].T


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
    found = {("loss", None): loss.item(), ("embedding_rms", None): rms(model.x)}
    spread = centred_rms if setting.setup.norm == "layernorm" else rms
    for name, divided in (("sigma", model.divided), ("sigma_dual", model.kept[-1]["dual"])):
        found[name, None] = None if divided is None else spread(divided)
    for block, kept in enumerate(model.kept, start=1):
        found |= {(name, block): value for name, value in forward_of(kept, setting.setup).items()}
    found |= gradients_of(model, loss)
    return found | {("top_grad_w2", None): found["grad_w2", setting.depth]}


def forward_of(kept: dict, setup: Setup) -> dict[str, float | None]:
    """What a block's forward pass says."""
    return {
        "stream_rms": rms(kept["ffn"].total),
        "stream_rms_dual": None if kept["dual"] is None else rms(kept["dual"]),
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
