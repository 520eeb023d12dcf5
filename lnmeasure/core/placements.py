"""Placements: where the norm sits. Each is one small function registered by name.

A placement updates the stream x, [batch, seq, d], by one sublayer (attention, then FFN):

    update(x, sublayer, norms, add, place) -> the stream after the sublayer, [batch, seq, d]

sublayer(x) is F; norms are this sublayer's own norm layers; add(stream, branch) is the residual sum, which is where
the instrument reads the branch and the un-normalised stream; place says which block this is, of how many.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from lnmeasure.core.registry import Entry, Registry, known


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the stack an update happens: block from 1, depth L in blocks.

    Asking for the depth while stacks of any depth are run at once (stack_depth None) raises DepthAsked.
    """

    block: int
    stack_depth: int | None

    @property
    def depth(self) -> int:
        """Depth L of the stack, in blocks."""
        return known(self.stack_depth)


@dataclass(frozen=True, kw_only=True)
class Placement(Entry):
    """A registered update, how many norms each sublayer has, and whether a final norm closes the stack."""

    norms: int
    final_norm: bool


PLACEMENTS = Registry("placement")


def placement(*, norms: int, final_norm: bool, source: str, unconfirmed: str | None = None) -> Callable:
    """Register the decorated update and hand it back unchanged."""

    def register(function: Callable) -> Callable:
        PLACEMENTS.add(
            Placement(function=function, norms=norms, final_norm=final_norm, source=source, unconfirmed=unconfirmed)
        )
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
