"""Grids: which settings the shipped store is made of. A grid is a function that returns Settings."""

from collections.abc import Callable
from itertools import product

from lnmeasure.records import Setting, Setup

PAGE = Setup(name="page")
"""The constants of the page 'how big is the gradient?', with embeddings N(0, 1), as the theory assumes."""

PAGE_DEPTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SEEDS = range(10)


def page() -> list[Setting]:
    """What Home shows: post and pre, three inits, eleven depths, ten seeds."""
    inits = ("xavier_uniform", "xavier_residual", "gpt2")
    return [
        Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(("post", "pre"), inits, PAGE_DEPTHS, SEEDS)
    ]


GRIDS: dict[str, Callable[[], list[Setting]]] = {"page": page}
"""Every grid the shipped store is made of, by name."""


def settings_of(names: list[str]) -> list[Setting]:
    """The settings of some grids (of all, where names is empty), each once. ValueError for an unknown name."""
    for name in names:
        if name not in GRIDS:
            raise ValueError(f"grid is {name!r}: no such grid. Choose one of {', '.join(GRIDS)}.")
    unique = {setting.key: setting for name in names or GRIDS for setting in GRIDS[name]()}
    return list(unique.values())
