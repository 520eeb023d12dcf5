"""One small function of a tensor per metric, reduced in float64, the same for activations and gradients."""

import math

import torch
from torch import Tensor


def frobenius(x: Tensor) -> float:
    """sqrt(sum x^2) over all entries."""
    return torch.linalg.vector_norm(x, dtype=torch.float64).item()


def rms(x: Tensor) -> float:
    """sqrt(mean x^2) over all entries, uncentred."""
    return frobenius(x) / math.sqrt(x.numel())


def centred_rms(x: Tensor) -> float:
    """sqrt(mean over tokens of the variance over d), each token about its own mean. x: [..., d]."""
    x = x.double()
    return rms(x - x.mean(dim=-1, keepdim=True))


def token_cosine(x: Tensor) -> float | None:
    """Mean uncentred cosine between positions t != t' of a sequence. x: [batch, seq, d]. None for seq = 1."""
    batch, seq, _ = x.shape
    if seq == 1:
        return None
    total = _unit(x).sum(dim=1).square().sum().item()
    return (total - batch * seq) / (batch * seq * (seq - 1))


def cross_sequence_cosine(x: Tensor) -> float | None:
    """Mean uncentred cosine between tokens of different sequences. x: [batch, seq, d]. None for batch = 1."""
    batch, seq, _ = x.shape
    if batch == 1:
        return None
    per_sequence = _unit(x).sum(dim=1)
    total = per_sequence.sum(dim=0).square().sum() - per_sequence.square().sum()
    return total.item() / (batch * (batch - 1) * seq * seq)


def logit_std(logits: Tensor, visible: Tensor) -> float:
    """Standard deviation over the unmasked entries. logits: [batch, heads, seq, seq], visible: [seq, seq] of bool."""
    return logits.double()[..., visible].std(correction=0).item()


def participation(weights: Tensor) -> float:
    """Mean over rows of the sum of squared weights. weights: [..., seq], each row summing to 1."""
    return weights.double().square().sum(dim=-1).mean().item()


def _unit(x: Tensor) -> Tensor:
    x = x.double()
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
