"""python -m jobs.refresh: measure what the store lacks, in parallel, and publish it."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from jobs import worker
from jobs.grids import GRIDS, settings_of
from lnmeasure.records import MEASUREMENT_VERSION, Setting
from lnmeasure.store.building import Building, Measured, locked
from lnmeasure.store.errors import StoreError, StoreMissing
from lnmeasure.store.reader import Store, store_path

DONE, SOME_FAILED, BAD_ARGUMENTS, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


def main(arguments: list[str] | None = None) -> int:
    """Run the job. Exit codes: 0 done, 1 cells failed, 2 bad arguments, 75 busy, 76 damaged, 130/143 interrupted."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        return refresh(store_path(), settings_of(options.grid), options.workers, options.dry_run)
    except ValueError as error:
        return _say(error, BAD_ARGUMENTS)
    except StoreError as error:
        return _say(error, error.exit_code)
    except BrokenExecutor:
        return _say(
            "A worker process was killed, perhaps for memory (try fewer --workers). Finished cells are kept; the same "
            "command continues from them.",
            SOME_FAILED,
        )
    except KeyboardInterrupt:
        return _say("Interrupted. Finished cells are kept; the same command continues from them.", INTERRUPTED)


def refresh(path: Path, planned: list[Setting], workers: int, dry_run: bool = False) -> int:
    """Bring the store at path to hold every planned setting. The exit code."""
    missing = missing_from(path, planned)
    print(f"{path.name}: {len(planned)} cells planned, {len(planned) - len(missing)} there, {len(missing)} to measure.")
    if dry_run or not missing:
        return DONE
    _require_measuring(missing)
    with locked(path):
        building = Building(path)
        if building.set_aside:
            print(f"{building.set_aside.name}: kept, not used; it was begun from another generation of the store.")
        try:
            return _measure_and_publish(building, planned, workers)
        finally:
            building.close()


def missing_from(path: Path, planned: list[Setting]) -> list[Setting]:
    """The planned settings the published store at path does not hold; all of them where there is no store."""
    try:
        held = Store(path).measured_keys(MEASUREMENT_VERSION)
    except StoreMissing:
        held = set()
    return [setting for setting in planned if setting.key not in held]


def _measure_and_publish(building: Building, planned: list[Setting], workers: int) -> int:
    from jobs.progress import Progress  # what only measuring needs is imported where measuring begins
    from jobs.provenance import commit, package_version, provenance

    held = building.measured_keys()
    todo = sorted((s for s in planned if s.key not in held), key=lambda s: s.depth, reverse=True)
    if len(planned) - len(todo) and todo:
        print(f"{len(planned) - len(todo)} cells are there or kept from an interrupted refresh; {len(todo)} remain.")
    building.begin(provenance(workers), planned=len(planned), reused=len(planned) - len(todo))
    _register(building)
    began, failures = time.monotonic(), []
    with Progress(total=sum(s.depth for s in todo)) as progress:
        for setting, outcome in measure_all(todo, workers):
            if isinstance(outcome, Measured):
                building.add(outcome)
            else:
                failures.append(setting)
                progress.say(f"failed: {describe(setting)}: {type(outcome).__name__}: {outcome}")
            progress.advance(setting.depth)
    wall_s = time.monotonic() - began
    building.finish(measured=len(todo) - len(failures), failed=len(failures), wall_s=wall_s)
    generation = building.publish(package_version(), commit())
    print(f"Published generation {generation}: {len(todo) - len(failures)} cells measured in {wall_s:.0f} s.")
    return _say(f"{len(failures)} cells failed.", SOME_FAILED) if failures else DONE


def measure_all(todo: list[Setting], workers: int) -> Iterator[tuple[Setting, Measured | Exception]]:
    """Each setting with its measured cell, or with the exception it raised, in the order they finish."""
    worker.prepare_environment()
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=worker.prepare, initargs=(os.getpid(),)
    )
    try:
        yield from _drain(pool, todo, window=2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _drain(pool: Executor, todo: list[Setting], window: int) -> Iterator[tuple[Setting, Measured | Exception]]:
    waiting = iter(todo)
    running: dict[Future, Setting] = {}
    while True:
        for setting in waiting:
            running[pool.submit(worker.measure_cell, setting)] = setting
            if len(running) >= window:
                break
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.exception() or future.result()


def describe(setting: Setting) -> str:
    """A setting in one line."""
    return f"{setting.setup.name}, {setting.placement}, {setting.init}, depth {setting.depth}, seed {setting.seed}"


def _require_measuring(missing: list[Setting]) -> None:
    try:
        from lnmeasure.core.measure import check_names
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{len(missing)} cells are to be measured and {error.name} is not installed. Run 'make refresh', which "
            "installs what measuring needs, or: pip install -c constraints.txt -e '.[jobs]'"
        ) from error
    for setting in missing:
        check_names(setting)


def _register(building: Building) -> None:
    from lnmeasure.core.initialise import INITS
    from lnmeasure.core.placements import PLACEMENTS

    for registry in (PLACEMENTS, INITS):
        entries = [registry[name] for name in registry]
        building.register(registry.kind, [(e.name, e.equation, e.source, e.unconfirmed) for e in entries])


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jobs.refresh", description=__doc__)
    parser.add_argument(
        "--grid",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"grids to bring up to date (default all): {', '.join(GRIDS)}",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be measured, and stop")
    parser.add_argument(
        "--workers",
        type=_count,
        default=len(os.sched_getaffinity(0)),
        help="worker processes of one thread each (default: the cores this process may use)",
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"workers is {text!r}: it must be a whole number of at least 1")
    return int(text)


def _say(message: object, exit_code: int) -> int:
    print(message, file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
