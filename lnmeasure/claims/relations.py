"""Relations a claim can predict: readings of some seeds become an estimate, its interval, and whether it holds.

First something is taken of each seed's readings (a slope, a ratio), then its mean over seeds is held against a region.
A relation holds where the 95 % interval lies inside the region, fails where it lies outside, and is open where it does
neither: 'stays the same' is an equivalence test, never a failed difference test. Where many blocks or depths are
compared, each must lie inside, and one fails only by Bonferroni's wider interval; what is reported is the comparison
that speaks most against the claim.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lnmeasure.claims.interval import Interval, over_seeds, t_quantile

Key = tuple[float, object]
"""Where a reading belongs: depth, and position (block, depth or a name)."""
Seed = dict[Key, float]
"""One seed's readings, in order of depth and position."""


@dataclass(frozen=True, kw_only=True)
class Region:
    """Values a claim allows, and the one that stands for them in words and charts."""

    low: float = -math.inf
    high: float = math.inf
    target: float

    def says(self, found: Interval) -> bool | None:
        """Whether an interval lies inside (True), for sure outside (False), or across the border (None)."""
        if self.low <= found.low and found.high <= self.high:
            return True
        return False if found.surely_high < self.low or found.surely_low > self.high else None

    def strain(self, found: Interval) -> float:
        """How much an estimate speaks against the claim: the larger, the more."""
        if math.isinf(self.low):
            return found.estimate
        return -found.estimate if math.isinf(self.high) else abs(found.estimate - self.target)

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {self.high:.6g}"
        if math.isinf(self.high):
            return f"at least {self.low:.6g}"
        return f"{self.target:.6g} (from {self.low:.6g} to {self.high:.6g})"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What readings say: the reported interval, whether the relation holds, and how many comparisons were made."""

    found: Interval
    holds: bool | None
    comparisons: int = 1


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What is taken of each seed's readings, and what it must be.

    on_means: the source speaks of means over seeds, so a mean inside the region is enough; to fail takes the interval.
    """

    name: str
    region: Region
    take: str = "each"
    logs: bool = False
    on_means: bool = False

    def says(self, found: Interval) -> bool | None:
        """Whether an interval bears the relation out."""
        if self.on_means and self.region.low <= found.estimate <= self.region.high:
            return True
        return self.region.says(found)


def hold(seeds: Sequence[Seed], relation: Relation, times: int = 1) -> Finding:
    """Hold seeds' readings, all at the same positions, against a relation; it is one of so many times it is asked."""
    if relation.name in PROFILES:
        return PROFILES[relation.name](seeds, relation, times)
    if relation.take == "each":
        return _worst(seeds, relation, times, relation.logs)
    taken = TAKES[relation.take]
    found = over_seeds([taken.of(seed) for seed in seeds], taken.logs, times)
    return Finding(found=found, holds=relation.says(found), comparisons=times)


def _worst(seeds: Sequence[Seed], relation: Relation, times: int, logs: bool) -> Finding:
    comparisons = times * len(seeds[0])
    found = [over_seeds([seed[key] for seed in seeds], logs, comparisons) for key in seeds[0]]
    worst = max(found, key=relation.region.strain)
    return Finding(found=worst, holds=_all(map(relation.says, found)), comparisons=comparisons)


def _flat(seeds: Sequence[Seed], relation: Relation, times: int) -> Finding:
    """Each position over the geometric mean of all."""
    return _worst([_over_geometric_mean(seed) for seed in seeds], relation, times, logs=True)


def _over_geometric_mean(seed: Seed) -> Seed:
    middle = math.exp(np.mean(np.log([*seed.values()])))
    return {key: value / middle for key, value in seed.items()}


def _within_factor(seeds: Sequence[Seed], relation: Relation, times: int) -> Finding:
    """The largest position over the smallest, by their geometric means; any two could have been these."""
    logs = np.log([[*seed.values()] for seed in seeds])
    middle = logs.mean(axis=0)
    comparisons = times * max(1, math.comb(len(middle), 2))
    extremes = logs[:, middle.argmax()] - logs[:, middle.argmin()]
    found = over_seeds([*np.exp(extremes)], logs=True, comparisons=comparisons)
    pairs = logs[:, :, None] - logs[:, None, :]
    upper = pairs.mean(axis=0) + t_quantile(len(seeds) - 1) * pairs.std(axis=0, ddof=1) / math.sqrt(len(seeds))
    holds = relation.says(found)
    if holds and upper.max() > math.log(relation.region.high) and not relation.on_means:
        holds = None  # the extremes are close enough, and two others, whose readings scatter more, may not be
    return Finding(found=found, holds=holds, comparisons=comparisons)


def _monotone(seeds: Sequence[Seed], relation: Relation, times: int) -> Finding:
    """Last over first; and no step may surely go the other way."""
    steps = [*pairwise(seeds[0])]
    comparisons = times * (len(steps) + 1)
    ratios = [
        over_seeds([s[b] / s[a] for s in seeds], True, comparisons) for a, b in [(steps[0][0], steps[-1][1]), *steps]
    ]
    whole, *each = map(relation.says, ratios)
    return Finding(found=ratios[0], holds=False if False in each else whole, comparisons=comparisons)


def _ordering(seeds: Sequence[Seed], relation: Relation, times: int) -> Finding:
    """Each position over the next one, in the order of the claim."""
    steps = [*pairwise(seeds[0])]
    ratios = [{(0, i): seed[a] / seed[b] for i, (a, b) in enumerate(steps)} for seed in seeds]
    return _worst(ratios, relation, times, logs=True)


def _all(answers: Sequence[bool | None]) -> bool | None:
    known = set(answers)
    return False if False in known else None if None in known else True


@dataclass(frozen=True, kw_only=True)
class Take:
    """A number of one seed's readings; logs where it is a ratio, whose mean over seeds is geometric."""

    of: Callable[[Seed], float]
    words: str
    logs: bool = False


def slope(seed: Seed) -> float:
    """d ln(reading) / d ln(position), by least squares."""
    return _line(np.log(_positions(seed)), np.log([*seed.values()]))[0]


def factor(seed: Seed) -> float:
    """The factor by which readings change from one position to the next, by least squares on their logs."""
    return math.exp(_line(_positions(seed), np.log([*seed.values()]))[0])


def last_over_first(seed: Seed) -> float:
    """The reading at the last position over that at the first."""
    first, *_, last = seed.values()
    return last / first


def rank_correlation(seed: Seed) -> float:
    """Spearman's correlation of readings with their positions."""
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (_positions(seed), [*seed.values()])]
    return float(np.corrcoef(*ranks)[0, 1])


def exponential_fit(seed: Seed) -> float:
    """R^2 of ln(reading) as a line in the position, less R^2 as a line in its logarithm."""
    x, y = _positions(seed), np.log([*seed.values()])
    return _line(x, y)[1] - _line(np.log(x), y)[1]


def _positions(seed: Seed) -> np.ndarray:
    return np.array([position for _, position in seed], dtype=float)


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope and R^2 of the line through some points."""
    dx, dy = x - np.mean(x), y - np.mean(y)
    rise = float(dx @ dy / (dx @ dx))
    return rise, float(rise * (dx @ dy) / (dy @ dy)) if dy @ dy else 1.0


TAKES = {
    "slope": Take(of=slope, words="log-log slope"),
    "factor": Take(of=factor, words="factor from one to the next", logs=True),
    "last_over_first": Take(of=last_over_first, words="last over first", logs=True),
    "first_over_last": Take(of=lambda seed: 1 / last_over_first(seed), words="first over last", logs=True),
    "rank_correlation": Take(of=rank_correlation, words="rank correlation"),
    "exponential_fit": Take(of=exponential_fit, words="how much better an exponential fits than a power (R²)"),
}
"""What can be taken of each seed's readings. 'each' is every reading by itself."""
PROFILES = {
    "flat": _flat,
    "within_factor": _within_factor,
    "increases": _monotone,
    "decreases": _monotone,
    "ordering": _ordering,
}
"""Relations of all readings of a seed to one another."""
NUMBERS = ("equals", "at_most", "at_least", "between")
"""Relations of one number to a region."""
PROFILE_WORDS = {
    "flat": "furthest from the mean of all, over it",
    "within_factor": "largest over smallest",
    "increases": "last over first, no step down",
    "decreases": "last over first, no step up",
    "ordering": "the closest two, one over the next",
}
