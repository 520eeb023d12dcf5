"""python -m jobs.status: which store this is, how fresh it is, and what its grids lack."""

import argparse
import sys
from pathlib import Path

from jobs import plugins
from jobs.exits import DONE, SOME_FAILED, ends
from jobs.grids import GRIDS, plan_of
from jobs.refresh import Held, look, to_measure
from jobs.words import duration
from lnmeasure.store.clock import now
from lnmeasure.store.errors import StoreMissing
from lnmeasure.store.files import beside
from lnmeasure.store.freshness import last_refresh, level
from lnmeasure.store.reader import Store, store_path, stray_log

COMPLETE, INCOMPLETE = DONE, SOME_FAILED


def main(arguments: list[str] | None = None) -> int:
    """Print the status. Exit codes: 0; with --check 1 where a refresh would measure something; 76 store damaged."""
    parser = argparse.ArgumentParser(prog="python -m jobs.status", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 where a refresh would measure something")
    plugin = "module that registers placements or inits of its own, which then belong to the grids too"
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help=plugin)
    options = parser.parse_args(arguments)
    return ends(lambda: INCOMPLETE if _report(options) and options.check else COMPLETE)


def _report(options: argparse.Namespace) -> int:
    plugins.load(options.plugin)
    return report(store_path())


def report(path: Path) -> int:
    """Print what is known of the store at path. How many cells a refresh of all grids would measure."""
    _say_generation(path)
    _say_freshness(path)
    held = look(path)
    lacking = sum(_say_grid(name, held) for name in GRIDS)
    _say_failures(path)
    return lacking


def _say_generation(path: Path) -> None:
    try:
        store = Store(path)
    except StoreMissing:
        print(f"{path.name}: not there yet")
        return
    meta = store.meta
    print(f"{path.name}: generation {meta['generation']}, published {meta['published_at']:%Y-%m-%d %H:%M} UTC")
    if store.older:
        print("It has an older schema: a refresh brings it to this one, and measures nothing again for that.")
    if advice := stray_log(path):
        print(advice)


def _say_freshness(path: Path) -> None:
    if beside(path, "building").exists():
        print("A building file is there: a refresh runs, or one was cut off and the next goes on from it.")
    last = last_refresh(path)
    if last is None:
        print("last refresh: none on record")
        return
    print(
        f"last refresh: ended {last.finished:%Y-%m-%d %H:%M} UTC with exit code {last.exit_code}, {last.failed} failed"
    )
    if last.last_success:
        print(f"last success: {last.last_success:%Y-%m-%d %H:%M} UTC, {_age(last.last_success)}")
    if last.every_s:
        print(f"schedule: every {duration(last.every_s)}, {level(last, now())}")


def _age(then) -> str:  # noqa: ANN001
    age = (now() - then).total_seconds()
    return f"{duration(age)} ago" if age >= 0 else "in the future: some clock is wrong"


def _say_grid(name: str, held: Held) -> int:
    plan = plan_of([name])
    settings = plan.settings()
    has = held.has(plan)
    measured, todo = sum(s.key in has for s in settings), len(to_measure(plan, held, retry_failed=False))
    skipped = sum(reason is not None for _, _, reason, _ in plan.rows())
    failed = sum(s.key in held.attempts for s in settings)
    print(f"grid {name}: {measured} of {len(settings)} cells, {todo} to measure, {failed} failed, {skipped} skipped")
    return todo


def _say_failures(path: Path) -> None:
    try:
        failures = Store(path).ask("failures")
    except StoreMissing:
        return
    for row in failures.itertuples():
        print(f"failed: {row.failed} x {row.setup}, {row.placement}, {row.init}, depth {row.depth}: {row.reason}")


if __name__ == "__main__":
    sys.exit(main())
