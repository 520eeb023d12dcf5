"""python -m jobs.benchmark [--json FILE]: how near measuring comes to what this machine can multiply. Run it alone.

All that is compared is run in turn, round by round, and compared within a round: numbers are median, least and most of
the rounds. Nothing here is stored, and no draw, reading or file of a refresh changes.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from jobs import rivals, worker
from jobs.batches import Batch
from jobs.estimate import plain_mb
from jobs.exits import DONE, ends
from jobs.grids import DEEP_DEPTHS, PAGE, PAGE_DEPTHS
from jobs.machine import cores, memory
from jobs.words import whole_number
from lnmeasure.records import Setting

WIDTHS = (64, 128, 256, 512, 1024)
DENSE = range(1, 65)
SAMPLE_OF_DENSE = (4, 16, 48)
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median, least and most over the rounds."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Of one value a round."""
        return cls(median=median(values), min=min(values), max=max(values))

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.min:.4g} to {self.max:.4g})"


Results = dict[str, Spread | None]


class Crew:
    """Processes that wait for work: own ones of one thread each, or one with as many threads as torch takes."""

    def __init__(self, size: int, one_thread: bool = True) -> None:
        prepare = partial(worker.prepare, os.getpid(), None) if one_thread else rivals.prepare
        self.size = size
        self._pool = ProcessPoolExecutor(size, mp_context=get_context("spawn"), initializer=prepare)
        list(self._pool.map(rivals.warm_up, range(4 * size)))

    def seconds(self, work: list[Callable[[], object]]) -> float:
        """How long all the work takes, each piece given to whoever is free."""
        began = time.perf_counter()
        for future in [self._pool.submit(piece) for piece in work]:
            future.result()
        return time.perf_counter() - began

    def answers(self, work: list[Callable[[], object]]) -> list:
        """What the work gives back."""
        return [future.result() for future in [self._pool.submit(piece) for piece in work]]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown()


@contextmanager
def crews() -> Iterator[tuple[Crew, Crew, Crew]]:
    """As many workers as there are cores, one worker, and a plain process with its default threads."""
    plain = Crew(1, one_thread=False)  # before the environment says one thread
    worker.prepare_environment()
    all_of_them = [Crew(cores()), Crew(1), plain]
    try:
        yield tuple(all_of_them)
    finally:
        for crew in all_of_them:
            crew.close()


def main(arguments: list[str] | None = None) -> int:
    """Run the job. Exit codes: 0 done, 2 bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m jobs.benchmark", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=partial(whole_number, "rounds", 1, 100), default=3, help="how often all is run (default 3)")
    add("--json", type=Path, help="file that the numbers are written to as well")
    options = parser.parse_args(arguments)
    return ends(lambda: benchmark(options.rounds, options.json))


def benchmark(rounds: int, target: Path | None) -> int:
    """Measure, print, and write to target where there is one. The exit code."""
    found: Results = {}
    with crews() as (workers, one, plain):
        for part in (speed, dense, scaling):
            found |= _told(part(workers, one, plain, rounds))
    found |= _told(peaks(rounds))
    if target:
        target.write_text(json.dumps({name: value and asdict(value) for name, value in found.items()}, indent=1) + "\n")
    return DONE


def _told(results: Results) -> Results:
    for name, value in results.items():
        print(f"{name:28} {value if value else 'not run: it would not fit in memory'}", flush=True)
    return results


def family(placement: str, init: str, seed: int, depths: Iterator[int] = PAGE_DEPTHS) -> list[Setting]:
    """The settings of the grid page that one seed of a placement and init has."""
    return [Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed) for depth in depths]


def as_measured(settings: list[Setting], whole_only: bool = False) -> list[Batch]:
    """The batches a refresh makes of settings of one family."""
    together = Batch(settings=tuple(sorted(settings, key=lambda s: -s.depth)), whole_only=whole_only)
    return [together] if rivals.may_share(settings[0]) else together.one_by_one()


def speed(workers: Crew, one: Crew, plain: Crew, rounds: int) -> Results:
    """Grid page: share of the matrix-product limit, and against a plain script and torch's own encoder."""
    kinds = {"shared": "xavier_uniform", "by_depth": "xavier_residual"}
    ratios: dict[str, list[float]] = {}

    def keep(name: str, value: float) -> None:
        ratios.setdefault(name, []).append(value)

    for number in range(rounds):
        took: dict[str, tuple[float, float, float]] = {}
        placement = ("post", "pre")[number % 2]
        for kind, init in kinds.items():
            before = sum(workers.answers([rivals.multiply] * workers.size))
            batches = [b for seed in range(workers.size) for b in as_measured(family(placement, init, seed))]
            batches.sort(key=lambda batch: -batch.depth)
            ours = workers.seconds([partial(worker.measure_batch, batch) for batch in batches]) / workers.size
            after = sum(workers.answers([rivals.multiply] * workers.size))
            flops = sum(workers.answers([partial(rivals.flops_of, b) for b in as_measured(family(placement, init, 0))]))
            keep("gemm_gflops", (before + after) / 2 / 1e9)
            keep(f"gemm_share_{kind}", flops / ours / ((before + after) / 2))
            cells = family(placement, init, 0)
            theirs = plain.seconds([partial(rivals.plain_cell, cell) for cell in cells])
            encoder = plain.seconds([partial(rivals.encoder_cell, cell) for cell in cells])
            took[kind] = (ours, theirs, encoder)
            keep(f"page_vs_plain_{kind}", theirs / ours)
        # the page has two inits that depend on depth and one that does not
        ours, theirs, encoder = (took["shared"][n] + 2 * took["by_depth"][n] for n in range(3))
        keep("page_vs_plain", theirs / ours)
        keep("page_vs_torch_encoder", encoder / ours)
        alone = one.seconds(
            [partial(worker.measure_batch, b) for b in as_measured(family(placement, "xavier_uniform", 0))]
        )
        keep("workers_2_vs_1", alone / took["shared"][0])
    every = {name: Spread.of(values) for name, values in ratios.items()}
    both = [x for name in ("gemm_share_shared", "gemm_share_by_depth") for x in ratios[name]]
    return every | {"gemm_share": Spread.of(both)}


def dense(workers: Crew, one: Crew, plain: Crew, rounds: int) -> Results:
    """The curve at every depth to 64, against the plain script with a model per depth, estimated from some depths."""
    ratios = []
    for number in range(rounds):
        placement = ("post", "pre")[number % 2]
        cells = [family(placement, "xavier_uniform", seed, DENSE) for seed in range(workers.size)]
        batches = [batch for settings in cells for batch in as_measured(settings, whole_only=True)]
        ours = workers.seconds([partial(worker.measure_batch, batch) for batch in batches]) / workers.size
        sample = family(placement, "xavier_uniform", 0, SAMPLE_OF_DENSE)
        theirs = plain.seconds([partial(rivals.plain_cell, cell) for cell in sample])
        ratios.append(theirs * sum(DENSE) / sum(SAMPLE_OF_DENSE) / ours)
    return {"dense_vs_per_depth": Spread.of(ratios)}


def scaling(workers: Crew, one: Crew, plain: Crew, rounds: int) -> Results:
    """Milliseconds a block takes one worker, forward, backward and readings, by depth and by width."""
    cells = {f"block_ms_depth_{depth}": family("pre", "xavier_uniform", 0, [depth])[0] for depth in (1, 8, 64)}
    for width in WIDTHS:
        setup = replace(PAGE, name=f"width_{width}", width=width)
        setting = Setting(setup=setup, placement="pre", init="xavier_uniform", depth=4, seed=0)
        cells[f"block_ms_width_{width}"] = setting
    return {
        name: Spread.of([1e3 * one.seconds([partial(worker.measure_cell, s)]) / s.depth for _ in range(rounds)])
        for name, s in cells.items()
    }


def peaks(rounds: int) -> Results:
    """Most memory of a process that measures one cell, in MiB, torch included; None where it would not fit."""
    found: Results = {}
    for depth, streaming in [(d, s) for d in (64, DEEP_DEPTHS[1], DEEP_DEPTHS[-1]) for s in (False, True)]:
        name = f"peak_mib_{depth}_{'streaming' if streaming else 'plain'}"
        setting = family("pre", "xavier_uniform", 0, [depth])[0]
        found[name] = None
        if streaming or plain_mb(PAGE, depth) < 0.9 * memory() / 1e6:
            batch = Batch(settings=(setting,), streaming=streaming)
            found[name] = Spread.of([_peak_mib(batch) for _ in range(1 if depth > 64 else rounds)])
    return found


def _peak_mib(batch: Batch) -> float:
    crew = Crew(1)
    try:
        ((measured,),) = crew.answers([partial(worker.measure_batch, batch)])
    finally:
        crew.close()
    return measured.peak_mb * 1e6 / MIB


if __name__ == "__main__":
    sys.exit(main())
