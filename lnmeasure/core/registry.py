"""How placements and inits are kept: by the name of their function, with the equation from its docstring."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


class DepthAsked(Exception):
    """A placement or init asked how deep the stack is, where stacks of any depth are measured at once."""


def known(depth: int | None) -> int:
    """The depth itself. DepthAsked where it is None, which stands for any."""
    if depth is None:
        raise DepthAsked("the depth of the stack was asked for while stacks of many depths are measured at once")
    return depth


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A registered function, the equation that is its first docstring line, and where it comes from."""

    function: Callable
    source: str
    unconfirmed: str | None = None

    @property
    def name(self) -> str:
        """The function's name: the entry's name in code, store and page."""
        return self.function.__name__

    @property
    def equation(self) -> str:
        """First docstring line of the function. ValueError where there is none."""
        text = (self.function.__doc__ or "").strip()
        if not text:
            raise ValueError(f"{self.name} has no docstring: its first line must be the equation it implements.")
        return text.splitlines()[0]


class Registry:
    """Entries of one kind by name. An unknown name, or one given twice, is a ValueError that says what to do."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Register an entry whose function has an equation to show."""
        if entry.name in self._entries:
            raise ValueError(f"{self.kind} {entry.name!r} is registered already: give the new one another name.")
        assert entry.equation
        self._entries[entry.name] = entry

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            raise ValueError(
                f"{self.kind} is {name!r}: no such {self.kind} is registered. Choose one of {', '.join(self)}."
            )
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
