"""Means over seeds with their t intervals. Student's quantiles are computed here: the page has no scipy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean over seeds with its 95 % interval, and the wider one that allows for several comparisons at once."""

    estimate: float
    low: float
    high: float
    surely_low: float
    surely_high: float
    n_seeds: int


def over_seeds(values: Sequence[float], logs: bool = False, comparisons: int = 1) -> Interval:
    """Mean and t interval of one number per seed, of which there are two at least; on logs where it is a ratio.

    The wider interval is Bonferroni's: all of so many comparisons hold at once with a probability of 95 %.
    """
    numbers = [math.log(value) for value in values] if logs else list(values)
    mean, error = fmean(numbers), stdev(numbers) / math.sqrt(len(numbers))
    back = math.exp if logs else float
    half, wide = (error * t_quantile(len(numbers) - 1, n) for n in (1, comparisons))
    return Interval(
        estimate=back(mean),
        low=back(mean - half),
        high=back(mean + half),
        surely_low=back(mean - wide),
        surely_high=back(mean + wide),
        n_seeds=len(numbers),
    )


@cache
def t_quantile(freedom: int, comparisons: int = 1) -> float:
    """Student's t that is exceeded either way with probability 5 % over the number of comparisons."""
    tail = (1 - LEVEL) / comparisons
    low, high = 0.0, 1.0
    while _both_tails(high, freedom) > tail:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _both_tails(middle, freedom) > tail else (low, middle)
    return (low + high) / 2


def _both_tails(t: float, freedom: int) -> float:
    """P(|T| > t): the regularised incomplete beta function of freedom / (freedom + t^2) at (freedom / 2, 1 / 2)."""
    x, a, b = freedom / (freedom + t * t), freedom / 2, 0.5
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    return _beta(x, a, b)


def _beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function by its continued fraction, for x below (a + 1) / (a + b + 2)."""
    if x <= 0:
        return 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    value = 0.0
    for m in range(120, 0, -1):  # from the inside out; 120 terms leave nothing at double precision
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        value = even / (1 + odd / (1 + value))
    first = -(a + b) * x / (a + 1)
    return math.exp(log_front) / a / (1 + first / (1 + value))
