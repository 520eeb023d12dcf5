"""Kill a refresh again and again, and hold what is left against what must never be lost."""

import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

import duckdb

from lnmeasure.records import Setting
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store
from tests.journal import length, noted
from tests.nursery import Nursery, wait_until

ORPHANS_S = 5
MOMENTS = ("any", "any", "measuring", "measuring", "publishing", "replacing")
"""What a kill waits for, before some jitter; the last two take longest to come."""
Process = tuple[int, int]
"""pid and start time, which no later process shares."""
_KEYS = "SELECT key FROM cell"


@dataclass(frozen=True, kw_only=True)
class Victim:
    """A refresh to be killed: what runs, what finishes in the end, the grid of each size, by how much it grows when all
    of it is committed, workers beside the driver, and seconds a moment lies at most after what it waits for.
    """

    driver: Callable[[Path, Path, int], int | None]
    last: Callable[[Path, Path, int], int]
    grid: Callable[[int], list[Setting]]
    growth: int
    workers: int
    jitter_s: dict[str, float]


@dataclass(kw_only=True)
class Campaign:
    """Kills of one victim on one store. Every check below holds after every kill."""

    victim: Victim
    nursery: Nursery
    folder: Path
    random: Random
    size: int = 0
    committed: set[str] = field(default_factory=set)
    generation: int = 0
    read: int = 0
    draft_before: tuple[int, ...] | None = None
    figures: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.store = self.folder / "killed" / "s.duckdb"
        self.store.parent.mkdir()
        self.journal = self.folder / "journal"
        self.size = self.victim.growth

    def kill(self, times: int) -> None:
        """Kill driver or worker so many times, the same command being run again in between."""
        began = time.monotonic()
        while self.figures["kills, of the driver"] + self.figures["kills, of a worker"] < times:
            driver_killed, worker_kills, family = self._run_once()
            self._check(driver_killed, worker_kills, family)
            self._grow()
        self.figures["seconds"] += round(time.monotonic() - began)

    def finish(self) -> Path:
        """A rerun left alone finishes the grid. The store."""
        code = self.nursery.run(self.victim.last, self.store, self.journal, self.size)
        assert code == 0, self.nursery.said()
        self._check(driver_killed=False, worker_kills=0, family=set())
        assert self.committed == {setting.key for setting in self.victim.grid(self.size)}
        self.figures["cells"] = len(self.committed)
        return self.store

    def undisturbed(self) -> Path:
        """What a refresh that nobody kills makes of the same grid."""
        store = self.folder / "undisturbed" / "s.duckdb"
        store.parent.mkdir()
        code = self.nursery.run(self.victim.last, store, self.folder / "other_journal", self.size, seconds=600)
        assert code == 0, self.nursery.said()
        return store

    def _run_once(self) -> tuple[bool, int, set[Process]]:
        """One run, to its own end or a kill of the driver: whether that, workers killed, and who ran before.

        One worker a run: a second kill could hit the same cell, which is then given up. That has a test of its own.
        """
        self.draft_before = self._facts("publishing")
        driver = self.nursery.start(self.victim.driver, self.store, self.journal, self.size)
        worker_kills = 0
        while True:
            code, family = self._moment(), descendants(driver)
            workers = [] if worker_kills else workers_among(family)
            if code is None and workers and self.random.random() < 0.5:
                worker_kills += sent(self.random.choice(workers))
                self.figures["kills, of a worker"] += worker_kills
                continue
            if code is None:
                sent(driver)
                code = self.nursery.ended(60)
            assert code in (0, -signal.SIGKILL), f"ended with {code}\n{self.nursery.said()}"
            self.figures["runs that ended" if code == 0 else "kills, of the driver"] += 1
            return code != 0, worker_kills, family

    def _moment(self) -> int | None:
        """Let the run go on to a random moment. Its exit code where it ends before that."""
        kind = self.random.choice(MOMENTS)
        before, recorded = length(self.journal) + self.random.randrange(1, 120), self._facts("record")
        reached = {
            "any": lambda: True,
            "measuring": lambda: length(self.journal) >= before,
            "publishing": self._publishing,
            "replacing": lambda: self._facts("record") != recorded,
        }[kind]
        ended: list[int] = []

        def reached_or_ended() -> bool:
            code = self.nursery.ended(0.001)
            ended.extend([] if code is None else [code])
            return bool(ended) or reached()

        wait_until(reached_or_ended, f"{kind}\n{self.nursery.said()}", seconds=120)
        return ended[0] if ended else self.nursery.ended(self.random.uniform(0, self.victim.jitter_s[kind]))

    def _check(self, driver_killed: bool, worker_kills: int, family: set[Process]) -> None:
        """What must hold once nobody runs."""
        wait_until(lambda: not any(map(alive, family)), "every process of the refresh is gone", ORPHANS_S)
        begun, ended = noted(self.journal, self.read)
        self.read = length(self.journal)
        generation, published = look(self.store)
        built_on, built = read_copy(beside(self.store, "building"))
        if driver_killed:
            where = self._where(set(begun), ended, published | built, replaced=built_on not in (None, generation))
            self.figures[f"driver killed {where}"] += 1
        self._check_cells(begun, published | built, self.victim.workers + 1, worker_kills)
        assert generation >= self.generation, f"generation {generation} after generation {self.generation}"
        self.committed, self.generation = published | built, generation

    def _check_cells(self, begun: list[str], there: set[str], most: int, worker_kills: int) -> None:
        twice = set(begun) & self.committed
        assert not twice, f"{len(twice)} committed cells were measured again: {twice}"
        assert self.committed <= there, f"{len(self.committed - there)} committed cells are lost"
        in_flight, repeats = len(set(begun) - there), len(begun) - len(set(begun))
        assert in_flight <= most, f"a kill lost {in_flight} cells, and {most} were in flight at most"
        assert repeats <= most * worker_kills, f"{repeats} cells were begun twice, with {worker_kills} workers killed"
        self.figures["cells begun"] += len(begun)
        self.figures["in flight at a kill and begun again"] += in_flight + repeats

    def _where(self, begun: set[str], ended: set[str], there: set[str], replaced: bool) -> str:
        """What the driver was doing when it was killed, as its files tell."""
        if replaced:
            return "publishing, after the replace"
        if self._publishing():
            return "publishing, before the replace"
        if ended - there:
            return "committing"
        if begun - there:
            return "measuring"
        return "starting, or between cells"

    def _publishing(self) -> bool:
        """Whether there is a draft of a publication that was not there before the run."""
        return self._facts("publishing") not in (None, self.draft_before)

    def _facts(self, ending: str) -> tuple[int, ...] | None:
        """What changes when another file takes a file's place."""
        try:
            facts = beside(self.store, ending).stat()
        except FileNotFoundError:
            return None
        return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns

    def _grow(self) -> None:
        """The grid grows once all of it is committed, sometimes only after it is published."""
        while not self.committed <= {setting.key for setting in self.victim.grid(self.size)}:
            self.size += self.victim.growth
        if self.committed == {setting.key for setting in self.victim.grid(self.size)} and self.random.random() < 0.4:
            self.size += self.victim.growth


def look(store: Path) -> tuple[int, set[str]]:
    """Generation of a published store, opened as readers do, and the keys of its cells; 0 where there is none."""
    return _look(store, tuple(store.stat())) if store.exists() else (0, set())


@lru_cache(maxsize=4)
def _look(store: Path, _facts: tuple[int, ...]) -> tuple[int, set[str]]:
    opened = Store(store)
    keys = opened.query(_KEYS).key
    assert keys.is_unique
    return int(opened.meta["generation"]), set(keys)


def read_copy(file: Path) -> tuple[int | None, set[str]]:
    """Generation and keys in a copy of a file and its log, as they lie there with nobody at work; None without one."""
    if not file.exists():
        return None, set()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        for ending in ("", ".wal"):
            if file.with_name(file.name + ending).exists():
                shutil.copyfile(file.with_name(file.name + ending), copy.with_name(copy.name + ending))
        with duckdb.connect(copy) as connection:
            (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
            keys = [key for (key,) in connection.execute(_KEYS).fetchall()]
    assert len(keys) == len(set(keys)), f"{file.name} holds a cell twice"
    return generation, set(keys)


def sent(pid: int) -> bool:
    """Send SIGKILL to a process. Whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def descendants(pid: int) -> set[Process]:
    """Every process below one."""
    below, found = {pid}, set()
    parents = {child: (parent, start) for child, parent, start in _processes()}
    while below:
        below = {child for child, (parent, _) in parents.items() if parent in below}
        found |= {(child, parents[child][1]) for child in below}
    return found


def workers_among(family: set[Process]) -> list[int]:
    """Those of some processes that a pool has spawned to measure."""
    return sorted(pid for pid, _ in family if "spawn_main" in _read(f"/proc/{pid}/cmdline"))


def alive(process: Process) -> bool:
    """Whether a process runs."""
    fields = _stat(process[0])
    return bool(fields) and fields[0] not in "ZX" and int(fields[19]) == process[1]


def _processes() -> list[tuple[int, int, int]]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    stats = [(pid, _stat(pid)) for pid in pids]
    return [(pid, int(fields[1]), int(fields[19])) for pid, fields in stats if fields]


def _stat(pid: int) -> list[str]:
    """proc(5), stat, from the state on; empty where the process is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
