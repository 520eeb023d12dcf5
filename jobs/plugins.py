"""Placements, inits and grids that another package brings: a module that registers them when it is imported."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from jobs import grids

GROUP = "lnmeasure.plugins"
"""Entry points of this group, whose values are modules, are loaded wherever their package is installed."""


def load(modules: Sequence[str] = ()) -> None:
    """Import the modules, and those that installed packages offer; what they register joins the grids. Once each.

    A module may hold grids of its own in a dict GRIDS, as jobs.grids does. ValueError where one cannot be found.
    """
    _load((*modules, *(entry.value for entry in entry_points(group=GROUP))))


@cache
def _load(modules: tuple[str, ...]) -> None:
    for module in map(_imported, modules):
        grids.GRIDS.update(getattr(module, "GRIDS", {}))
    if modules:
        _join_grids()


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.split(".", maxsplit=1)[0] and error.name != name:
            raise
        raise ValueError(
            f"plugin is {name!r}: there is no such module. Give its name as in 'import {name}', and run where it lies "
            "or is installed."
        ) from error


def _join_grids() -> None:
    from lnmeasure.core.initialise import INITS
    from lnmeasure.core.placements import PLACEMENTS

    for names, registry in ((grids.PLACEMENTS, PLACEMENTS), (grids.INITS, INITS)):
        names += [name for name in registry if name not in names]
