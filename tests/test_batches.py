"""Which cells are measured in one go, and what becomes of a batch in which something goes wrong."""

from dataclasses import replace

import pytest

from jobs import refresh
from jobs.batches import Batch, in_batches
from jobs.estimate import DEVICE_MB, Timings, memory_mb, needs_streaming, plain_mb, seeds_at_once
from jobs.grids import PAGE, Plan, plan_of
from jobs.pool import Work, measure_all
from jobs.stop import Stop
from jobs.worker import measure_batch, measure_cell, tie_to
from lnmeasure.core.measure import share_prefix
from lnmeasure.records import Setting
from lnmeasure.store.building import Failed, Measured
from lnmeasure.store.reader import Store
from tests import cells
from tests.small import small_grid


def may_share(setting):
    return share_prefix(setting.placement, setting.init)


def never(batch):
    return False


def test_every_setting_is_in_one_batch_and_batches_differ_in_depth_only_where_depths_may_share():
    settings = small_grid(depths=(1, 2, 5))
    found = in_batches(settings, set(), may_share, never)
    assert sorted(map(repr, settings)) == sorted(repr(s) for batch in found for s in batch.settings)
    for batch in found:
        assert len({replace(s, depth=1) for s in batch.settings}) == 1
        assert len(batch.settings) == (3 if may_share(batch.settings[0]) else 1)


def test_batches_keep_the_order_they_were_given_and_part_what_is_asked_for_in_full():
    settings = small_grid(depths=(5, 1), seeds=(0,))
    partly = {s.key for s in settings if s.depth == 1}
    found = in_batches(settings, partly, may_share, never)
    first = [settings.index(batch.settings[0]) for batch in found]
    assert first == sorted(first)
    assert all(batch.whole_only == (s.key in partly) for batch in found for s in batch.settings)


def test_on_an_accelerator_seeds_of_the_same_depths_are_measured_side_by_side_as_many_as_fit():
    settings = small_grid(depths=(1, 2, 5), seeds=(0, 1, 2, 3, 4))
    found = in_batches(settings, set(), may_share, never, "cuda", lambda _: 2)
    assert sorted(map(repr, settings)) == sorted(repr(s) for batch in found for s in batch.settings)
    assert {batch.seeds for batch in found} == {1, 2}
    for batch in found:
        depths = {seed: sorted(s.depth for s in batch.settings if s.seed == seed) for seed in range(5)}
        assert len({tuple(d) for d in depths.values() if d}) == 1
    assert len(found) == 3 * len({repr(replace(s, seed=0)) for b in found for s in b.settings[:1]})


def test_how_many_seeds_go_side_by_side_is_what_the_memory_of_the_device_holds():
    one = Setting(setup=PAGE, placement="pre", init="xavier_uniform", depth=64, seed=0)
    batch = Batch(settings=(one,), device="cuda")
    assert seeds_at_once(replace(batch, device="cpu")) == 1
    size = seeds_at_once(batch)
    assert size > 1
    fits = replace(batch, settings=tuple(replace(one, seed=seed) for seed in range(size)))
    assert (
        memory_mb(fits)
        <= DEVICE_MB
        < memory_mb(replace(fits, settings=(*fits.settings, replace(one, seed=size)))) * 1.4
    )


def together(batch: Batch) -> list[Measured]:
    """A batch of invented cells."""
    return [cells.instant(setting) for setting in batch.settings]


def raises_with_depth_2(batch: Batch) -> list[Measured]:
    """Raises an error where a setting has depth 2."""
    if any(setting.depth == 2 for setting in batch.settings):
        raise ArithmeticError("no luck with depth 2")
    return together(batch)


def dies_with_depth_2(batch: Batch) -> list[Measured]:
    """Dies as the system kills a process for memory, where a setting has depth 2."""
    return [
        cells.kills_its_process_at_seed_1(replace(s, seed=s.depth - 1)) and cells.instant(s) for s in batch.settings
    ]


@pytest.mark.parametrize(
    ("measure", "reason"), [(raises_with_depth_2, "no luck with depth 2"), (dies_with_depth_2, "was killed")]
)
def test_one_bad_depth_fails_alone_and_the_others_of_its_batch_are_measured(measure, reason):
    settings = cells.grid(6)
    batches = in_batches(settings, set(), lambda _: True, never)
    assert [len(batch.settings) for batch in batches] == [3, 3]
    work = Work(cell=cells.instant, prepare=tie_to, together=measure)
    found = list(measure_all(batches, [], 2, Stop(), work=work))
    failed = [outcome for outcome in found if isinstance(outcome, Failed)]
    assert {outcome.setting for outcome in failed} == {s for s in settings if s.depth == 2}
    assert all(reason in outcome.reason for outcome in failed)
    assert {o.setting for o in found if isinstance(o, Measured)} == {s for s in settings if s.depth != 2}


def test_a_batch_reads_what_its_cells_read_and_shares_its_time_by_depth():
    settings = tuple(s for s in small_grid(depths=(3, 1), seeds=(0,)) if may_share(s))[:2]
    deep, shallow = measure_batch(Batch(settings=settings))
    assert [deep.readings, shallow.readings] == [measure_cell(setting).readings for setting in settings]
    assert deep.wall_s == pytest.approx(3 * shallow.wall_s)


def test_a_batch_is_streamed_where_it_would_not_fit_and_then_takes_less():
    deep = Batch(settings=(Setting(setup=PAGE, placement="pre", init="xavier_uniform", depth=1024, seed=0),))
    wide = replace(deep.settings[0], setup=replace(PAGE, name="wide", width=1024), depth=64)
    assert needs_streaming(deep, 8_000)
    assert needs_streaming(Batch(settings=(wide,)), 6_000)
    assert not needs_streaming(deep, plain_mb(PAGE, 1024) + 1)
    assert not needs_streaming(replace(deep, whole_only=True), 8_000)
    assert memory_mb(replace(deep, streaming=True)) < 2**31 / 1e6 < memory_mb(deep)


def test_a_shared_forward_pass_is_counted_once():
    settings = tuple(Setting(setup=PAGE, placement="pre", init="gpt2", depth=d, seed=0) for d in (8, 4, 4))
    by_itself = [Timings.none().batch_s(Batch(settings=(s,))) for s in settings]
    assert Timings.none().batch_s(Batch(settings=settings)) == pytest.approx(sum(by_itself) * 2 / 3 + by_itself[0] / 3)


def test_whole_stack_readings_are_enough_where_a_grid_says_so_and_no_other_grid_asks_for_more(store_at):
    settings = [replace(s, init="xavier_uniform") for s in cells.grid(3)]
    keys = {s.key for s in settings}
    dense = Plan(grids={"dense": [(s, None) for s in settings]}, partly={"dense": keys})
    both = Plan(grids=dense.grids | {"page": [(settings[0], None)]}, partly=dense.partly)
    assert dense.whole_only() == keys
    assert both.whole_only() == keys - {settings[0].key}
    work = Work(cell=measure_cell, together=measure_batch)
    assert refresh.refresh(store_at, dense, refresh.Options(work=work)) == 0
    assert Store(store_at).partly_measured_keys() == keys
    assert refresh.refresh(store_at, dense, refresh.Options(work=work)) == 0
    assert Store(store_at).meta["generation"] == 1, "nothing was lacking"
    (covered,) = Store(store_at).query("SELECT sum(ok) AS ok, sum(planned) AS n FROM coverage").itertuples(index=False)
    assert (covered.ok, covered.n) == (3, 3)
    assert refresh.refresh(store_at, both, refresh.Options(work=work)) == 0
    after = Store(store_at)
    assert after.measured_keys() == {settings[0].key}
    assert after.partly_measured_keys() == keys - {settings[0].key}
    (row,) = after.query("SELECT sum(ok) AS ok, sum(planned) AS n FROM coverage WHERE grid = 'page'").itertuples(
        index=False
    )
    assert (row.ok, row.n) == (1, 1)


def test_another_precision_has_grids_and_setups_of_its_own():
    plain, double = plan_of(["page"]), plan_of(["page"], "float64")
    assert list(double.grids) == ["page_float64"]
    assert {(s.setup.name, s.setup.dtype) for s in double.settings()} == {("page_float64", "float64")}
    assert len(double.settings()) == len(plain.settings())
    assert not {s.key for s in double.settings()} & {s.key for s in plain.settings()}
