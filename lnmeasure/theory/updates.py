"""How covariance adds in each placement: the update of core's placement of the same name, on Flows.

A placement that is not here is not predicted. Each function takes the flow that reaches a block and its Site, and gives
the flow that leaves it; branches and sums are handed to site.add, as core's placements hand theirs to the instrument.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from lnmeasure.theory.flow import Flow, added, scaled


class Site(Protocol):
    """What an update may use: its block of how many, its sublayers, the norm, the sum, what the stack remembers."""

    block: int
    depth: int
    memory: dict

    def attention(self, x: Flow, normed: str = "", by_head: bool = False) -> Flow:
        """What attention makes of x."""

    def ffn(self, x: Flow, normed: str = "") -> Flow:
        """What the FFN makes of x."""

    def norm(self, x: Flow) -> Flow:
        """x normed."""

    def add(self, stream: Flow, branch: Flow) -> Flow:
        """The residual sum."""


Update = Callable[[Flow, Site], Flow]
UPDATES: dict[str, Update] = {}
FINAL_NORM: set[str] = set()
GAINS: dict[str, Callable[[str, int], float]] = {}


def adds(*, final_norm: bool, gain: Callable[[str, int], float] | None = None) -> Callable[[Update], Update]:
    """Register how covariance adds in the placement of this name; gain, by role and L, multiplies variances."""

    def register(update: Update) -> Update:
        UPDATES[update.__name__] = update
        if final_norm:
            FINAL_NORM.add(update.__name__)
        if gain:
            GAINS[update.__name__] = gain
        return update

    return register


def _pre(x: Flow, site: Site, inside: float = 1.0, outside: float = 1.0) -> Flow:
    for sublayer in (site.attention, site.ffn):
        x = site.add(x, scaled(sublayer(scaled(site.norm(x), inside)), outside))
    return x


@adds(final_norm=False)
def post(x: Flow, site: Site) -> Flow:
    """K <- corr(K + F(K))"""
    for sublayer in (site.attention, site.ffn):
        x = site.norm(site.add(x, sublayer(x)))
    return x


@adds(final_norm=True)
def pre(x: Flow, site: Site) -> Flow:
    """K <- K + F(corr K)"""
    return _pre(x, site)


@adds(final_norm=False)
def none(x: Flow, site: Site) -> Flow:
    """K <- K + F(K)"""
    for sublayer in (site.attention, site.ffn):
        x = site.add(x, sublayer(x))
    return x


@adds(final_norm=True)
def sandwich(x: Flow, site: Site) -> Flow:
    """K <- K + corr(F(corr K))"""
    for sublayer in (site.attention, site.ffn):
        x = site.add(x, site.norm(sublayer(site.norm(x))))
    return x


@adds(final_norm=True)
def reordered(x: Flow, site: Site) -> Flow:
    """K <- K + corr(F(K)), queries and keys of unit rms"""
    x = site.add(x, site.norm(site.attention(x, "qk")))
    return site.add(x, site.norm(site.ffn(x)))


@adds(final_norm=True)
def reordered_no_qk(x: Flow, site: Site) -> Flow:
    """K <- K + corr(F(K))"""
    for sublayer in (site.attention, site.ffn):
        x = site.add(x, site.norm(sublayer(x)))
    return x


@adds(final_norm=False, gain=lambda role, depth: 1.0 if role in ("wq", "wk") else (8 * depth) ** -0.5)
def deepnorm(x: Flow, site: Site) -> Flow:
    """K <- corr(alpha^2 K + F(K)), alpha = (2L)^(1/4)"""
    for sublayer in (site.attention, site.ffn):
        x = site.norm(site.add(scaled(x, (2 * site.depth) ** 0.25), sublayer(x)))
    return x


@adds(final_norm=False)
def keel(x: Flow, site: Site) -> Flow:
    """K <- corr(alpha^2 K + F(corr K)), alpha = 2L; in the first block K <- K + A(corr K), K <- corr(K + F(corr K))"""
    alpha = 1 if site.block == 1 else 2 * site.depth
    x = site.add(scaled(x, alpha), site.attention(site.norm(x)))
    x = x if site.block == 1 else site.norm(x)
    return site.norm(site.add(scaled(x, alpha), site.ffn(site.norm(x))))


@adds(final_norm=False)
def admin(x: Flow, site: Site) -> Flow:
    """K <- corr(omega_i^2 K + F(K)), omega_(i+1)^2 = omega_i^2 tr K + tr F(K), per entry"""
    for sublayer in (site.attention, site.ffn):
        carried, branch = scaled(x, site.memory.get("omega", 1.0)), sublayer(x)
        site.memory["omega"] = math.hypot(carried.rms, branch.rms)
        x = site.norm(site.add(carried, branch))
    return x


@adds(final_norm=True)
def normformer(x: Flow, site: Site) -> Flow:
    """K <- K + corr(A(corr K)); K <- K + F(corr K), the FFN's hidden units normed"""
    x = site.add(x, site.norm(site.attention(site.norm(x))))
    return site.add(x, site.ffn(site.norm(x), "h"))


@adds(final_norm=True)
def layernorm_scaling(x: Flow, site: Site) -> Flow:
    """K <- K + F(corr K / l)"""
    return _pre(x, site, inside=site.block**-0.5)


@adds(final_norm=True)
def mix_ln(x: Flow, site: Site) -> Flow:
    """post in the first floor(L / 4) blocks, pre in the others"""
    return post(x, site) if site.block <= site.depth // 4 else _pre(x, site)


@adds(final_norm=True)
def hybridnorm(x: Flow, site: Site) -> Flow:
    """K <- corr(K + A(K)), queries, keys and values of each head of unit rms; K <- K + F(K)"""
    x = site.norm(site.add(x, site.attention(x, "qkv", by_head=True)))
    return site.add(x, site.ffn(x))


@adds(final_norm=False)
def b2t(x: Flow, site: Site) -> Flow:
    """y = (x + A(x)) / s; x <- corr(x + y + F(y)): x comes in twice, so its parts add before they are squared"""
    branch = site.attention(x)
    total = site.add(x, branch)
    by = 1 / np.sqrt(total.power)
    y = site.norm(total)
    return site.norm(site.add(added(scaled(x, 1 + by), scaled(branch, by)), site.ffn(y)))


@adds(final_norm=False)
def residual(x: Flow, site: Site) -> Flow:
    """post for x; the second stream gathers what sublayers add: U <- U + F(K)"""
    dual = site.memory.get("dual", x.cov)
    for sublayer in (site.attention, site.ffn):
        branch = sublayer(x)
        dual = dual + branch.cov
        x = site.norm(site.add(x, branch))
    site.memory["dual"] = dual
    return x


@adds(final_norm=False)
def rezero(x: Flow, site: Site) -> Flow:
    """K <- K"""
    for sublayer in (site.attention, site.ffn):
        x = site.add(x, scaled(sublayer(x), 0.0))
    return x


@adds(final_norm=True)
def layerscale(x: Flow, site: Site) -> Flow:
    """K <- K + lambda^2 F(corr K)"""
    return _pre(x, site, outside=0.1 if site.depth <= 18 else 1e-5 if site.depth <= 24 else 1e-6)


@adds(final_norm=True)
def depth_mup(x: Flow, site: Site) -> Flow:
    """K <- K + F(corr K) / 2L"""
    return _pre(x, site, outside=(2 * site.depth) ** -0.5)


@adds(final_norm=True)
def completep(x: Flow, site: Site) -> Flow:
    """K <- K + F(corr K) / (2L)^2"""
    return _pre(x, site, outside=1 / (2 * site.depth))
