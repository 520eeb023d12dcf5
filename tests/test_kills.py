"""SIGKILL at any moment: what is committed stays, is there once and is never measured again, and nobody is left."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pandas as pd
import pytest

from jobs.refresh import Options, refresh
from lnmeasure.records import Setting
from lnmeasure.store.building import Building
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store
from tests import crashing
from tests.cells import WORK, grid
from tests.drivers import WORKERS, measured_grid, refresh_invented, refresh_small
from tests.killing import ORPHANS_S, Campaign, Victim
from tests.nursery import Nursery
from tests.small import plan
from tests.writer import PORTION, add_lacking, fill, fill_on_and_on

WRITER = Victim(
    driver=fill_on_and_on,
    last=fill,
    grid=grid,
    growth=PORTION,
    workers=0,
    jitter_s={"any": 0.4, "measuring": 0.02, "publishing": 0.3, "replacing": 0.03},
)
POOL = Victim(
    driver=refresh_invented,
    last=refresh_invented,
    grid=grid,
    growth=9,
    workers=WORKERS,
    jitter_s={"any": 1.0, "measuring": 0.1, "publishing": 0.3, "replacing": 0.03},
)
REAL = replace(POOL, driver=refresh_small, last=refresh_small, grid=measured_grid, growth=1)
PROVENANCE = ["measured_at", "wall_s", "refresh", "peak_mb"]


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory) -> Iterator[list[Nursery]]:
    """Two, for two cores. The second is never asked for torch."""
    both = [Nursery(tmp_path_factory.mktemp("nursery") / "log") for _ in range(2)]
    yield both
    for nursery in both:
        nursery.close()


def test_a_writer_killed_at_random_moments_loses_nothing_and_a_rerun_makes_the_undisturbed_store(nurseries, tmp_path):
    kill_writers(200, nurseries, tmp_path)


def kill_writers(times: int, nurseries: list[Nursery], folder: Path) -> Counter:
    """Two writers on two stores at once, each killed half the times. The figures of both together."""
    with ThreadPoolExecutor(len(nurseries)) as pool:
        kills = [
            pool.submit(kill_and_compare, WRITER, times // len(nurseries), nursery, folder / str(number))
            for number, nursery in enumerate(nurseries)
        ]
    return sum((kill.result() for kill in kills), Counter())


def kill_and_compare(victim: Victim, times: int, nursery: Nursery, folder: Path) -> Counter:
    """Kill a refresh so many times, let it finish, and compare what is there with an undisturbed run. The figures."""
    folder.mkdir(exist_ok=True)
    campaign = Campaign(victim=victim, nursery=nursery, folder=folder, random=Random(f"{folder.name} {times}"))
    campaign.kill(times)
    assert any("publishing" in what for what in campaign.figures), f"no kill hit a publication: {campaign.figures}"
    killed, undisturbed = Store(campaign.finish()), Store(campaign.undisturbed())
    for view in ("by_cell", "by_block"):
        pd.testing.assert_frame_equal(readings(killed, view), readings(undisturbed, view), check_exact=True)
    left = {path.name.removeprefix("s.duckdb") for path in campaign.store.parent.iterdir()}
    assert left <= {"", ".record", ".lock", "last_refresh.json"}, left
    return campaign.figures


def report(name: str, figures: Counter) -> None:
    """Say what a long run did. What its checks let pass is known."""
    said = ", ".join(f"{number} {what}" for what, number in sorted(figures.items()))
    print(f"\n{name}: {said}; 0 cells lost, 0 committed cells begun again, 0 processes left after {ORPHANS_S} s")


def readings(store: Store, view: str) -> pd.DataFrame:
    """What a view says of every cell, but for how and when it was measured."""
    return store.query(f"SELECT * FROM {view} ORDER BY ALL").drop(columns=PROVENANCE, errors="ignore")


@dataclass(frozen=True, kw_only=True)
class Crash:
    """A phase of a refresh to crash in, and what an earlier one left. kept and aside: see hold_what_is_left."""

    phase: str = "opening"
    left: Callable[[Path], None]
    kept: bool = True
    aside: bool = False


CRASHES = {
    "publishing": Crash(phase="publishing", left=crashing.leave_a_building_file),
    "opening after nothing": Crash(left=crashing.leave_nothing, kept=False),
    "opening a building file": Crash(left=crashing.leave_a_building_file),
    "opening one of another publication": Crash(left=crashing.leave_one_of_another_publication, kept=False, aside=True),
    "opening one of an older schema": Crash(left=crashing.leave_one_of_an_older_schema),
}


class Crashes:
    """Copies of a store as it is before a publication, each with a crash at another line of it."""

    def __init__(self, nurseries: list[Nursery], folder: Path, crash: Crash) -> None:
        self.nurseries, self.folder, self.crash = nurseries, folder, crash
        (folder / "before").mkdir()
        for function in (crashing.publish_first, crash.left):
            run(nurseries[0], function, folder / "before" / "s.duckdb")
        run(nurseries[0], crashing.note_lines, crash.phase, self.copy("noted"), folder / "report")
        self.lines = json.loads((folder / "report").read_text(encoding="utf-8"))

    def at(self, lines: Sequence[int]) -> None:
        """Crash at each of some lines, and look at what is left."""
        share = len(self.nurseries)
        with ThreadPoolExecutor(share) as pool:
            list(pool.map(self._at, self.nurseries, [lines[first::share] for first in range(share)]))

    def copy(self, name: str) -> Path:
        """A store of its own, as it is before."""
        shutil.copytree(self.folder / "before", self.folder / name)
        return self.folder / name / "s.duckdb"

    def _at(self, nursery: Nursery, lines: Sequence[int]) -> None:
        for line in lines:
            path = self.copy(f"line_{line}")
            expected = crashing.CRASHED if line <= self.lines["lines"] else 0
            run(nursery, crashing.crash_at, line, self.crash.phase, path, expected=expected)
            run(nursery, crashing.hold_what_is_left, path, self.crash.kept, self.crash.aside)
            shutil.rmtree(path.parent)


def run(nursery: Nursery, function: Callable[..., int | None], *arguments: object, expected: int = 0) -> None:
    """Run a function in a process of its own, and expect how it ends."""
    code = nursery.run(function, *arguments)
    assert code == expected, f"{function.__name__}{arguments} ended with {code}: {nursery.said()}"


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_at_every_line_that_changes_a_file_leaves_one_generation_whole_and_a_rerun_finishes(
    name, nurseries, tmp_path
):
    crashes = Crashes(nurseries, tmp_path, CRASHES[name])
    crashes.at(crashes.lines["changed"])


def test_a_refresh_killed_at_random_moments_loses_nothing_and_a_rerun_makes_the_undisturbed_store(nurseries, tmp_path):
    kill_and_compare(REAL, 20, nurseries[0], tmp_path)


def test_what_is_committed_goes_to_a_log_and_the_building_file_itself_is_never_rewritten(store_at):
    """A kill in the middle of rewriting a block that is in use would leave a file that nobody can read."""
    fill(store_at, store_at.with_name("journal"), 3)
    left = begun_and_left(store_at, grid(200))
    made = left.read_bytes()
    assert made == store_at.read_bytes()
    for size in (201, 400):
        assert begun_and_left(store_at, grid(size)).read_bytes() == made
    building = Building(store_at)
    assert len(building.measured_keys()) == 400
    building.close()


def test_a_building_file_that_was_published_is_gone_after_a_refresh_with_nothing_to_do(store_at):
    """Its refresh was killed between the replace and removing it; one that holds more is left alone."""
    left = begun_and_left(store_at, grid(3))
    kept = {file: file.read_bytes() for file in (left, beside(left, "wal"))}
    fill(store_at, store_at.with_name("journal"), 3)
    before = store_at.read_bytes()
    for file, data in kept.items():
        file.write_bytes(data)
    assert refresh(store_at, plan(grid(3)), Options(work=WORK)) == 0
    assert not left.exists()
    begun_and_left(store_at, grid(4))
    assert refresh(store_at, plan(grid(3)), Options(work=WORK)) == 0
    assert left.exists()
    assert store_at.read_bytes() == before


def begun_and_left(store: Path, cells: list[Setting]) -> Path:
    """The building file of a refresh that was cut off with some cells committed."""
    building = Building(store)
    add_lacking(building, cells, store.with_name("journal"))
    building.close()
    return building.path


@pytest.mark.soak
def test_a_crash_at_every_line_of_publication_leaves_one_generation_whole_and_a_rerun_finishes(nurseries, tmp_path):
    crashes = Crashes(nurseries, tmp_path, CRASHES["publishing"])
    crashes.at(range(1, crashes.lines["lines"] + 2))
    print(f"\n{crashes.lines['lines']} lines, {len(crashes.lines['changed'])} of which change a file")


@pytest.mark.soak
def test_a_writer_killed_1900_times_makes_the_undisturbed_store(nurseries, tmp_path):
    report("the writer", kill_writers(1900, nurseries, tmp_path))


@pytest.mark.soak
@pytest.mark.parametrize(("victim", "times"), [(POOL, 100), (REAL, 200)], ids=["100 with invented cells", "200"])
def test_a_refresh_killed_by_the_hundred_makes_the_undisturbed_store(victim, times, nurseries, tmp_path):
    report(victim.driver.__name__, kill_and_compare(victim, times, nurseries[0], tmp_path))
