"""python -m jobs.refresh: measure what the store lacks, in parallel, and publish it."""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from jobs import plugins, predictions, verdicts
from jobs.batches import Batch, in_batches
from jobs.engines import ENGINES, LOCAL, Engine, chosen, scheduler
from jobs.estimate import DEVICE_MB, Timings, memory_mb, needs_streaming, seeds_at_once
from jobs.exits import DONE, SOME_FAILED, ends, say
from jobs.grids import GRIDS, Plan, plan_of
from jobs.machine import cores
from jobs.pool import MEASURING, Work
from jobs.stop import Stop
from jobs.words import count, duration, seconds, whole_number
from lnmeasure.records import DTYPES, Setting
from lnmeasure.store.building import Building, Measured
from lnmeasure.store.clock import now
from lnmeasure.store.errors import StoreBusy, StoreMissing
from lnmeasure.store.files import beside
from lnmeasure.store.freshness import LastRefresh, last_refresh, write_last_refresh
from lnmeasure.store.lock import locked
from lnmeasure.store.reader import MOST_ATTEMPTS, Store, store_path
from lnmeasure.store.start import tidy

UNKNOWN_SHARE = 2**32
"""Bytes a worker is taken to have where nobody here knows it: one of a cluster."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a refresh runs. budget_s and every_s (the interval its schedule declares) are seconds, or None.

    workers: at most so many; at_once: how many are there as it begins, which its estimates and its log go by.
    """

    workers: int = 1
    at_once: int = 1
    budget_s: float | None = None
    every_s: float | None = None
    retry_failed: bool = False
    work: Work = MEASURING
    device: str = "cpu"
    engine: Engine = LOCAL
    plugins: tuple[str, ...] = ()
    predicts: bool = False
    judges: bool = False


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a store has: keys measured, attempts of failed cells by key, what grids asked for, and its timings.

    partly holds the keys of cells that have their whole-stack readings only. unpredicted: whether theory has something
    to say that the store lacks. unjudged: whether its verdicts are not those of today's ledger.
    """

    keys: set[str]
    attempts: dict[str, int]
    planned: set[tuple[str, str, str | None, bool]]
    timings: Timings
    older: bool = False
    partly: set[str] = field(default_factory=set)
    unpredicted: bool = False
    unjudged: bool = False

    def has(self, plan: Plan) -> set[str]:
        """Keys of the cells that are measured as far as a plan asks for."""
        return self.keys | (self.partly & plan.whole_only())


@dataclass(kw_only=True)
class Counts:
    """What a refresh did, for its log and for last_refresh.json."""

    planned: int = 0
    measured: int = 0
    reused: int = 0
    failed: int = 0
    generation: int | None = None


def main(arguments: list[str] | None = None) -> int:
    """Run the job.

    Exit codes: 0 done, nothing to do or budget spent; 1 cells failed; 2 bad arguments; 74 disk full; 75 another refresh
    runs, or the engine is lost; 76 store damaged; 130/143 interrupted, with results saved.
    """
    options = _parse(arguments)
    return ends(lambda: _run(options))


def _run(given: argparse.Namespace) -> int:
    plugins.load(given.plugin)
    plan, options = plan_of(given.grid, given.dtype), _options(given)
    if given.dry_run:
        return dry_run(store_path(), plan, options)
    return refresh(store_path(), plan, options, Stop().install())


def dry_run(path: Path, plan: Plan, options: Options) -> int:
    """Say what a refresh would do, and what it would take."""
    held = look(path)
    todo = to_measure(plan, held, options.retry_failed)
    _say_plan(path, plan, held, todo)
    if todo:
        at_once = options.engine.at_once(options.workers)
        print(f"It would take {held.timings.of(_batches(plan, todo, options, at_once), at_once).words(at_once)}.")
    return DONE


def refresh(path: Path, plan: Plan, options: Options, stop: Stop | None = None) -> int:
    """Bring the store at path to hold every cell of a plan, and leave in last_refresh.json how that ended."""
    started, counts = now(), Counts(planned=len(plan.settings()))
    code = None
    try:
        code = _refresh(path, plan, options, stop or Stop(), counts)
    except BaseException as error:
        code = getattr(error, "exit_code", SOME_FAILED)
        raise
    finally:
        if code is not None and code != StoreBusy.exit_code:
            _leave_word(path, started, code, counts, options.every_s)
    return code


def look(path: Path, judges: bool = False) -> Held:
    """What the published store at path has; nothing, where there is no store. judges: verdicts are looked at too."""
    try:
        store = Store(path)
    except StoreMissing:
        return Held(keys=set(), attempts={}, planned=set(), timings=Timings.none())
    return Held(
        keys=store.measured_keys(),
        attempts=store.attempts(),
        planned=store.planned(),
        timings=Timings(store.ask("timings")),
        older=store.older,
        partly=store.partly_measured_keys(),
        unpredicted=bool(predictions.lacking(store.unpredicted(predictions.SOURCE))),
        unjudged=judges and not verdicts.are_kept(store),
    )


def to_measure(plan: Plan, held: Held, retry_failed: bool) -> list[Setting]:
    """The cells to be measured: not there, and not failed too often already.

    Seed by seed, so that one that is cut off leaves every mean it has begun with some seeds; of a seed, longest first.
    """
    limit = sys.maxsize if retry_failed else MOST_ATTEMPTS
    there = held.has(plan)
    lacking = [s for s in plan.settings() if s.key not in there and held.attempts.get(s.key, 0) < limit]
    return sorted(lacking, key=lambda setting: (setting.seed, -held.timings.wall_s(setting)))


def _refresh(path: Path, plan: Plan, options: Options, stop: Stop, counts: Counts) -> int:
    held = look(path, options.judges)
    todo = to_measure(plan, held, options.retry_failed)
    counts.reused = counts.planned - len(todo)
    _say_plan(path, plan, held, todo)
    is_news = held.older or held.unjudged or not _is_kept(plan, held) or bool(options.predicts and held.unpredicted)
    if not todo and not is_news:
        _tidy(path)
        return DONE
    if todo:
        _require_measuring(todo)
        options = replace(options, at_once=options.engine.at_once(options.workers))
    with locked(path):
        building = Building(path)
        for note in building.notes:
            print(note)
        try:
            return _measure_and_publish(building, plan, held.timings, options, stop, counts, is_news)
        finally:
            building.close()


def _tidy(path: Path) -> None:
    """Where nothing is to be done, leave no building file either that was published; another refresh's is left."""
    if beside(path, "building").exists():
        with suppress(StoreBusy), locked(path):
            tidy(path)


def _measure_and_publish(
    building: Building, plan: Plan, timings: Timings, options: Options, stop: Stop, counts: Counts, is_news: bool
) -> int:
    from jobs.provenance import commit, package_version, provenance

    held = Held(
        keys=building.measured_keys(),
        attempts=building.attempts(),
        planned=set(),
        timings=timings,
        partly=building.partly_measured_keys(),
    )
    todo = to_measure(plan, held, options.retry_failed)
    kept = counts.planned - len(todo) - counts.reused
    if kept > 0:
        print(f"{count(kept, 'cell')} kept from an interrupted refresh; {len(todo)} remain.")
    counts.reused = counts.planned - len(todo)
    building.begin(provenance(options.at_once), planned=counts.planned, reused=counts.reused)
    for grid, cells in plan.grids.items():
        building.plan(grid, cells, plan.partly.get(grid, set()))
    began = time.monotonic()
    if todo:
        _register(building)
        _measure(building, plan, todo, held, options, stop, counts)
    wall_s = time.monotonic() - began
    if options.predicts:
        predictions.bring_up(building, options.workers, stop)
    fruitless = not (counts.measured or counts.failed or kept > 0)
    if fruitless and (stop.asked() or not is_news or not building.published.exists()):
        building.discard()
        return _outcome(stop, counts, len(todo))
    if options.judges:
        verdicts.bring_up(building)
    building.finish(measured=counts.measured, failed=counts.failed, wall_s=wall_s)
    counts.generation = building.publish(package_version(), commit())
    print(f"Published generation {counts.generation}: {count(counts.measured, 'cell')} measured in {duration(wall_s)}.")
    return _outcome(stop, counts, len(todo))


def _measure(
    building: Building, plan: Plan, todo: list[Setting], held: Held, options: Options, stop: Stop, counts: Counts
) -> None:
    from jobs.progress import Progress  # what only measuring needs is imported where measuring begins

    batches = _batches(plan, todo, options, options.at_once)
    print(f"Measuring takes {held.timings.of(batches, options.at_once).words(options.at_once)}.")
    _say_memory(batches, options.engine.memory_of_each(options.at_once))
    suspects = [one for batch in batches for one in batch.one_by_one() if one.settings[0].key in held.attempts]
    others = _batches(plan, [s for s in todo if s.key not in held.attempts], options, options.at_once)
    may_start = _within(options.budget_s, held.timings)
    with Progress(total=sum(s.depth for s in todo)) as progress:
        for cell in options.engine.measure_all(others, suspects, options.workers, stop, may_start, options.work):
            if isinstance(cell, Measured):
                building.add(cell)
                counts.measured += 1
            else:
                building.fail(cell)
                counts.failed += 1
                progress.say(f"failed: {describe(cell.setting)}: {cell.reason}")
            progress.advance(cell.setting.depth)


def _outcome(stop: Stop, counts: Counts, todo: int) -> int:
    left = todo - counts.measured - counts.failed
    if stop.asked():
        return say(f"Stopped by a signal; {count(left, 'cell')} left for the next refresh.", stop.exit_code())
    if left:
        print(f"The budget is spent; {count(left, 'cell')} left for the next refresh.")
    return say(f"{count(counts.failed, 'cell')} failed.", SOME_FAILED) if counts.failed else DONE


def _batches(plan: Plan, todo: list[Setting], options: Options, at_once: int) -> list[Batch]:
    """What workers are given: depths that share a forward pass together, streamed where memory asks for it."""
    try:
        from lnmeasure.core.measure import share_prefix
    except ModuleNotFoundError:  # a plan is made without torch too: then as if nothing were shared
        share_prefix = None

    def may_share(setting: Setting) -> bool:
        alone = setting.kind != "readings" or setting.setup.encoder != "none"  # an encoder is as deep as its decoder
        return bool(
            options.work.together and not alone and share_prefix and share_prefix(setting.placement, setting.init)
        )

    share_mb = (options.engine.memory_of_each(at_once) or UNKNOWN_SHARE) / 1e6
    found = in_batches(
        todo,
        plan.whole_only(),
        may_share,
        lambda batch: needs_streaming(batch, DEVICE_MB if batch.device != "cpu" else share_mb),
        options.device,
        seeds_at_once if options.work.together else lambda _: 1,
    )
    return [replace(batch, plugins=options.plugins) for batch in found]


def _within(budget_s: float | None, timings: Timings) -> Callable[[Batch], bool]:
    """Whether a batch that starts now would, by its estimate, end within the budget."""
    if budget_s is None:
        return lambda _: True
    end = time.monotonic() + budget_s
    return lambda batch: time.monotonic() + timings.batch_s(batch) <= end


def _leave_word(path: Path, started: datetime, code: int, counts: Counts, every_s: float | None) -> None:
    if path.exists() and not path.is_file():
        return
    before = last_refresh(path)
    every_s = every_s or (before.every_s if before else None)  # a refresh by hand does not end the schedule
    word = LastRefresh(started=started, finished=now(), exit_code=code, every_s=every_s, **vars(counts))
    if code == DONE:
        word = replace(word, last_success=word.finished)
    elif before:
        word = replace(word, last_success=before.last_success)
    try:
        write_last_refresh(path, word)
    except OSError as error:
        print(f"last_refresh.json could not be written: {error.strerror}.", file=sys.stderr)


def _is_kept(plan: Plan, held: Held) -> bool:
    """Whether the store says of each of the plan's grids what the plan says."""
    return plan.rows() == {row for row in held.planned if row[0] in plan.grids}


def _say_plan(path: Path, plan: Plan, held: Held, todo: list[Setting]) -> None:
    settings = plan.settings()
    has = held.has(plan)
    there = sum(s.key in has for s in settings)
    given_up = len(settings) - there - len(todo)
    skipped = sum(reason is not None for _, _, reason, _ in plan.rows())
    print(
        f"{path.name}: {count(len(settings), 'cell')} planned, {there} there, {len(todo)} to measure"
        + (f", {skipped} skipped" if skipped else "")
        + (f", {given_up} failed {MOST_ATTEMPTS} times (--retry-failed tries them again)" if given_up else "")
        + "."
    )
    if held.older:
        print("The store has an older schema; a refresh brings it to this one and measures nothing again for that.")


def _say_memory(batches: list[Batch], share: int | None) -> None:
    """How memory is kept, and where a batch will take more than a worker's share in bytes (None: nobody here knows)."""
    streamed = sum(len(batch.settings) for batch in batches if batch.streaming)
    if streamed:
        print(f"{count(streamed, 'cell')} measured block by block, for whole stacks would not fit in memory.")
    need = max(map(memory_mb, batches))
    if share and need > share / 1e6:
        print(
            f"Each worker may take {share / 1e6:.0f} MB and some cells are expected to need {need:.0f}: "
            "try fewer --workers."
        )


def describe(setting: Setting) -> str:
    """A setting in one line."""
    return f"{setting.setup.name}, {setting.placement}, {setting.init}, depth {setting.depth}, seed {setting.seed}"


def _require_measuring(missing: list[Setting]) -> None:
    try:
        from lnmeasure.core.measure import check_names
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{count(len(missing), 'cell')} to be measured, and {error.name} is not installed. Run 'make refresh', "
            "which installs what measuring needs, or: pip install -c constraints.txt -e '.[jobs]'"
        ) from error
    for setting in missing:
        check_names(setting)


def _register(building: Building) -> None:
    from lnmeasure.core.initialise import INITS
    from lnmeasure.core.placements import PLACEMENTS

    for registry in (PLACEMENTS, INITS):
        entries = [registry[name] for name in registry]
        building.register(registry.kind, [(e.name, e.equation, e.source, e.unconfirmed) for e in entries])


def _options(given: argparse.Namespace) -> Options:
    engine = chosen(given.engine, given.scheduler)
    return Options(
        workers=given.workers or (cores() if engine is LOCAL else sys.maxsize),
        budget_s=given.budget,
        every_s=given.every,
        retry_failed=given.retry_failed,
        device=given.device,
        engine=engine,
        plugins=tuple(given.plugin),
        predicts=True,
        judges=True,
    )


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jobs.refresh", description=__doc__)
    add = parser.add_argument
    grids = f"grids to bring up to date (default all: {', '.join(GRIDS)})"
    add("--grid", nargs="+", action="extend", default=[], metavar="NAME", help=grids)
    plugin = "module that registers placements or inits of its own, which then belong to the grids too"
    add("--plugin", action="append", default=[], metavar="MODULE", help=plugin)
    add("--dry-run", action="store_true", help="say what would be measured and what it would take, and stop")
    workers = partial(whole_number, "workers", 1, 64 * cores())
    most = f"workers of one thread each, at most (default {cores()}, the cores; on a cluster all it has)"
    add("--workers", type=workers, metavar="N", help=most)
    add("--engine", choices=ENGINES, default=ENGINES[0], help="measure on this machine (default) or on a Dask cluster")
    add("--scheduler", type=scheduler, metavar="ADDRESS", help="of the Dask cluster, such as tcp://node-1:8786")
    span = "such as 90s, 30m, 5h or 1d"
    add("--budget", type=seconds, metavar="TIME", help=f"start no cell that would end after this, {span}")
    add("--every", type=seconds, metavar="TIME", help=f"how often the schedule runs this, {span}: the page warns by it")
    add("--retry-failed", action="store_true", help=f"try cells again that failed {MOST_ATTEMPTS} times")
    add("--device", default="cpu", help="torch device that measures, such as cuda (default cpu); draws are the same")
    precision = "measure the grids in this precision, as grids and setups of their own (page_float64); default float32"
    add("--dtype", choices=DTYPES, default=DTYPES[0], help=precision)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
