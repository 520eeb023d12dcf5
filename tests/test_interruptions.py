"""Signals, budgets, cells that fail and workers that die: what is finished is published, what failed is recorded."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from jobs import exits, grids, refresh, status
from jobs.batches import Batch
from jobs.estimate import Timings
from jobs.grids import Plan, Skipped, plan_of
from jobs.pool import Work
from jobs.worker import tie_to
from lnmeasure.records import Reading, Setting, Setup
from lnmeasure.store.building import Measured
from lnmeasure.store.freshness import last_refresh
from lnmeasure.store.reader import MOST_ATTEMPTS, SHIPPED, Store
from tests import cells
from tests.cells import WORK, grid
from tests.conftest import ROOT
from tests.nursery import wait_until
from tests.small import plan


def options(**chosen: object) -> refresh.Options:
    """A refresh by one worker of invented cells, unless chosen otherwise."""
    return refresh.Options(**{"workers": 1, "work": WORK} | chosen)


def faulty(cell) -> refresh.Options:
    """A refresh whose cells have a fault."""
    return options(workers=2, work=Work(cell=cell, prepare=tie_to))


def rows(path, what: str = "SELECT 1 FROM by_cell") -> list[dict]:
    """The store's answer as rows."""
    return Store(path).query(what).to_dict("records")


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_publishes_what_is_finished_within_10_s_and_leaves_no_process(asked, store_at):
    command = [sys.executable, "-m", "tests.run_invented", "200", "0.2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=-1, stderr=-1, text=True, start_new_session=True) as driver:
        wait_until(lambda: len(list(store_at.parent.glob("worker_*"))) >= 8, "cells were begun")
        driver.send_signal(asked)
        began = time.monotonic()
        _, said = driver.communicate(timeout=60)
        assert time.monotonic() - began < 10
    assert driver.returncode == 128 + asked
    assert "left for the next refresh" in said
    assert "Traceback" not in said
    done = len(rows(store_at))
    assert 3 <= done < 200
    word = last_refresh(store_at)
    assert (word.exit_code, word.measured, word.last_success) == (128 + asked, done, None)
    assert refresh.refresh(store_at, plan(grid(200)), options()) == 0
    log = rows(store_at, "SELECT measured, reused FROM refresh_log ORDER BY refresh")
    assert log == [{"measured": done, "reused": 0}, {"measured": 200 - done, "reused": done}]
    assert not [pid for pid in session_of(driver.pid) if pid != driver.pid]


def session_of(leader: int) -> list[int]:
    """Processes of a session that are alive."""
    listed = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(leader)], capture_output=True, text=True, check=False)
    fields = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, state in fields if not state.startswith("Z")]


def test_ctrl_c_in_a_terminal_reaches_the_whole_group_and_still_publishes_without_a_traceback(store_at):
    """A terminal sends SIGINT to every process of the foreground group, workers too."""
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "tests.run_invented", "200", "0.2"]
    driver = subprocess.Popen(
        command, cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=control_terminal
    )
    os.close(terminal)
    wait_until(lambda: len(list(store_at.parent.glob("worker_*"))) >= 8, "cells were begun")
    os.write(master, b"\x03")
    said = b""
    try:
        while chunk := os.read(master, 4096):
            said += chunk
    except OSError:  # the last process has closed the terminal
        pass
    os.close(master)
    assert driver.wait(timeout=30) == exits.INTERRUPTED, said.decode()
    assert b"left for the next refresh" in said
    assert b"Traceback" not in said
    assert 3 <= len(rows(store_at)) < 200


def control_terminal() -> None:
    """Make the process on stdin's terminal its session's leader, as a shell does."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_budget_is_kept_and_ends_with_0_and_what_is_finished(store_at, capfd):
    assert refresh.refresh(store_at, plan(grid(4)), options()) == 0  # so that wall times are known: half a second each
    began = time.monotonic()
    assert refresh.refresh(store_at, plan(grid(4000)), options(budget_s=5.0)) == 0
    assert time.monotonic() - began < 20
    assert "budget is spent" in capfd.readouterr().out
    assert 4 < len(rows(store_at)) < 4000
    assert last_refresh(store_at).last_success is not None


def test_a_cell_that_raises_is_recorded_with_its_reason_and_retried_twice_then_only_on_request(store_at, capfd):
    asked, fault = plan(grid(30)), faulty(cells.fails_at_seed_1)
    assert refresh.refresh(store_at, asked, fault) == exits.SOME_FAILED
    assert len(rows(store_at)) == 27
    assert (
        "failed: invented, pre, gpt2, depth 1, seed 1: ArithmeticError: no luck with seed 1" in capfd.readouterr().err
    )
    for attempt in range(2, MOST_ATTEMPTS + 1):
        assert refresh.refresh(store_at, asked, fault) == exits.SOME_FAILED
        failures = rows(store_at, "SELECT DISTINCT attempts, reason FROM failure")
        assert failures == [{"attempts": attempt, "reason": "ArithmeticError: no luck with seed 1"}]
    before = store_at.read_bytes()
    assert refresh.refresh(store_at, asked, fault) == 0
    assert store_at.read_bytes() == before
    assert "3 failed 3 times (--retry-failed" in capfd.readouterr().out
    counted = rows(store_at, "SELECT sum(ok) AS ok, sum(failed) AS failed, sum(missing) AS missing FROM coverage")
    assert counted == [{"ok": 27, "failed": 3, "missing": 0}]
    assert refresh.refresh(store_at, asked, options(retry_failed=True)) == 0
    assert len(rows(store_at)) == 30
    assert rows(store_at, "SELECT 1 FROM failure") == []


def test_a_cell_that_kills_its_process_is_given_up_and_the_rest_go_on(store_at):
    assert refresh.refresh(store_at, plan(grid(30)), faulty(cells.kills_its_process_at_seed_1)) == exits.SOME_FAILED
    assert len(rows(store_at)) == 27
    failures = rows(store_at, "SELECT DISTINCT seed, attempts, reason FROM failure")
    assert failures == [{"seed": 1, "attempts": 2, "reason": "its process was killed, perhaps for memory"}]
    assert refresh.refresh(store_at, plan(grid(30)), faulty(cells.kills_its_process_at_seed_1)) == exits.SOME_FAILED
    assert rows(store_at, "SELECT DISTINCT attempts FROM failure") == [{"attempts": 3}]


def test_a_cell_that_takes_all_memory_ends_with_an_ordinary_error(store_at, monkeypatch):
    monkeypatch.setattr("jobs.pool.memory_of_each", lambda workers: 2**29)
    assert refresh.refresh(store_at, plan(grid(9)), faulty(cells.takes_all_memory_at_seed_1)) == exits.SOME_FAILED
    assert rows(store_at, "SELECT DISTINCT reason FROM failure") == [{"reason": "MemoryError"}]
    assert len(rows(store_at)) == 6


def test_workers_that_cannot_start_end_the_refresh_with_75_and_fail_no_cell(store_at, capfd):
    lost = options(work=Work(cell=cells.instant, prepare=cells.dies_on_start))
    assert exits.ends(lambda: refresh.refresh(store_at, plan(grid(3)), lost)) == exits.BUSY
    assert "cannot be started" in capfd.readouterr().err
    assert not store_at.exists()
    assert refresh.refresh(store_at, plan(grid(3)), options()) == 0


def overflowing(setting: Setting) -> Measured:
    """One reading beyond FLOAT, one below it, one that was not finite to begin with."""
    cell = cells.instant(setting)
    lost = {"sigma": (1e39, "ok"), "top_grad_w2": (1e-50, "ok"), "loss": (None, "overflow")}
    changed = [
        Reading(quantity=r.quantity, value=lost[r.quantity][0], status=lost[r.quantity][1], block=r.block)
        if r.quantity in lost
        else r
        for r in cell.readings
    ]
    return Measured(setting=setting, readings=changed, measured_at=cell.measured_at, wall_s=1.0)


def test_a_reading_that_overflows_or_underflows_is_null_with_a_status_and_its_cell_is_ok(store_at):
    assert refresh.refresh(store_at, plan(grid(1)), faulty(overflowing)) == 0
    (row,) = rows(
        store_at, "SELECT sigma IS NULL AND top_grad_w2 IS NULL AND loss IS NULL AS lost, status FROM by_cell"
    )
    assert row == {"lost": True, "status": "overflow, underflow"}
    assert rows(store_at, "SELECT ok, failed, missing FROM coverage") == [{"ok": 1, "failed": 0, "missing": 0}]


def test_coverage_counts_what_a_grid_skips_on_purpose_with_its_reason(store_at):
    asked, left_out = grid(6)[:5], grid(6)[5]
    skipping = Plan(grids={"g": [*((s, None) for s in asked), (left_out, "takes a year")]})
    assert refresh.refresh(store_at, skipping, options()) == 0
    counted = rows(store_at, "SELECT sum(ok) AS ok, sum(skipped) AS skipped, max(reason) AS reason FROM coverage")
    assert counted == [{"ok": 5, "skipped": 1, "reason": "takes a year"}]
    before = store_at.read_bytes()
    assert refresh.refresh(store_at, skipping, options()) == 0
    assert store_at.read_bytes() == before
    changed = Plan(grids={"g": [*((s, None) for s in asked), (left_out, "takes a month")]})
    assert refresh.refresh(store_at, changed, options()) == 0
    assert rows(store_at, "SELECT max(reason) AS reason FROM coverage") == [{"reason": "takes a month"}]


def test_a_grid_gives_each_setting_once_and_keeps_reasons(monkeypatch):
    first, second = grid(2)
    monkeypatch.setitem(grids.GRIDS, "odd", lambda: [first, first, Skipped(setting=second, reason="why not")])
    asked = plan_of(["odd"])
    assert asked.settings() == [first]
    assert len(asked.grids["odd"]) == 2
    assert asked.rows() == {("odd", first.key, None, True), ("odd", second.key, "why not", True)}


def test_whole_stack_readings_count_as_no_full_measurement_and_never_replace_one(store_at):
    setting = grid(3)[2]
    whole = [r for r in cells.instant(setting).readings if r.block is None]
    partial = Measured(setting=setting, readings=whole, measured_at=cells.instant(setting).measured_at, wall_s=0.1)
    from lnmeasure.store.building import Building
    from tests.test_store import publish

    publish(store_at, [partial])
    assert rows(store_at, 'SELECT "full", depth FROM by_cell') == [{"full": False, "depth": 3}]
    assert rows(store_at, "SELECT 1 FROM by_block") == []
    assert refresh.refresh(store_at, plan([setting]), options()) == 0
    assert rows(store_at, 'SELECT "full" FROM by_cell') == [{"full": True}]
    building = Building(store_at)
    building.add(partial)
    building.publish("0", None)
    assert len(rows(store_at, "SELECT 1 FROM by_block")) == 3


def test_every_refresh_leaves_how_it_ended_even_one_with_nothing_to_do(store_at):
    every = options(every_s=3600.0)
    assert refresh.refresh(store_at, plan(grid(3)), every) == 0
    first = last_refresh(store_at)
    assert (first.planned, first.measured, first.generation, first.every_s) == (3, 3, 1, 3600.0)
    assert refresh.refresh(store_at, plan(grid(3)), every) == 0
    second = last_refresh(store_at)
    assert (second.measured, second.reused, second.exit_code) == (0, 3, 0)
    assert refresh.refresh(store_at, plan(grid(6)), faulty(cells.fails_at_seed_1)) == exits.SOME_FAILED
    third = last_refresh(store_at)
    assert (third.exit_code, third.failed, third.last_success) == (1, 3, second.last_success)


def test_a_dry_run_estimates_time_and_memory_from_earlier_timings(monkeypatch, capsys):
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    page = Setup(name="page")
    more = [Setting(setup=page, placement="pre", init="gpt2", depth=d, seed=77) for d in (24, 64)]
    refresh.dry_run(SHIPPED, plan(more), refresh.Options(workers=2))
    said = capsys.readouterr().out
    assert "2 to measure" in said
    assert "from earlier timings" in said
    timed = Timings(Store(SHIPPED).ask("timings"))
    of_page = "setup = 'page' AND \"full\""
    known = [
        rows(SHIPPED, f"SELECT median(wall_s) AS s FROM by_cell WHERE {of_page} AND depth = {d}")[0]["s"]
        for d in (24, 64)
    ]
    assert [timed.wall_s(setting) for setting in more] == pytest.approx(known)
    batches = [Batch(settings=(setting,)) for setting in more]
    assert timed.of(batches, 2).wall_s == pytest.approx(max(*known, sum(known) / 2))


def test_without_timings_time_and_memory_are_estimated_within_a_factor_of_three():
    from jobs.worker import measure_cell

    setting = Setting(setup=Setup(name="page"), placement="pre", init="gpt2", depth=12, seed=5)
    guess, measured = Timings.none(), measure_cell(setting)
    assert 1 / 3 < guess.peak_mb(Batch(settings=(setting,))) / measured.peak_mb < 3
    assert 1 / 5 < guess.wall_s(setting) / measured.wall_s < 5, "machines differ more in speed than in memory"


def test_status_says_freshness_coverage_and_failures(store_at, capsys, monkeypatch):
    monkeypatch.setitem(grids.GRIDS, "page", lambda: grid(30))
    every = refresh.Options(workers=2, work=Work(cell=cells.fails_at_seed_1, prepare=tie_to), every_s=7200.0)
    assert refresh.refresh(store_at, plan_of(["page"]), every) == exits.SOME_FAILED
    capsys.readouterr()
    assert status.main(["--check"]) == status.INCOMPLETE
    said = capsys.readouterr().out
    for words in (
        "generation 1",
        "grid page: 27 of 30 cells, 3 to measure, 3 failed",
        "exit code 1, 3 failed",
        "every 2 h, red",
        "failed: 1 x invented, pre, gpt2, depth 2: ArithmeticError: no luck with seed 1",
    ):
        assert words in said


SLOW_START = (
    "import sys; from jobs import refresh; from jobs.pool import Work; from jobs.stop import Stop; "
    "from lnmeasure.store.reader import store_path; from tests import cells; from tests.small import plan; "
    "work = Work(cell=cells.instant, prepare=cells.takes_a_minute_to_start); options = refresh.Options(work=work); "
    "job = lambda: refresh.refresh(store_path(), plan(cells.grid(3)), options, Stop().install()); "
    "sys.exit(refresh.ends(job))"
)


def test_a_signal_while_workers_start_ends_the_refresh_within_10_s(store_at):
    with subprocess.Popen([sys.executable, "-c", SLOW_START], cwd=ROOT, stderr=-1, text=True) as driver:
        wait_until(lambda: workers_of(driver.pid), "a worker starts")
        driver.send_signal(signal.SIGTERM)
        _, said = driver.communicate(timeout=10)
    assert driver.returncode == exits.TERMINATED, said
    assert "Traceback" not in said
    assert not store_at.exists(), "nothing was measured, so nothing is published"


def workers_of(driver: int) -> list[int]:
    """Spawned workers below a process."""
    from tests.killing import descendants, workers_among

    return workers_among(descendants(driver))


def test_a_second_signal_ends_at_once_without_a_traceback_and_keeps_what_is_committed(store_at):
    command = [sys.executable, "-m", "tests.run_invented", "2000", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=-1, stderr=-1, text=True) as driver:
        wait_until(lambda: len(list(store_at.parent.glob("worker_*"))) >= 20, "cells are committed")
        for _ in range(2):
            driver.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        _, said = driver.communicate(timeout=10)
    assert driver.returncode == exits.TERMINATED, said
    assert "Traceback" not in said
    assert refresh.refresh(store_at, plan(grid(30)), options()) == 0
    assert len(rows(store_at)) >= 30


def publish_plan_of_nine_with_four(path) -> None:
    """A store that knows it lacks five cells."""
    from lnmeasure.store.building import Building

    building = Building(path)
    building.plan("small", [(setting, None) for setting in grid(9)])
    for setting in grid(9)[:4]:
        building.add(cells.instant(setting))
    building.publish("0", None)


def test_a_budget_that_lets_nothing_start_publishes_nothing(store_at):
    publish_plan_of_nine_with_four(store_at)
    before = store_at.read_bytes()
    assert refresh.refresh(store_at, plan(grid(9)), options(budget_s=1e-9)) == 0
    assert store_at.read_bytes() == before
    assert not list(store_at.parent.glob("*building*"))


def test_a_refresh_by_hand_does_not_end_the_declared_schedule(store_at):
    assert refresh.refresh(store_at, plan(grid(3)), options(every_s=3600.0)) == 0
    assert refresh.refresh(store_at, plan(grid(3)), options()) == 0
    assert last_refresh(store_at).every_s == 3600.0
