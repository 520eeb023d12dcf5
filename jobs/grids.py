"""Grids: which settings the shipped store is made of. A grid is a function that returns Settings, or what it skips."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from lnmeasure.records import Setting, Setup

PAGE = Setup(name="page")
"""The constants of the page 'how big is the gradient?', with embeddings N(0, 1), as the theory assumes."""

PAGE_DEPTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SEEDS = range(10)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A setting that a grid leaves out on purpose, and why."""

    setting: Setting
    reason: str


Grid = Callable[[], list[Setting | Skipped]]


def page() -> list[Setting]:
    """What Home shows: post and pre, three inits, eleven depths, ten seeds."""
    inits = ("xavier_uniform", "xavier_residual", "gpt2")
    return [
        Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(("post", "pre"), inits, PAGE_DEPTHS, SEEDS)
    ]


GRIDS: dict[str, Grid] = {"page": page}
"""Every grid the shipped store is made of, by name."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What some grids ask for: by grid each setting once, with the reason for skipping it or None."""

    grids: dict[str, list[tuple[Setting, str | None]]]

    def settings(self) -> list[Setting]:
        """Every setting to be measured, once, whatever grids ask for it."""
        asked = {s.key: s for cells in self.grids.values() for s, skipped in cells if skipped is None}
        return list(asked.values())

    def rows(self) -> set[tuple[str, str, str | None]]:
        """Grid, key and reason of every cell, as the store keeps them."""
        return {(grid, s.key, skipped) for grid, cells in self.grids.items() for s, skipped in cells}


def plan_of(names: list[str]) -> Plan:
    """The plan of some grids, of all where names is empty. ValueError for an unknown name."""
    for name in names:
        if name not in GRIDS:
            raise ValueError(f"grid is {name!r}: no such grid. Choose one of {', '.join(GRIDS)}.")
    return Plan(grids={name: _cells(GRIDS[name]()) for name in names or GRIDS})


def _cells(entries: list[Setting | Skipped]) -> list[tuple[Setting, str | None]]:
    pairs = [(e.setting, e.reason) if isinstance(e, Skipped) else (e, None) for e in entries]
    return list({setting.key: (setting, reason) for setting, reason in pairs}.values())
