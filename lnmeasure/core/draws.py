"""Every random number of a measurement. A raw draw is U(0, 1) and depends on seed, role and block, on nothing else."""

import hashlib
import math

import numpy as np
import torch
from torch import Tensor

from lnmeasure.records import Setup


def raw_draw(seed: int, role: str, block: int, shape: tuple[int, ...]) -> Tensor:
    """U(0, 1) in float64 for one tensor, always made on the CPU. Shape: shape; block is 0 for what is in no block.

    The values are the midpoints of 2^32 equal bins, so that 0 and 1 never occur and the inverse normal distribution
    function stays finite. The bits come from PCG64DXSM, whose raw stream numpy keeps the same between versions; the
    128 bits of its seed are a digest of (seed, role, block), so that no two tensors share a stream by accident.
    """
    digest = hashlib.blake2b(f"{seed}/{role}/{block}".encode(), digest_size=16).digest()
    size = math.prod(shape)
    words = np.random.PCG64DXSM(int.from_bytes(digest, "little")).random_raw((size + 1) // 2)
    bins = words.astype("<u8", copy=False).view("<u4")[:size]
    raw = bins.astype(np.float64)
    raw += 0.5
    raw /= 2.0**32
    return torch.from_numpy(raw).reshape(shape)


def uniform(raw: Tensor, bound: float) -> Tensor:
    """U(-bound, bound): the raw draw scaled. Standard deviation bound / sqrt(3)."""
    return (2 * raw).sub_(1).mul_(bound)


def normal(raw: Tensor, std: float) -> Tensor:
    """N(0, std^2): the raw draw through the inverse of the normal distribution function."""
    return (2 * raw).sub_(1).erfinv_().mul_(math.sqrt(2) * std)


def integers(seed: int, role: str, setup: Setup) -> Tensor:
    """Tokens or targets, [batch, seq], int64 in [0, V): alike for all (uniform) or with weight 1/(id + 1) (zipf)."""
    raw = raw_draw(seed, role, 0, (setup.batch, setup.seq_len))
    if setup.data == "uniform":
        return (raw * setup.vocab).long()
    weight = 1 / torch.arange(1, setup.vocab + 1, dtype=torch.float64)
    return torch.searchsorted(weight.cumsum(0) / weight.sum(), raw).clamp(max=setup.vocab - 1)
