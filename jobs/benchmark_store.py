"""python -m jobs.benchmark_store: how fast a large store of invented readings answers.

Promised at 10 million by_block rows: each contract view, filtered to one setup, placement and init, answers in under
100 ms, and each question of the page in under 50 ms. Times are medians, warm, through the page's own reader; of two
setups the slower one counts. Exit code 1 where a limit is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import median

from jobs.exits import DONE, SOME_FAILED, ends
from jobs.words import whole_number
from lnmeasure.store.building import Building
from lnmeasure.store.comments import VIEWS
from lnmeasure.store.reader import Store, sql
from lnmeasure.store.synthetic import fill

VIEW_MS, QUESTION_MS = 100, 50
REPETITIONS = 15
SETUPS = ("page", "xiong_fig3_rho_050", "paths")
"""The first lies at the start of the file; the name of the second begins like those of others; the third has paths."""
COMPARED = ["pre", "post", "sandwich", "deepnorm", "normformer", "completep"]
ONE = {"placement": "pre", "init": "xavier_uniform", "depth": 64, "compared": COMPARED}
ASKED_BY_JOBS = ("coverage_by_grid", "failures", "timings")
"""Questions about the whole store, which no visitor waits for: timed, without a limit."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long one view or question takes: median in ms, its limit, and how many rows came."""

    kind: str
    name: str
    median_ms: float
    limit_ms: int | None
    rows: int

    @property
    def missed(self) -> bool:
        """Whether it takes as long as its limit, or longer."""
        return self.limit_ms is not None and self.median_ms >= self.limit_ms

    def __str__(self) -> str:
        limit = "none" if self.limit_ms is None else f"{self.limit_ms} ms"
        verdict = "  MISSED" if self.missed else ""
        return f"{self.kind:8} {self.name:18} {self.median_ms:7.1f} ms  limit {limit:>6}  {self.rows:6} rows{verdict}"


def main(arguments: list[str] | None = None) -> int:
    """Run the job. Exit codes: 0 every limit is kept, 1 one is missed, 2 bad arguments, 74 disk full."""
    parser = argparse.ArgumentParser(prog="python -m jobs.benchmark_store", description=__doc__)
    rows = partial(whole_number, "rows", 1, 10**9)
    parser.add_argument("--rows", type=rows, default=10_000_000, help="by_block rows, at least (10 million)")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    options = parser.parse_args(arguments)
    return ends(lambda: benchmark(options.rows, options.folder))


def benchmark(rows: int, folder: Path | None) -> int:
    """Fill, publish and ask a store in a temporary folder, and print what it took. The exit code."""
    with tempfile.TemporaryDirectory(prefix="lnmeasure-benchmark-", dir=folder) as place:
        path = Path(place) / "lnmeasure.duckdb"
        print(f"filled in {timed(fill, path, rows):.1f} s")
        print(f"published in {publication(path):.1f} s, {path.stat().st_size / 1e6:.1f} MB")
        return _ask_everything(path)


def publication(path: Path) -> float:
    """Seconds it takes to publish what the building file of the store at path holds."""
    return timed(Building(path).publish, "invented", None)


def _ask_everything(path: Path) -> int:
    begin = time.perf_counter()
    store = Store(path)
    (rows,) = store.query("SELECT count(*) AS n FROM by_block").n
    print(f"opened in {time.perf_counter() - begin:.1f} s, {rows} by_block rows", flush=True)
    missed = 0
    for timing in timings(store):
        print(timing, flush=True)
        missed += timing.missed
    print(f"limits missed: {missed}")
    return SOME_FAILED if missed else DONE


def timings(store: Store) -> Iterator[Timing]:
    """Every contract view and every question, each asked for each of SETUPS."""
    for view in VIEWS:
        yield _slower(store, "view", view, filtered(store, view), VIEW_MS)
    for name in questions():
        yield _slower(store, "question", name, sql(name), None if name in ASKED_BY_JOBS else QUESTION_MS)


def questions() -> list[str]:
    """Names of all questions."""
    return sorted(path.name.removesuffix(".sql") for path in files("lnmeasure.store").joinpath("queries").iterdir())


def filtered(store: Store, view: str) -> str:
    """The SELECT of one setup, placement and init of a view, as far as it has these columns."""
    keys = [name for name in ("setup", "placement", "init") if name in store.comments(view)]
    return f"SELECT * FROM {view} WHERE {' AND '.join(['true', *(f'{key} = ${key}' for key in keys)])}"


def _slower(store: Store, kind: str, name: str, statement: str, limit_ms: int | None) -> Timing:
    slower, rows = 0.0, 0
    for setup in SETUPS:
        named = {key: value for key, value in ({"setup": setup} | ONE).items() if f"${key}" in statement}
        rows = max(rows, len(store.query(statement, named)))
        slower = max(slower, median(timed(store.query, statement, named) for _ in range(REPETITIONS)))
    return Timing(kind=kind, name=name, median_ms=1000 * slower, limit_ms=limit_ms, rows=rows)


def timed(action, *arguments: object) -> float:  # noqa: ANN001
    """How long a call takes."""
    begin = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
