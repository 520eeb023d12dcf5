"""How long cells will take and how much memory: from earlier timings where the store has any, else from arithmetic."""

import math
from dataclasses import dataclass

import pandas as pd

from jobs.batches import Batch
from jobs.words import count, duration
from lnmeasure.records import Setting, Setup

_FLOPS_PER_S = 30e9
"""Assumed for a core when nothing has been measured yet; torch on one core of our machines reached 40 to 90 GFLOP/s."""
_TORCH_MB = 350.0
_BYTES = {"float32": 4, "float64": 8, "bfloat16": 2}
DEVICE_MB = 8000.0
"""Memory an accelerator is taken to have: the planning process does not ask it."""
_LIVE_COPIES = 1.5
"""Saved activations are kept once, and temporaries come on top: 1.2 to 1.4 times over the setups tried."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What some cells will take: wall time in seconds and, per worker, memory in MB. told: from earlier timings."""

    wall_s: float
    peak_mb: float
    told: bool

    def words(self, workers: int) -> str:
        """The estimate as one line for people."""
        basis = "time from earlier timings" if self.told else "by arithmetic: nothing like it has been timed here yet"
        return (
            f"about {duration(self.wall_s)} with {count(workers, 'worker')}, up to {self.peak_mb:.0f} MB each ({basis})"
        )


class Timings:
    """What the store knows of the cost of cells. timed: the answer of the query timings."""

    def __init__(self, timed: pd.DataFrame) -> None:
        self._timed: dict[str, dict[int, tuple[float, float]]] = {}
        for row in timed.itertuples():
            self._timed.setdefault(row.setup, {})[row.depth] = (row.wall_s, row.peak_mb)

    @classmethod
    def none(cls) -> "Timings":
        """Nothing has been timed."""
        return cls(pd.DataFrame(columns=["setup", "depth", "wall_s", "peak_mb"]))

    def wall_s(self, setting: Setting) -> float:
        """Seconds one cell takes: the nearest timed depth of its setup in proportion, else by its arithmetic."""
        near = self._nearest(setting)
        if near is None:
            # paths: backward from each block, without matrices
            passes = (setting.depth + 1) / 6 if setting.kind == "paths" else 1
            return passes * flops(setting.setup, setting.depth) / _FLOPS_PER_S
        wall_s, _ = self._timed[setting.setup.name][near]
        return wall_s * (setting.depth / near) ** (2 if setting.kind == "paths" else 1)

    def peak_mb(self, batch: Batch) -> float:
        """MB one worker takes: measured at the same setup and depth where kept whole, else by counting tensors."""
        _, peak_mb = self._timed.get(batch.settings[0].setup.name, {}).get(batch.depth, (math.nan, math.nan))
        if math.isnan(peak_mb) or batch.streaming or batch.whole_only:
            return memory_mb(batch)
        return peak_mb

    def batch_s(self, batch: Batch) -> float:
        """Seconds a batch takes: a third of a cell's time is its forward pass, and one to the deepest serves all.

        Of the whole stack only, each depth adds about a block to that. Streaming runs each block forward once more.
        """
        forward_s = batch.seeds * max(map(self.wall_s, batch.settings)) / 3
        if batch.whole_only:
            return forward_s * (1 + len(batch.settings) / batch.seeds / batch.depth)
        if len(batch.settings) == batch.seeds:
            return forward_s * (4 if batch.streaming else 3)
        backward_s = sum(map(self.wall_s, batch.settings)) * 2 / 3
        return forward_s * (2 if batch.streaming else 1) + backward_s

    def of(self, batches: list[Batch], workers: int) -> Estimate:
        """What all of them take with some workers: no less than the longest one alone."""
        times = [self.batch_s(batch) for batch in batches]
        return Estimate(
            wall_s=max(sum(times) / workers, max(times, default=0.0)),
            peak_mb=max(map(self.peak_mb, batches), default=0.0),
            told=all(self._nearest(setting) is not None for batch in batches for setting in batch.settings),
        )

    def _nearest(self, setting: Setting) -> int | None:
        """The timed depth of the setting's setup that is nearest to its own."""
        depths = self._timed.get(setting.setup.name, ())
        return min(depths, key=lambda depth: abs(depth - setting.depth), default=None)


def plain_mb(setup: Setup, depth: int) -> float:
    """MB a worker takes that keeps all blocks of a stack for the backward pass."""
    return _TORCH_MB + _LIVE_COPIES * activation_mb(setup, depth)


def streaming_mb(setup: Setup, depth: int, depths: int = 1) -> float:
    """MB a worker takes that keeps one stream tensor per block, and a gradient for each of some depths."""
    stream = setup.batch * setup.seq_len * setup.width * _BYTES[setup.dtype] / 1e6
    return plain_mb(setup, 1) + (depth + 2 * depths) * stream


def needs_streaming(batch: Batch, share_mb: float) -> bool:
    """Whether a batch, kept as a whole, would take more than a worker's share of memory."""
    return not batch.whole_only and plain_mb(batch.settings[0].setup, batch.depth) > share_mb


def memory_mb(batch: Batch) -> float:
    """MB a worker takes for a batch, in its manner."""
    return _TORCH_MB + batch.seeds * (_seed_mb(batch) - _TORCH_MB)


def seeds_at_once(batch: Batch) -> int:
    """How many seeds of a batch are run side by side: one where the processor measures, else what the memory holds."""
    return 1 if batch.device == "cpu" else max(1, int(DEVICE_MB / _seed_mb(batch)))


def _seed_mb(batch: Batch) -> float:
    setup = batch.settings[0].setup
    if batch.whole_only:
        return plain_mb(setup, 1)
    depths = len(batch.settings) // batch.seeds
    return streaming_mb(setup, batch.depth, depths) if batch.streaming else plain_mb(setup, batch.depth)


def flops(setup: Setup, depth: int) -> float:
    """Multiplications and additions of a forward and backward pass: three times those of the forward."""
    tokens, depth = setup.batch * setup.seq_len, _blocks(setup, depth)
    weights = sum(rows * columns for rows, columns in setup.weight_shapes().values())
    attention = 2 * setup.seq_len * setup.width
    return 3 * 2 * tokens * (depth * (weights + attention) + setup.width * setup.vocab)


def _blocks(setup: Setup, depth: int) -> int:
    """Blocks that are run: an encoder has as many as its decoder, none of them larger."""
    return 2 * depth if setup.encoder == "stack" else depth


def activation_mb(setup: Setup, depth: int) -> float:
    """MB of what a forward pass must keep for its backward pass, each tensor once."""
    tokens, depth = setup.batch * setup.seq_len, _blocks(setup, depth)
    per_token = depth * (6 * setup.width + 2 * setup.d_ff + 2 * setup.heads * setup.seq_len) + 4 * setup.vocab
    weights = depth * sum(rows * columns for rows, columns in setup.weight_shapes().values())
    weights += 3 * setup.width * setup.vocab
    return (tokens * per_token + weights) * _BYTES[setup.dtype] / 1e6
