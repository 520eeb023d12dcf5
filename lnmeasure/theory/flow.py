"""Covariances on their way up a stack, and gradient covariances on their way down.

A Flow is a tensor of the network as theory sees it: cov[t, t'], the mean product of one element at token t and at token
t' over the tokens of two sequences, [2T, 2T]. It knows what it was made of, and how the covariance of the loss gradient
on it, G[t, t'] = sum over d of g_t g_t', passes on to that. Branches are independent of the stream they are added to,
because their last matrix is: so covariances add on the way up, and on the way down.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Pull = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Flow:
    """A covariance [2T, 2T], and for each Flow it was made of the map from its gradient's covariance to that one's."""

    cov: Array
    sources: Sequence[tuple["Flow", Pull]] = ()

    @property
    def power(self) -> Array:
        """Mean square of an element at each token: [2T]."""
        return np.diagonal(self.cov)

    @property
    def rms(self) -> float:
        """Root of the mean square over tokens."""
        return float(np.sqrt(self.power.mean()))


def scaled(x: Flow, by: float | Array) -> Flow:
    """x times a number, or a number per token."""
    both = np.multiply.outer(by, by) if np.ndim(by) else by * by
    return Flow(x.cov * both, [(x, lambda gradient: gradient * both)])


def added(*parts: Flow) -> Flow:
    """The sum of flows that are independent of one another."""
    return Flow(sum(part.cov for part in parts), [(part, lambda gradient: gradient) for part in parts])


def normed(x: Flow, eps: float, kept: float) -> Flow:
    """x over sqrt(its mean square at the token + eps); kept is the share of the gradient its Jacobian lets through."""
    by = 1 / np.sqrt(x.power + eps)
    both = np.multiply.outer(by, by)
    return Flow(x.cov * both, [(x, lambda gradient: gradient * both * kept)])


def correlation(cov: Array) -> Array:
    """cov scaled to a unit diagonal, within -1 and 1. A token of no power is uncorrelated with all."""
    spread = np.sqrt(np.diagonal(cov))
    both = np.multiply.outer(spread, spread)
    return np.clip(np.divide(cov, both, out=np.eye(len(cov)), where=both > 0), -1, 1)


def gradients(top: Flow, at_top: Array) -> dict[int, Array]:
    """The gradient's covariance on every Flow that top was made of, by id; at_top is the one on top itself."""
    found = {id(top): at_top}
    for flow in reversed(_in_order(top)):
        gradient = found.get(id(flow))
        for source, pull in flow.sources if gradient is not None else ():
            found[id(source)] = found.get(id(source), 0) + pull(gradient)
    return found


def _in_order(top: Flow) -> list[Flow]:
    """Every flow after those it was made of."""
    order, seen, stack = [], set(), [(top, False)]
    while stack:
        flow, is_left = stack.pop()
        if is_left:
            order.append(flow)
        elif id(flow) not in seen:
            seen.add(id(flow))
            stack.append((flow, True))
            stack.extend((source, False) for source, _ in flow.sources)
    return order
