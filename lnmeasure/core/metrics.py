"""One small function of a tensor per metric, the same for activations and gradients.

Sums of float32 tensors are taken by the processor's own dot products, whose error is far below 1e-6, and over again in
float64 where squares leave the range of float32. Tensors of other dtypes are reduced in float64.
"""

import math

import torch
from torch import Tensor

_SMALLEST, _LARGEST = 1e-28, 1e37
"""Between these, a mean square (a sum of squares) of float32 has lost nothing to the ends of float32's range."""


def frobenius(x: Tensor) -> float:
    """sqrt(sum x^2) over all entries."""
    if x.dtype == torch.float32:
        flat = x.reshape(-1)
        squares = torch.dot(flat, flat).item()
        if _SMALLEST * len(flat) < squares < _LARGEST:
            return math.sqrt(squares)
    return torch.linalg.vector_norm(x, dtype=torch.float64).item()


def rms(x: Tensor) -> float:
    """sqrt(mean x^2) over all entries, uncentred."""
    return frobenius(x) / math.sqrt(x.numel())


def centred_rms(x: Tensor) -> float:
    """sqrt(mean over tokens of the variance over d), each token about its own mean. x: [..., d]."""
    x = x.double()
    return rms(x - x.mean(dim=-1, keepdim=True))


def cosines(x: Tensor) -> tuple[float | None, float | None]:
    """Mean uncentred cosines: between positions t != t' of a sequence, and between tokens of different sequences.

    x: [batch, seq, d]. None where there is no pair: the first for seq = 1, the second for batch = 1.
    """
    x = _at_least_single(x)
    batch, seq, _ = x.shape
    per_sequence = _unit(x).sum(dim=1).double()
    squares = per_sequence.square().sum().item()
    total = per_sequence.sum(dim=0).square().sum().item()
    within = (squares - batch * seq) / (batch * seq * (seq - 1)) if seq > 1 else None
    across = (total - squares) / (batch * (batch - 1) * seq * seq) if batch > 1 else None
    return within, across


def logit_std(logits: Tensor, visible: Tensor) -> float:
    """Standard deviation over the unmasked entries. logits: [batch, heads, seq, seq], visible: [seq, seq] of bool."""
    logits = _at_least_single(logits)
    flat, mask = logits.reshape(-1, visible.numel()), visible.flatten().to(logits.dtype)
    number = len(flat) * visible.sum().item()
    mean = (flat @ mask).double().sum().item() / number
    return frobenius((flat - mean).mul_(mask)) / math.sqrt(number)


def participation(weights: Tensor) -> float:
    """Mean over rows of the sum of squared weights. weights: [..., seq], each row summing to 1."""
    return frobenius(weights) ** 2 / (weights.numel() // weights.shape[-1])


def _at_least_single(x: Tensor) -> Tensor:
    return x if x.dtype in (torch.float32, torch.float64) else x.double()


def _unit(x: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    lowest, highest = torch.aminmax(length)
    if x.dtype == torch.float32 and not (lowest.item() > 1e-14 and highest.item() < 1e18):
        return _unit(x.double())
    return x / length
