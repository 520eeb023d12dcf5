"""The benchmark asks everything there is, of a store as large as it says."""

import pytest

from jobs import benchmark_store as benchmark
from jobs.exits import BAD_ARGUMENTS, DONE, SOME_FAILED
from lnmeasure.store.comments import VIEWS
from lnmeasure.store.reader import Store
from lnmeasure.store.synthetic import fill

ROWS, ROWS_OF_A_FAMILY = 20_000, 2170


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Store:
    path = tmp_path_factory.mktemp("benchmark") / "lnmeasure.duckdb"
    fill(path, ROWS)
    benchmark.publication(path)
    return Store(path)


@pytest.fixture
def once(monkeypatch):
    """One repetition: these tests look at answers, not at times."""
    monkeypatch.setattr(benchmark, "REPETITIONS", 1)


def test_a_synthetic_store_has_the_rows_it_was_asked_for_and_breaks_no_rule(filled):
    (rows,) = filled.query("SELECT count(*) AS n FROM by_block").n
    assert ROWS <= rows < ROWS + ROWS_OF_A_FAMILY
    assert filled.broken_invariants() == []


def test_a_synthetic_store_has_cells_of_every_state(filled):
    (row,) = filled.query("SELECT sum(ok), sum(skipped), sum(failed), sum(missing) FROM coverage").itertuples(
        index=False
    )
    assert min(row) > 0


def test_every_view_and_every_question_has_an_answer_to_time(filled, once):
    timings = list(benchmark.timings(filled))
    assert {timing.name for timing in timings if timing.kind == "view"} == set(VIEWS)
    assert {timing.name for timing in timings if timing.kind == "question"} >= {"profile", "residual_scaling", "setup"}
    assert [timing.name for timing in timings if timing.rows == 0] == []


def test_a_view_is_filtered_by_what_it_has_of_setup_placement_and_init(filled):
    assert benchmark.filtered(filled, "meta").endswith("WHERE true")
    assert benchmark.filtered(filled, "first_steps").endswith("WHERE true AND placement = $placement AND init = $init")
    for view in ("by_block", "profile", "slope", "coverage"):
        assert "setup = $setup AND placement = $placement AND init = $init" in benchmark.filtered(filled, view)


@pytest.mark.parametrize(("limit_ms", "code"), [(10**6, DONE), (0, SOME_FAILED)])
def test_a_missed_limit_is_marked_and_ends_with_1(limit_ms, code, once, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "VIEW_MS", limit_ms)
    monkeypatch.setattr(benchmark, "QUESTION_MS", 10**6)
    assert benchmark.main(["--rows", "3000", "--folder", str(tmp_path)]) == code
    said = capsys.readouterr().out
    assert said.count("MISSED") == (len(VIEWS) if code else 0)
    assert "MB" in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path, capsys):
    assert benchmark.main(["--rows", "1", "--folder", str(tmp_path / "nowhere")]) == BAD_ARGUMENTS
    assert "nowhere" in capsys.readouterr().err
