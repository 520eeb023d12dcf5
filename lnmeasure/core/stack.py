"""A stack of blocks, each attention then FFN, run forward under the eyes of a Watch.

Stacks of several seeds can be run side by side: then every tensor, matrices too, has a first axis more, the seed's.
"""

import math
from functools import partial
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lnmeasure.core.initialise import Weights
from lnmeasure.core.placements import PLACEMENTS, Place
from lnmeasure.records import Setting, Setup


class Watch(Protocol):
    """What sees the tensors of a forward pass. Every method may read; add also returns the residual sum."""

    def enter(self, block: int) -> None:
        """Block number block (from 1) begins."""

    def add(self, sublayer: str, stream: Tensor, branch: Tensor) -> Tensor:
        """The residual sum of 'attention' or 'ffn': stream + branch, both [batch, seq, d]."""

    def attended(self, logits: Tensor | None, visible: Tensor, weights: Tensor) -> None:
        """Scaled logits before masking, [batch, heads, seq, seq], which are unmasked [seq, seq], softmax weights."""

    def normed(self, x: Tensor) -> None:
        """x, [batch, seq, d], is about to be divided by a norm."""

    def leave(self, output: Tensor, dual: Tensor | None) -> None:
        """The block ends; output, [batch, seq, d], is what the next one receives, and a second stream where it has."""


def forward(x: Tensor, weights: Weights, setting: Setting, watch: Watch) -> Tensor:
    """Hidden states the head reads, [batch, seq, d], from x_0 = x of the same shape."""
    x, memory = begin(x, setting), {}
    for block, matrices in enumerate(weights, start=1):
        place = Place(block=block, stack_depth=setting.depth, memory=memory)
        x = run_block(x, matrices, setting, place, watch)
    return close(x, setting, watch)


def begin(x: Tensor, setting: Setting) -> Tensor:
    """What the first block receives: x_0, [batch, seq, d], twice where the placement has two streams."""
    return torch.stack([x, x]) if PLACEMENTS[setting.placement].dual else x


def main_stream(x: Tensor, setting: Setting) -> Tensor:
    """The stream that blocks read, [batch, seq, d], of what passes between them."""
    return x[0] if PLACEMENTS[setting.placement].dual else x


def run_block(
    x: Tensor,
    matrices: dict[str, Tensor],
    setting: Setting,
    place: Place,
    watch: Watch,
    encoded: Tensor | None = None,
) -> Tensor:
    """What the next block receives, [batch, seq, d], from what this one does. The depth that counts is the place's.

    With two streams both are [2, batch, seq, d]. Between attention and FFN a block attends to an encoder's outputs,
    encoded, where there are any; ValueError for a placement that has no rule for it.
    """
    setup, placement = setting.setup, PLACEMENTS[setting.placement]
    norms = [partial(normalise, setup=setup, watch=watch)] * placement.norms
    own = [partial(function, matrices=matrices, setup=setup, watch=watch) for function in (attend, feed_forward)]
    named = dict(zip(("attention", "ffn"), own, strict=True))
    if encoded is not None:
        _require_sublayers(setting.placement)
        across = partial(attend_across, encoded=encoded, matrices=matrices, setup=setup)
        named = {"attention": own[0], "cross": across, "ffn": own[1]}
    sublayers, names = named.values(), iter(named)

    def add(stream: Tensor, branch: Tensor) -> Tensor:
        return watch.add(next(names), stream, branch)

    watch.enter(place.block)
    if placement.whole_block:
        x = placement.function(x, *sublayers, norms, add, place)
    else:
        for sublayer in sublayers:
            x = placement.function(x, sublayer, norms, add, place)
    watch.leave(main_stream(x, setting), x[1] if placement.dual else None)
    return x


def _require_sublayers(placement: str) -> None:
    if PLACEMENTS[placement].whole_block:
        raise ValueError(
            f"placement is {placement!r}: it updates by a whole block, so nothing says where attention to an encoder's "
            "outputs goes. Choose a placement that updates by one sublayer, such as post or pre."
        )


def close(x: Tensor, setting: Setting, watch: Watch) -> Tensor:
    """What the head reads, [batch, seq, d], from the last block's output."""
    placement = PLACEMENTS[setting.placement]
    if placement.dual:
        return x[0] + normalise(x[1], setting.setup, watch)
    return normalise(x, setting.setup, watch) if placement.final_norm else x


def normalise(x: Tensor, setup: Setup, watch: Watch) -> Tensor:
    """LayerNorm or RMSNorm over d at gain 1 and bias 0. x: [batch, seq, d]."""
    watch.normed(x)
    return norm_of(x, setup)


def norm_of(x: Tensor, setup: Setup) -> Tensor:
    """The norm itself, over the last axis of x, whatever its width."""
    rule = F.layer_norm if setup.norm == "layernorm" else F.rms_norm
    return rule(x, x.shape[-1:], eps=setup.eps)


def attend(
    x: Tensor, matrices: dict[str, Tensor], setup: Setup, watch: Watch, normed: str = "", by_head: bool = False
) -> Tensor:
    """Multi-head self-attention without biases. x: [batch, seq, d] -> [batch, seq, d].

    normed: which of queries, keys and values, as letters of 'qkv', are normed, over d or over each head's d_head.
    """
    roles = [role for role in ("wq", "wk", "wv") if role in matrices]
    projected = multiply(x, torch.cat([matrices[role] for role in roles], dim=-2)).split(setup.width, dim=-1)
    parts = []
    for role, part in zip(roles, projected, strict=True):
        norms = role[1] in normed
        heads = _heads(norm_of(part, setup) if norms and not by_head else part, setup)
        parts.append(norm_of(heads, setup) if norms and by_head else heads)
    *queries_and_keys, values = parts
    visible = torch.ones(setup.seq_len, setup.seq_len, dtype=torch.bool, device=x.device)
    if setup.attention == "causal":
        visible = visible.tril()
    if setup.attention == "uniform":
        logits, weights = None, visible.to(x.dtype) / setup.seq_len
    else:
        queries, keys = queries_and_keys
        logits = queries @ keys.transpose(-1, -2) / math.sqrt(setup.d_head)
        weights = logits.masked_fill(~visible, -math.inf).softmax(dim=-1)
    watch.attended(logits, visible, weights)
    mixed = (weights @ values).transpose(-3, -2).reshape(x.shape)
    return multiply(mixed, matrices["wo"]) if setup.output_projection else mixed


def attend_across(x: Tensor, encoded: Tensor, matrices: dict[str, Tensor], setup: Setup) -> Tensor:
    """Multi-head attention of x to all of an encoder's outputs. x, encoded: [batch, seq, d] -> [batch, seq, d].

    W_Q, W_K, W_V and W_O are cq, ck, cv and co.
    """
    values = _heads(multiply(encoded, matrices["cv"]), setup)
    if setup.attention == "uniform":
        mixed = values.mean(dim=-2, keepdim=True).expand_as(values)
    else:
        queries, keys = (_heads(multiply(y, matrices[role]), setup) for y, role in ((x, "cq"), (encoded, "ck")))
        mixed = (queries @ keys.transpose(-1, -2) / math.sqrt(setup.d_head)).softmax(dim=-1) @ values
    mixed = mixed.transpose(-3, -2).reshape(x.shape)
    return multiply(mixed, matrices["co"]) if setup.output_projection else mixed


def feed_forward(x: Tensor, matrices: dict[str, Tensor], setup: Setup, watch: Watch, normed: str = "") -> Tensor:
    """W2 activation(W1 x), without biases. x: [batch, seq, d] -> [batch, seq, r d] -> [batch, seq, d].

    normed: 'h' where what leaves the activation is normed, over r d.
    """
    inner = multiply(x, matrices["w1"])
    active = inner.relu_() if setup.activation == "relu" else F.gelu(inner)
    return multiply(norm_of(active, setup) if normed else active, matrices["w2"])


def multiply(x: Tensor, matrix: Tensor) -> Tensor:
    """x W^T: [batch, seq, n_in] by [n_out, n_in], or both with the axis of seeds, to [batch, seq, n_out]."""
    if matrix.dim() == 2:
        return F.linear(x, matrix)
    return torch.bmm(x.flatten(1, 2), matrix.transpose(1, 2)).unflatten(1, x.shape[1:3])


def cross_entropy(hidden: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """Mean over tokens of -ln p(target), in nats. hidden: [batch, seq, d], head: [V, d], targets: [batch, seq].

    Of seeds side by side, the loss of each: [seeds].
    """
    logits = multiply(hidden, head)
    if targets.dim() == 2:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    losses = [F.cross_entropy(x.flatten(0, 1), y.flatten()) for x, y in zip(logits, targets, strict=True)]
    return torch.stack(losses)


def _heads(x: Tensor, setup: Setup) -> Tensor:
    """[batch, seq, d] -> [batch, heads, seq, d_head]."""
    return x.reshape(*x.shape[:-1], setup.heads, setup.d_head).transpose(-3, -2)
