"""The refresh job measures what the store lacks, once, and can be cut off at any time without losing a cell."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jobs import exits, grids, refresh, status
from jobs.worker import measure_cell
from lnmeasure.records import MEASUREMENT_VERSION, REVISED, Setting, Setup
from lnmeasure.store.errors import StoreError
from lnmeasure.store.lock import locked
from lnmeasure.store.reader import SHIPPED, Store
from tests.conftest import ROOT
from tests.small import SETUP, plan, small_grid

TWO = refresh.Options(workers=2)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """A job as a user runs it."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=300)


def log_of(path) -> list[dict]:
    """The refresh log's counts."""
    return Store(path).query("SELECT planned, measured, reused, failed FROM refresh_log").to_dict("records")


def test_a_refresh_measures_what_the_store_lacks_and_then_leaves_the_file_byte_for_byte(store_at):
    grid = small_grid(depths=(1, 3), seeds=(0, 1))
    part = [setting for setting in grid if setting.seed == 0]
    assert refresh.refresh(store_at, plan(part), TWO) == 0
    assert refresh.refresh(store_at, plan(grid), TWO) == 0
    before = store_at.read_bytes()
    assert refresh.refresh(store_at, plan(grid), TWO) == 0
    assert store_at.read_bytes() == before
    assert log_of(store_at) == [
        {"planned": len(part), "measured": len(part), "reused": 0, "failed": 0},
        {"planned": len(grid), "measured": len(grid) - len(part), "reused": len(part), "failed": 0},
    ]


def test_worker_processes_read_the_same_bits_as_measuring_inline(store_at):
    grid = small_grid(depths=(2,), seeds=(0,))
    refresh.refresh(store_at, plan(grid), TWO)
    rows = Store(store_at).query("SELECT * FROM by_block WHERE block = 2").set_index(["placement", "init"])
    for setting in grid:
        for reading in measure_cell(setting).readings:
            if reading.block == 2:
                stored = rows.loc[(setting.placement, setting.init), reading.quantity]
                assert np.array_equal(np.float32(stored), np.float32(reading.value), equal_nan=True), reading


def test_cells_are_measured_seed_by_seed_and_of_a_seed_the_longest_first():
    grid = small_grid(depths=(1, 5, 3), seeds=(2, 0, 1))
    held = refresh.look(Path("nowhere"))
    order = [(s.seed, -s.depth) for s in refresh.to_measure(plan(grid), held, retry_failed=False)]
    assert len(order) == len(grid)
    assert order == sorted(order)


def test_a_dry_run_says_what_is_missing_and_measures_nothing(store_at, capsys):
    assert refresh.main(["--grid", "page", "--dry-run"]) == 0
    assert f"{len(grids.page())} to measure" in capsys.readouterr().out
    assert not store_at.exists()


def test_a_cell_that_raises_fails_alone_and_the_rest_is_published(store_at, capsys):
    huge = Setting(setup=Setup(name="huge", vocab=10**15), placement="pre", init="gpt2", depth=1, seed=0)
    assert refresh.refresh(store_at, plan([*small_grid(seeds=(0,)), huge]), TWO) == exits.SOME_FAILED
    assert "huge, pre, gpt2, depth 1, seed 0" in capsys.readouterr().err
    assert log_of(store_at)[0]["failed"] == 1
    assert len(Store(store_at).query("SELECT 1 FROM by_cell")) == len(small_grid(seeds=(0,)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--grid", "nonsense"], ["'nonsense'", "page"]),
        (["--workers", "0"], ["'0'", "from 1 to"]),
        (["--workers", "many"], ["'many'", "from 1 to"]),
        (["--workers", "100000"], ["'100000'", "from 1 to"]),
        (["--budget", "soon"], ["'soon'", "30m"]),
        (["--every", "0h"], ["'0h'", "30m"]),
    ],
)
def test_bad_arguments_end_with_2_and_name_value_and_rule(arguments, words, tmp_path):
    ended = run("-m", "jobs.refresh", *arguments, LNMEASURE_STORE=str(tmp_path / "s.duckdb"))
    assert ended.returncode == 2
    assert all(word in ended.stderr for word in words), ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unregistered_name_is_refused_before_anything_is_measured(store_at):
    setting = Setting(setup=SETUP, placement="sideways", init="gpt2", depth=1, seed=0)
    with pytest.raises(ValueError, match=r"'sideways'.*post, pre"):
        refresh.refresh(store_at, plan([setting]), refresh.Options())
    assert not store_at.exists()


def test_without_torch_a_refresh_says_what_to_install(store_at):
    block = "import sys; sys.modules['torch'] = None; from jobs.refresh import main; sys.exit(main(['--grid', 'page']))"
    ended = run("-c", block, LNMEASURE_STORE=str(store_at))
    assert ended.returncode == 2
    assert "torch is not installed. Run 'make refresh'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_second_refresh_ends_with_75_and_says_who_holds_the_store(store_at):
    with locked(store_at):
        ended = run("-m", "jobs.refresh", "--grid", "page", LNMEASURE_STORE=str(store_at))
    assert ended.returncode == 75
    assert str(os.getpid()) in ended.stderr


def test_a_foreign_store_ends_with_76_and_is_left_alone(store_at):
    store_at.write_bytes(b"somebody else's file")
    ended = run("-m", "jobs.refresh", "--grid", "page", LNMEASURE_STORE=str(store_at))
    assert ended.returncode == 76
    assert "damaged or foreign" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert store_at.read_bytes() == b"somebody else's file"


@pytest.mark.parametrize("job", [["jobs.status"], ["jobs.dictionary"], ["jobs.picture", "x.svg"], ["jobs.refresh"]])
def test_no_job_answers_a_damaged_store_with_a_traceback(job, store_at):
    store_at.write_bytes(b"somebody else's file")
    ended = run("-m", *job, LNMEASURE_STORE=str(store_at))
    assert ended.returncode != 0
    assert "damaged or foreign" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_place_that_cannot_be_written_to_ends_with_a_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(StoreError, match="cannot write beside"), locked(blocked / "lnmeasure.duckdb"):
        pass


def test_the_shipped_store_is_complete_and_each_of_its_cells_of_the_version_that_counts_for_it(monkeypatch, capsys):
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    assert status.main(["--check"]) == status.COMPLETE, capsys.readouterr().out
    assert refresh.to_measure(grids.plan_of([]), refresh.look(SHIPPED), retry_failed=False) == []
    cells = Store(SHIPPED).query("SELECT placement, measurement_version AS version FROM by_cell GROUP BY ALL")
    assert cells.version.tolist() == [REVISED.get(placement, MEASUREMENT_VERSION) for placement in cells.placement]


def test_status_says_where_cells_are_missing(store_at, capsys):
    assert status.main(["--check"]) == status.INCOMPLETE
    assert f"0 of {len(grids.page())} cells" in capsys.readouterr().out
    assert status.main([]) == status.COMPLETE
