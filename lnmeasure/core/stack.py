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

    def leave(self, output: Tensor) -> None:
        """The block ends; output, [batch, seq, d], is what the next one receives."""


def forward(x: Tensor, weights: Weights, setting: Setting, watch: Watch) -> Tensor:
    """Hidden states the head reads, [batch, seq, d], from x_0 = x of the same shape."""
    for block, matrices in enumerate(weights, start=1):
        x = run_block(x, matrices, setting, Place(block=block, stack_depth=setting.depth), watch)
    return close(x, setting, watch)


def run_block(x: Tensor, matrices: dict[str, Tensor], setting: Setting, place: Place, watch: Watch) -> Tensor:
    """What the next block receives, [batch, seq, d], from what this one does. The depth that counts is the place's."""
    setup, placement = setting.setup, PLACEMENTS[setting.placement]
    norms = [partial(normalise, setup=setup, watch=watch)] * placement.norms
    watch.enter(place.block)
    for name, function in (("attention", attend), ("ffn", feed_forward)):
        sublayer = partial(function, matrices=matrices, setup=setup, watch=watch)
        x = placement.function(x, sublayer, norms, partial(watch.add, name), place)
    watch.leave(x)
    return x


def close(x: Tensor, setting: Setting, watch: Watch) -> Tensor:
    """What the head reads, [batch, seq, d], from the last block's output of the same shape."""
    return normalise(x, setting.setup, watch) if PLACEMENTS[setting.placement].final_norm else x


def normalise(x: Tensor, setup: Setup, watch: Watch) -> Tensor:
    """LayerNorm or RMSNorm over d at gain 1 and bias 0. x: [batch, seq, d]."""
    watch.normed(x)
    rule = F.layer_norm if setup.norm == "layernorm" else F.rms_norm
    return rule(x, (setup.width,), eps=setup.eps)


def attend(x: Tensor, matrices: dict[str, Tensor], setup: Setup, watch: Watch) -> Tensor:
    """Multi-head self-attention without biases. x: [batch, seq, d] -> [batch, seq, d]."""
    roles = [role for role in ("wq", "wk", "wv") if role in matrices]
    projected = multiply(x, torch.cat([matrices[role] for role in roles], dim=-2)).split(setup.width, dim=-1)
    *queries_and_keys, values = (_heads(part, setup) for part in projected)
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


def feed_forward(x: Tensor, matrices: dict[str, Tensor], setup: Setup, watch: Watch) -> Tensor:
    """W2 activation(W1 x), without biases. x: [batch, seq, d] -> [batch, seq, r d] -> [batch, seq, d]."""
    inner = multiply(x, matrices["w1"])
    return multiply(inner.relu_() if setup.activation == "relu" else F.gelu(inner), matrices["w2"])


def multiply(x: Tensor, matrix: Tensor) -> Tensor:
    """x W^T: [batch, seq, n_in] by [n_out, n_in], or both with the axis of seeds, to [batch, seq, n_out]."""
    if matrix.dim() == 2:
        return F.linear(x, matrix)
    return torch.bmm(x.flatten(1, 2), matrix.transpose(1, 2)).unflatten(1, x.shape[1:3])


def _heads(x: Tensor, setup: Setup) -> Tensor:
    """[batch, seq, d] -> [batch, heads, seq, d_head]."""
    return x.reshape(*x.shape[:-1], setup.heads, setup.d_head).transpose(-3, -2)
