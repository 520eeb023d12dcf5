"""Placements: where the norm sits. Each is one small function registered by name.

A placement updates the stream x, [batch, seq, d], by one sublayer (attention, then FFN):

    update(x, sublayer, norms, add, place) -> the stream after the sublayer, [batch, seq, d]

sublayer(x) is F; norms are this sublayer's own norm layers; add(stream, branch) is the residual sum, which is where
the instrument reads the branch and the un-normalised stream; place says which block this is, of how many. Registered
with whole_block=True it updates by both sublayers at once, and adds twice, for attention first:

    update(x, attention, ffn, norms, add, place) -> the stream after the block

A norm inside a sublayer is asked for by what it norms: attention(x, normed="qk") queries and keys, over their full
width, or with by_head=True those of each head by themselves; ffn(x, normed="h") what leaves the activation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lnmeasure.core.registry import Entry, Registry, known
from lnmeasure.core.weight import Weight


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the stack an update happens: block from 1, depth L in blocks.

    Asking for the depth while stacks of any depth are run at once (stack_depth None) raises DepthAsked. memory goes
    with the stream from sublayer to sublayer: it is for constants, through which no gradient flows.
    """

    block: int
    stack_depth: int | None
    memory: dict[str, Tensor] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Depth L of the stack, in blocks."""
        return known(self.stack_depth)


@dataclass(frozen=True, kw_only=True)
class Placement(Entry):
    """A registered update, how many norms it is given, and whether a final norm closes the stack.

    With dual it updates two streams (x, u), [2, batch, seq, d], both x_0 at first; the head then reads x + N(u).
    gain is what the placement prescribes on top of the init: a factor for each matrix of a block.
    """

    norms: int
    final_norm: bool
    whole_block: bool = False
    dual: bool = False
    gain: Callable[[Weight], float] | None = None


PLACEMENTS = Registry("placement")


def placement(*, source: str, norms: int, final_norm: bool, **further: object) -> Callable:
    """Register the decorated update and hand it back unchanged. further: the other fields of Placement."""

    def register(function: Callable) -> Callable:
        entry = Placement(function=function, source=source, norms=norms, final_norm=final_norm, **further)
        PLACEMENTS.add(entry)
        return function

    return register


@placement(norms=1, final_norm=False, source="Vaswani et al. 2017, arXiv:1706.03762")
def post(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- N(x + F(x))"""
    return norms[0](add(x, sublayer(x)))


@placement(norms=1, final_norm=True, source="Xiong et al. 2020, arXiv:2002.04745")
def pre(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + F(N(x)), final N"""
    return add(x, sublayer(norms[0](x)))


@placement(norms=0, final_norm=False, source="a control: no norm at all")
def none(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + F(x)"""
    return add(x, sublayer(x))


@placement(norms=2, final_norm=True, source="CogView, Ding et al. 2021, arXiv:2105.13290; Peri-LN, arXiv:2502.02732")
def sandwich(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + N(F(N(x))), final N"""
    return add(x, norms[1](sublayer(norms[0](x))))


@placement(norms=2, final_norm=True, whole_block=True, source="OLMo 2, arXiv:2501.00656")
def reordered(x: Tensor, attention: Callable, ffn: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + N(F(x)), queries and keys normed over their full width, final N"""
    x = add(x, norms[0](attention(x, normed="qk")))
    return add(x, norms[1](ffn(x)))


@placement(norms=1, final_norm=True, source="a control: OLMo 2, arXiv:2501.00656, without its QK-norm")
def reordered_no_qk(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + N(F(x)), final N"""
    return add(x, norms[0](sublayer(x)))


def _deepnorm_gain(weight: Weight) -> float:
    """beta = (8L)^(-1/4), on what does not make attention logits."""
    return 1.0 if weight.role in ("wq", "wk") else (8 * weight.depth) ** -0.25


@placement(norms=1, final_norm=False, gain=_deepnorm_gain, source="DeepNet, Wang et al. 2022, arXiv:2203.00555")
def deepnorm(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- N(alpha x + F(x)), alpha = (2L)^(1/4); W_1, W_2, W_V and W_O times (8L)^(-1/4)"""
    return norms[0](add((2 * place.depth) ** 0.25 * x, sublayer(x)))


@placement(norms=2, final_norm=False, whole_block=True, source="Keel, arXiv:2601.19895")
def keel(x: Tensor, attention: Callable, ffn: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- N(alpha x + F(N(x))), alpha = 2L; in the first block x <- x + A(N(x)), x <- N(x + FFN(N(x)))"""
    alpha = 2 * place.depth
    if place.block == 1:
        x = add(x, attention(norms[0](x)))
        return norms[1](add(x, ffn(norms[0](x))))
    x = norms[1](add(alpha * x, attention(norms[0](x))))
    return norms[1](add(alpha * x, ffn(norms[0](x))))


@placement(norms=1, final_norm=False, source="Admin, Liu et al. 2020, arXiv:2004.08249")
def admin(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- N(omega_i x + F_i(x)), omega_1 = 1, omega_(i+1)^2 = Var(omega_i x_i) + Var F_i(x_i)"""
    carried, branch = place.memory.get("omega", 1.0) * x, sublayer(x)
    place.memory["omega"] = (_variance(carried) + _variance(branch)).sqrt().to(x.dtype)
    return norms[0](add(carried, branch))


def _variance(x: Tensor) -> Tensor:
    """Variance over all entries of [batch, seq, d], in float64: [1, 1, 1]."""
    return x.detach().double().var(dim=(-3, -2, -1), correction=0, keepdim=True)


@placement(norms=3, final_norm=True, whole_block=True, source="NormFormer, Shleifer et al. 2021, arXiv:2110.09456")
def normformer(x: Tensor, attention: Callable, ffn: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + N(A(N(x))); x <- x + W_2 N(phi(W_1 N(x))), final N"""
    x = add(x, norms[1](attention(norms[0](x))))
    return add(x, ffn(norms[2](x), normed="h"))


@placement(norms=1, final_norm=True, source="LayerNorm Scaling, Sun et al. 2025, arXiv:2502.05795")
def layernorm_scaling(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + F(N(x) / sqrt(l)), l the block from 1, final N"""
    return add(x, sublayer(norms[0](x) / math.sqrt(place.block)))


@placement(
    norms=1,
    final_norm=True,
    source="Mix-LN, Li et al. 2024, arXiv:2412.13795",
    unconfirmed="that L / 4 is rounded down: its authors' code is given the number of blocks",
)
def mix_ln(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- N(x + F(x)) in the first floor(L / 4) blocks, x <- x + F(N(x)) in the others, final N"""
    update = post if place.block <= place.depth // 4 else pre
    return update(x, sublayer, norms, add, place)


@placement(norms=1, final_norm=True, whole_block=True, source="HybridNorm, Zhuo et al. 2025, arXiv:2503.04598")
def hybridnorm(x: Tensor, attention: Callable, ffn: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + A(x), its queries, keys and values normed head by head; x <- N(x); x <- x + FFN(x), final N"""
    x = norms[0](add(x, attention(x, normed="qkv", by_head=True)))
    return add(x, ffn(x))


@placement(
    norms=2,
    final_norm=False,
    whole_block=True,
    source="B2T connection, Takase et al. 2022, arXiv:2206.00330",
    unconfirmed="whether the init belongs to it by which its authors' code multiplies every matrix by L^(-1/2)",
)
def b2t(x: Tensor, attention: Callable, ffn: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """y = N(x + A(x)); x <- N(x + y + FFN(y))"""
    y = norms[0](add(x, attention(x)))
    return norms[1](add(x + y, ffn(y)))


@placement(norms=1, final_norm=False, dual=True, source="ResiDual, Xie et al. 2023, arXiv:2304.14802")
def residual(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """u <- u + F(x); x <- N(x + F(x)); the head reads x + N(u), u_0 = x_0"""
    x, u = x
    branch = sublayer(x)
    return torch.stack([norms[0](add(x, branch)), u + branch])


@placement(norms=0, final_norm=False, source="ReZero, Bachlechner et al. 2020, arXiv:2003.04887")
def rezero(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + a F(x), a = 0 at init"""
    return add(x, 0.0 * sublayer(x))


@placement(
    norms=1,
    final_norm=True,
    source="LayerScale, Touvron et al. 2021, arXiv:2103.17239",
    unconfirmed="0.1 up to 18 blocks, and where between 24 and 36 blocks 1e-5 ends",
)
def layerscale(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + lambda F(N(x)), lambda = 0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 beyond, final N"""
    scale = 0.1 if place.depth <= 18 else 1e-5 if place.depth <= 24 else 1e-6
    return add(x, scale * sublayer(norms[0](x)))


@placement(
    norms=1,
    final_norm=True,
    source="Depth-muP, Yang et al. 2023, arXiv:2310.02244",
    unconfirmed="that sublayers are counted, 2L of them",
)
def depth_mup(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + (2L)^(-1/2) F(N(x)), final N"""
    return add(x, (2 * place.depth) ** -0.5 * sublayer(norms[0](x)))


@placement(
    norms=1,
    final_norm=True,
    source="CompleteP, Dey et al. 2025, arXiv:2505.01618",
    unconfirmed="that sublayers are counted, 2L of them: nanoGPT-mup counts blocks, over those of a base model",
)
def completep(x: Tensor, sublayer: Callable, norms: list, add: Callable, place: Place) -> Tensor:
    """x <- x + (2L)^(-1) F(N(x)), final N; where the paper counts layers, 2L sublayers are counted"""
    return add(x, sublayer(norms[0](x)) / (2 * place.depth))
