"""Batches: which cells one worker measures in one go, and in which manner."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lnmeasure.records import Setting


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Settings measured in one go, which differ in depth or seed only, and how: see core.measure.Manner.

    plugins are the modules that register what settings name, see jobs.plugins.
    """

    settings: tuple[Setting, ...]
    whole_only: bool = False
    streaming: bool = False
    device: str = "cpu"
    plugins: tuple[str, ...] = ()

    @property
    def depth(self) -> int:
        """The deepest of its settings, which decides the memory it takes."""
        return max(setting.depth for setting in self.settings)

    @property
    def seeds(self) -> int:
        """How many seeds are run side by side."""
        return len({setting.seed for setting in self.settings})

    def one_by_one(self) -> list["Batch"]:
        """The same settings in the same manner, each by itself."""
        return [replace(self, settings=(setting,)) for setting in self.settings]


def in_batches(
    todo: Iterable[Setting],
    whole_only: set[str],
    may_share: Callable[[Setting], bool],
    needs_streaming: Callable[[Batch], bool],
    device: str = "cpu",
    seeds_at_once: Callable[[Batch], int] = lambda _: 1,
) -> list[Batch]:
    """Settings that share a forward pass together, the others by themselves; in the order of each one's first setting.

    whole_only holds the keys of settings of which the whole-stack readings are enough. seeds_at_once says how many
    seeds of a batch, which is given with one, may be run side by side.
    """
    families: dict[tuple, list[Setting]] = {}
    for setting in todo:
        alone = None if may_share(setting) else setting.depth
        kind = (setting.setup, setting.placement, setting.init, setting.seed, alone, setting.key in whole_only)
        families.setdefault(kind, []).append(setting)
    found = []
    for (*_, partly), members in families.items():
        batch = Batch(settings=tuple(members), whole_only=partly, device=device)
        found.append(replace(batch, streaming=needs_streaming(batch)))
    return _side_by_side(found, seeds_at_once)


def _side_by_side(batches: list[Batch], seeds_at_once: Callable[[Batch], int]) -> list[Batch]:
    """Batches of one seed each, those that differ in nothing else put together, so many at a time."""
    alike: dict[Batch, list[Batch]] = {}
    for batch in batches:
        depths = sorted((replace(s, seed=0) for s in batch.settings), key=lambda setting: setting.depth)
        alike.setdefault(replace(batch, settings=tuple(depths)), []).append(batch)
    found = []
    for batch, ones in alike.items():
        size = max(1, seeds_at_once(batch))
        for some in (ones[start : start + size] for start in range(0, len(ones), size)):
            found.append(replace(batch, settings=tuple(s for one in some for s in one.settings)))
    place = {batch.settings[0]: number for number, batch in enumerate(batches)}
    return sorted(found, key=lambda batch: place[batch.settings[0]])
