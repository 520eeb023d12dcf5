"""What goes into the store comes out of it, once, with the intervals the spec of a mean asks for."""

import math
from statistics import fmean, stdev

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t

from jobs.worker import measure_cell
from lnmeasure.records import Reading, Setting
from lnmeasure.store.building import Building, Measured, Provenance
from lnmeasure.store.comments import VIEWS
from lnmeasure.store.errors import StoreBusy, StoreError, StoreMissing
from lnmeasure.store.lock import locked
from lnmeasure.store.reader import SHIPPED, Store, sql
from tests.cells import invented
from tests.crashing import move
from tests.small import SETUP, small_grid

WHO = Provenance(package="0", commit="abc", torch="0", python="3", processor="p", threads=1)
QUESTIONS = sorted(path.stem for path in SHIPPED.parents[1].glob("lnmeasure/store/queries/*.sql"))


def publish(path, cells) -> int:
    """Publish some cells as one refresh would."""
    building = Building(path)
    building.begin(WHO, planned=len(cells), reused=0)
    for cell in cells:
        building.add(cell)
    building.finish(measured=len(cells), failed=0, wall_s=1.0)
    return building.publish("0", "abc")


def test_every_reading_of_every_placement_and_init_comes_back_as_it_was_measured(store_at):
    cells = [measure_cell(setting) for setting in small_grid(seeds=(0,))]
    publish(store_at, cells)
    store = Store(store_at)
    whole = store.query("SELECT * FROM by_cell").set_index(["placement", "init", "depth", "seed"])
    block = store.query("SELECT * FROM by_block").set_index(["placement", "init", "depth", "seed", "stack", "block"])
    for cell in cells:
        at = (cell.setting.placement, cell.setting.init, cell.setting.depth, cell.setting.seed)
        for reading in cell.readings:
            rows, key = (whole, at) if reading.block is None else (block, (*at, reading.stack, reading.block))
            stored = rows.loc[key, reading.quantity]
            if reading.value is None:
                assert math.isnan(stored)
            else:
                assert stored == np.float32(reading.value), f"{reading} came back as {stored}"


def test_a_mean_carries_the_t_interval_of_its_seeds(store_at):
    values = [1.0, 2.0, 4.0, 8.0]
    grid = [Setting(setup=SETUP, placement="pre", init="gpt2", depth=1, seed=seed) for seed in range(len(values))]
    publish(store_at, [invented(*pair) for pair in zip(grid, values, strict=True)])
    half = student_t.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    expected = [fmean(values), fmean(values) - half, fmean(values) + half]
    store = Store(store_at)
    sigma = store.query("SELECT sigma_mean, sigma_low, sigma_high FROM by_depth").loc[0].tolist()
    stream = store.query("SELECT stream_rms_mean, stream_rms_low, stream_rms_high FROM profile").loc[0].tolist()
    assert sigma == pytest.approx(expected, rel=1e-12)
    assert stream == pytest.approx(expected, rel=1e-12)
    assert store.query("SELECT top_grad_w2_geomean FROM by_depth").iloc[0, 0] == pytest.approx(2 ** (6 / 4))


def test_where_only_some_seeds_have_their_blocks_measured_the_bottom_is_theirs_and_the_rest_is_of_all(store_at):
    grid = [Setting(setup=SETUP, placement="pre", init="gpt2", depth=2, seed=seed) for seed in range(5)]
    cells = [invented(setting, value) for setting, value in zip(grid, [1.0, 2.0, 4.0, 8.0, 16.0], strict=True)]
    for cell in cells[2:]:
        cell.readings[:] = [reading for reading in cell.readings if reading.block is None]
    publish(store_at, cells)
    (row,) = Store(store_at).query("SELECT * FROM by_depth").itertuples()
    assert (row.n_seeds, row.n_seeds_full) == (5, 2)
    assert row.sigma_mean == pytest.approx(31 / 5)
    half = student_t.ppf(0.975, 1) * 0.5
    found = (row.bottom_grad_w2_mean, row.bottom_grad_w2_low, row.bottom_grad_w2_high)
    assert found == pytest.approx((1.5, 1.5 - half, 1.5 + half))


def test_one_seed_has_a_mean_and_no_interval(store_at):
    publish(store_at, [invented(small_grid()[0], 3.0)])
    row = Store(store_at).query("SELECT n_seeds, sigma_mean, sigma_low, sigma_high FROM by_depth").loc[0]
    assert row.tolist()[:2] == [1, 3.0]
    assert row[["sigma_low", "sigma_high"]].isna().all()


def test_a_slope_is_fitted_per_seed_over_every_depth_of_its_range_and_not_without_one_of_them(store_at):
    exponents = [-0.4, -0.5, -0.6]
    depths = [8, 12, 16, 24, 32, 48, 64]
    cells = [
        invented(Setting(setup=SETUP, placement="pre", init="gpt2", depth=depth, seed=seed), depth**exponent)
        for seed, exponent in enumerate(exponents)
        for depth in depths
    ]
    publish(store_at, [*cells, invented(Setting(setup=SETUP, placement="pre", init="gpt2", depth=8, seed=9), 1.0)])
    slopes = Store(store_at).query("SELECT * FROM slope WHERE quantity = 'top_grad_w2'")
    assert len(slopes) == 1, "only the range 8 to 64 has all its depths"
    half = student_t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    row = slopes.loc[0]
    assert (row.depth_min, row.depth_max, row.n_depths, row.n_seeds) == (8, 64, 7, 3)
    assert [row.estimate, row.low, row.high] == pytest.approx([-0.5, -0.5 - half, -0.5 + half], abs=1e-6)


def test_a_comparison_is_the_geometric_mean_of_ratios_paired_by_seed(store_at):
    ratios = [2.0, 4.0, 8.0]
    cells = []
    for seed, ratio in enumerate(ratios):
        for placement, value in (("post", ratio * (seed + 1)), ("pre", seed + 1.0)):
            setting = Setting(setup=SETUP, placement=placement, init="gpt2", depth=1, seed=seed)
            cells.append(invented(setting, value))
    publish(store_at, cells)
    row = Store(store_at).query("SELECT * FROM comparison").loc[0]
    half = student_t.ppf(0.975, 2) * math.log(2) / math.sqrt(3)
    assert (row.placement, row.n_seeds) == ("pre", 3)
    assert [row.estimate, row.low, row.high] == pytest.approx([4, 4 / math.exp(half), 4 * math.exp(half)], rel=1e-6)


def test_a_mean_over_seeds_one_of_which_overflowed_is_null_and_the_cell_says_so(store_at):
    good, bad = (invented(setting, 1.0) for setting in small_grid()[:2])
    lost = [
        Reading(quantity=r.quantity, value=None, block=r.block, status="overflow") if r.quantity == "sigma" else r
        for r in bad.readings
    ]
    publish(store_at, [good, Measured(setting=bad.setting, readings=lost, measured_at=bad.measured_at, wall_s=1.0)])
    store = Store(store_at)
    assert store.query("SELECT status FROM by_cell ORDER BY seed").status.tolist() == ["ok", "overflow"]
    row = store.query("SELECT sigma_mean, loss_mean FROM by_depth").loc[0]
    assert math.isnan(row.sigma_mean)
    assert row.loss_mean == 1.0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.floats(0.01, 100)), min_size=1, max_size=12))
def test_whatever_is_added_and_added_again_is_there_once_with_the_last_value(tmp_path_factory, added):
    path = tmp_path_factory.mktemp("store") / "s.duckdb"
    settings_ = [Setting(setup=SETUP, placement="pre", init="gpt2", depth=d, seed=s) for s, d, _ in added]
    publish(path, [invented(s, value) for s, (_, _, value) in zip(settings_, added, strict=True)])
    last = {(s, d): np.float32(value) for s, d, value in added}
    rows = Store(path).query("SELECT seed, depth, sigma FROM by_cell")
    assert {(r.seed, r.depth): r.sigma for r in rows.itertuples()} == last
    assert len(rows) == len(last)
    assert len(Store(path).query("SELECT 1 FROM by_block")) == sum(depth for _, depth in last)


def test_every_column_of_every_contract_view_has_a_comment_and_quantities_their_unit(shipped):
    dictionary = shipped.ask("dictionary")
    assert set(dictionary.view) == set(VIEWS)
    assert dictionary.comment.notna().all()
    assert dictionary.view_comment.notna().all()
    gradients = dictionary[dictionary["column"].str.startswith("grad_")]
    assert gradients.comment.str.contains("[nat]", regex=False).all()


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_shipped_query_is_one_select_that_says_what_a_row_is_and_answers(question, shipped):
    text = sql(question)
    assert text.startswith("-- one row")
    assert len(duckdb.extract_statements(text)) == 1
    assert duckdb.extract_statements(text)[0].type == duckdb.StatementType.SELECT
    setup = "paths" if question.startswith("path_") else "page"
    values = {"setup": setup, "init": "xavier_uniform", "depth": 24, "compared": ["post", "pre"]}
    answer = shipped.ask(question, **{name: value for name, value in values.items() if f"${name}" in text})
    assert len(answer) > 0 or question == "failures"


def test_the_published_file_is_read_only_without_leftovers_and_opens_in_older_storage(store_at):
    generation = publish(store_at, [invented(small_grid()[0], 1.0)])
    assert generation == 1
    assert publish(store_at, [invented(small_grid()[1], 1.0)]) == 2
    assert sorted(path.name for path in store_at.parent.iterdir()) == [store_at.name, f"{store_at.name}.record"]
    assert store_at.stat().st_mode & 0o777 == 0o444
    connection = duckdb.connect(store_at, read_only=True)
    (tags,) = connection.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'lnmeasure'").fetchone()
    assert tags["storage_version"].startswith("v1.2"), tags


def test_a_refresh_that_was_cut_off_is_taken_up_with_its_finished_cells(store_at):
    first, second = small_grid()[:2]
    building = Building(store_at)
    building.begin(WHO, planned=2, reused=0)
    building.add(invented(first, 1.0))
    building.close()
    again = Building(store_at)
    assert again.measured_keys() == {first.key}
    again.begin(WHO, planned=2, reused=1)
    again.add(invented(second, 2.0))
    again.publish("0", None)
    assert Store(store_at).query("SELECT sigma FROM by_cell ORDER BY seed").sigma.tolist() == [1.0, 2.0]


def test_a_building_file_of_another_generation_never_undoes_what_was_published_since(store_at):
    first, second, third = small_grid()[:3]
    publish(store_at, [invented(first, 1.0)])
    building = Building(store_at)
    building.begin(WHO, planned=1, reused=0)
    building.add(invented(second, 2.0))
    building.close()
    left = store_at.with_name("left")
    move(building.path, left)
    publish(store_at, [invented(third, 3.0)])
    move(left, building.path)
    again = Building(store_at)
    assert "another publication" in " ".join(again.notes)
    assert again.path.with_name(f"{again.path.name}.aside_1").exists()
    assert again.measured_keys() == {first.key, third.key}
    again.discard()


def test_the_lock_keeps_a_second_refresh_out_and_names_the_first(store_at):
    with locked(store_at):
        with pytest.raises(StoreBusy, match=r"process \d+"), locked(store_at):
            pass


def test_readers_keep_their_snapshot_and_a_new_reader_sees_the_new_file(store_at):
    publish(store_at, [invented(small_grid()[0], 1.0)])
    old = Store(store_at)
    publish(store_at, [invented(small_grid()[1], 1.0)])
    assert len(old.query("SELECT 1 FROM by_cell")) == 1
    assert len(Store(store_at).query("SELECT 1 FROM by_cell")) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "COPY meta TO '/tmp/leak.csv'",
        "COPY (SELECT 1) TO '/tmp/leak.parquet' (FORMAT parquet)",
        "EXPORT DATABASE '/tmp/leak'",
        "IMPORT DATABASE '/tmp/leak'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd.csv'",
        "SELECT * FROM glob('/etc/*')",
        "ATTACH '/tmp/a.db'",
        "ATTACH ':memory:' AS m; CREATE TABLE m.t AS SELECT * FROM read_blob('/etc/passwd')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM frame",
        "CREATE SECRET s (TYPE s3)",
        "CREATE TABLE t AS SELECT 1",
        "DELETE FROM cell",
    ],
)
def test_a_reader_can_neither_write_nor_look_around(statement, shipped):
    frame = pd.DataFrame({"x": [1]})
    with pytest.raises(duckdb.Error):
        shipped.query(statement)
    assert len(frame) == 1


def test_a_reader_spills_nothing_and_gives_up_in_the_end(shipped):
    wanted = ("temp_directory", "max_execution_time", "memory_limit", "threads", "lock_configuration")
    rows = shipped.query(f"SELECT name, value FROM duckdb_settings() WHERE name IN {wanted}")
    assert dict(rows.itertuples(index=False, name=None)) == {
        "temp_directory": "",
        "max_execution_time": "60000",
        "memory_limit": "953.6 MiB",
        "threads": "2",
        "lock_configuration": "true",
    }
    with pytest.raises(duckdb.Error, match="memory"):
        shipped.query("SELECT count(DISTINCT hash(a.range, b.range)) FROM range(100000) a, range(10000) b")


def test_a_missing_store_says_where_and_what_to_do(store_at):
    with pytest.raises(StoreMissing, match=r"no store at .*make refresh"):
        Store(store_at)


def test_a_foreign_duckdb_file_is_refused_by_reader_and_writer_and_left_alone(store_at):
    duckdb.connect(store_at).execute("CREATE TABLE theirs (x INTEGER)").close()
    before = store_at.read_bytes()
    for opening in (Store, Building):
        with pytest.raises(StoreError, match="not an lnmeasure store"):
            opening(store_at)
    assert store_at.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a database at all", bytes(100_000)])
def test_a_file_that_is_no_database_is_refused_with_the_way_out(content, store_at):
    store_at.write_bytes(content)
    with pytest.raises(StoreError, match=r"LNMEASURE_STORE"):
        Store(store_at)


def test_a_directory_and_a_store_of_another_schema_version_are_refused(store_at):
    store_at.mkdir()
    with pytest.raises(StoreError, match="not a file"):
        Store(store_at)
    store_at.rmdir()
    publish(store_at, [invented(small_grid()[0], 1.0)])
    store_at.chmod(0o644)
    duckdb.connect(store_at).execute("UPDATE meta SET schema_version = 99").close()
    with pytest.raises(StoreError, match="schema version 99"):
        Store(store_at)
