"""Strange clients, clocks, permissions, links, limits and leftovers: said, survived, and nothing overwritten."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from jobs import exits, grids, refresh, status, verify
from lnmeasure.store import clock
from lnmeasure.store.building import Building
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside
from lnmeasure.store.follow import Follower
from lnmeasure.store.freshness import last_refresh
from lnmeasure.store.reader import SHIPPED, Store, store_path
from tests.cells import grid, instant
from tests.conftest import ROOT
from tests.faults import INSTANT, damage
from tests.small import plan
from tests.test_jobs import run
from tests.test_store import publish

WORD = (
    '{"started": "2026-01-01T00:00:00", "finished": "2026-01-01T00:00:00", "exit_code": 0, "planned": 0, '
    '"measured": 0, "reused": 0, "failed": 0, "generation": 1, "every_s": 3600.0, '
    '"last_success": "2026-01-01T00:00:00"}'
)


NOBODY = 65534


def as_nobody(code: str, path) -> subprocess.CompletedProcess:
    """Python code in a process that has dropped root's privileges."""
    drop = f"import os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n" if os.getuid() == 0 else ""
    environment = os.environ | {"LNMEASURE_STORE": str(path), "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
    # once as who we are: what Python imports late may lie where nobody else can read
    warm_up = "import jobs.refresh, jobs.verify, sys, lnmeasure.core.measure\njobs.refresh.main(['--dry-run'])\n"
    command = [sys.executable, "-c", f"{warm_up}{drop}{code}"]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)


def test_a_store_that_may_not_be_read_and_a_folder_that_may_not_be_written_are_said(published):
    with tempfile.TemporaryDirectory() as name:  # pytest keeps its own folders to itself
        folder = Path(name)
        folder.chmod(0o755)
        store = Path(shutil.copy(published, folder))
        ended = as_nobody("sys.exit(jobs.refresh.main(['--grid', 'page']))", store)
        assert ended.returncode == exits.DAMAGED, ended.stderr
        assert "cannot write beside" in ended.stderr
        store.chmod(0o000)
        ended = as_nobody("sys.exit(jobs.verify.main(['--sample', '0']))", store)
        assert ended.returncode == exits.DAMAGED, ended.stderr
        assert "Check its permissions" in ended.stderr
        assert "Traceback" not in ended.stderr


HOLD = (
    "import duckdb, sys; c = duckdb.connect({path!r}, read_only={read_only}); print('held', flush=True); "
    "sys.stdin.readline(); print(c.execute('SELECT count(*) FROM by_cell').fetchone()[0])"
)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_refresh_goes_on_while_an_analyst_holds_the_file_open(read_only, published):
    published.chmod(0o644)
    code = HOLD.format(path=str(published), read_only=read_only)
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as analyst:
        assert analyst.stdout.readline() == "held\n"
        assert refresh.refresh(published, plan(grid(40)), INSTANT) == 0
        answer, _ = analyst.communicate("\n")
    assert answer == "30\n", "the analyst keeps the file that was opened"
    assert len(Store(published).query("SELECT 1 FROM by_cell")) == 40


def test_an_analyst_who_wrote_in_the_file_is_noticed_and_not_published_over(published):
    published.chmod(0o644)
    code = (
        f"import duckdb, os; c = duckdb.connect({str(published)!r}); c.execute('CREATE TABLE mine (x INTEGER)'); "
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert beside(published, "wal").exists()
    assert exits.ends(lambda: refresh.refresh(published, plan(grid(40)), INSTANT)) == exits.DAMAGED
    assert beside(published, "wal").exists()


def test_a_clock_set_back_neither_stops_a_refresh_nor_turns_generations_back(store_at, monkeypatch):
    assert refresh.refresh(store_at, plan(grid(3)), INSTANT) == 0
    first = Store(store_at).meta
    past = clock.now() - timedelta(days=400)
    for module in ("publication", "building"):
        monkeypatch.setattr(f"lnmeasure.store.{module}.now", lambda: past)
    monkeypatch.setattr(refresh, "now", lambda: past)
    assert refresh.refresh(store_at, plan(grid(9)), INSTANT) == 0
    second = Store(store_at)
    assert second.meta["generation"] == first["generation"] + 1
    assert second.meta["published_at"] < first["published_at"]
    assert len(second.query("SELECT 1 FROM by_cell")) == 9
    assert second.query("SELECT min(wall_s) >= 0 AS ok FROM refresh_log").ok.all()


def test_a_building_file_that_cannot_be_read_is_set_aside_with_its_log_and_its_cells_are_measured_again(
    published, capsys
):
    beside(published, "building").write_bytes(b"nonsense")
    beside(published, "building.wal").write_bytes(b"more nonsense")
    assert refresh.refresh(published, plan(grid(40)), INSTANT) == 0
    said = capsys.readouterr().out
    assert "cannot be read" in said
    assert "building.aside_1" in said
    assert beside(published, "building.aside_1").read_bytes() == b"nonsense"
    assert len(Store(published).query("SELECT 1 FROM by_cell")) == 40


def test_a_log_left_of_a_building_file_that_was_removed_halfway_harms_nobody(published):
    code = (
        "import os; from pathlib import Path; from lnmeasure.store.building import Building; "
        "from tests.cells import grid, instant; "
        f"b = Building(Path({str(published)!r})); b.add(instant(grid(31)[30])); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    beside(published, "building").unlink()
    left = beside(published, "building.wal").read_bytes()
    assert refresh.refresh(published, plan(grid(40)), INSTANT) == 0
    beside(published, "building.wal").write_bytes(left)
    assert refresh.refresh(published, plan(grid(50)), INSTANT) == 0
    assert len(Store(published).query("SELECT 1 FROM by_cell")) == 50
    assert not list(published.parent.glob("*building*"))


def test_a_store_named_by_a_link_or_from_home_is_replaced_where_it_lies(published, monkeypatch):
    link = published.with_name("link to the store")
    link.symlink_to(published)
    monkeypatch.setenv("LNMEASURE_STORE", str(link))
    assert refresh.refresh(store_path(), plan(grid(40)), INSTANT) == 0
    assert link.is_symlink()
    assert len(Store(published).query("SELECT 1 FROM by_cell")) == 40
    monkeypatch.setenv("HOME", str(published.parent))
    monkeypatch.setenv("LNMEASURE_STORE", f"~/{published.name}")
    assert store_path() == published


def test_a_followed_store_that_turns_bad_leaves_the_old_one_in_service_with_a_notice(store_at):
    shutil.copyfile(SHIPPED, store_at)
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "main.py"), default_timeout=60).run()
    assert not app.warning
    drawn = len(app.get("vega_lite_chart"))
    assert drawn > 4
    generation = Store(store_at).meta["generation"]
    damage(store_at, b"half a copy")
    app.run()
    assert not app.exception
    assert not app.error
    (notice,) = app.warning
    assert f"generation {generation}, the last that could be read" in notice.value
    assert len(app.get("vega_lite_chart")) == drawn
    damage(store_at, SHIPPED.read_bytes())
    app.run()
    assert not app.warning


def test_the_page_warns_at_one_and_a_half_declared_intervals_and_alarms_at_three(store_at):
    from lnmeasure.store.freshness import LastRefresh, write_last_refresh

    shutil.copyfile(SHIPPED, store_at)
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "main.py"), default_timeout=60).run()
    assert not app.warning, "no schedule is assumed"
    for hours, warnings, errors in ((-2, 1, 0), (0, 0, 0), (1.4, 0, 0), (1.6, 1, 0), (2.9, 1, 0), (3.1, 0, 1)):
        then = clock.now() - timedelta(hours=hours)
        word = LastRefresh(started=then, finished=then, exit_code=0, every_s=3600.0, last_success=then)
        write_last_refresh(store_at, word)
        app.run()
        assert (len(app.warning), len(app.error)) == (warnings, errors), f"{hours} h after the last success"
        assert f"last refreshed {then:%Y-%m-%d %H:%M} UTC" in app.caption[0].value
    write_last_refresh(store_at, LastRefresh(started=datetime(2020, 1, 1), finished=datetime(2020, 1, 1), exit_code=0))
    app.run()
    assert not app.warning
    assert not app.error


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nonsense",
        "[" * 100_000,
        '{"started": null}',
        WORD.replace("3600.0", "[1]"),
        WORD.replace("3600.0", "true"),
        WORD.replace("3600.0", "1e300"),
        WORD.replace("3600.0", "NaN"),
        WORD.replace("3600.0", "-1"),
        WORD.replace("2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
        WORD.replace('"finished": "2026-01-01T00:00:00"', '"finished": null'),
        WORD.replace('"failed": 0', '"failed": "many"'),
    ],
)
def test_a_last_refresh_that_makes_no_sense_counts_as_none(text, published, capsys, monkeypatch):
    monkeypatch.setitem(grids.GRIDS, "page", lambda: grid(30))
    (published.parent / "last_refresh.json").write_text(text)
    assert last_refresh(published) is None
    assert status.main([]) == 0
    assert "none on record" in capsys.readouterr().out
    (published.parent / "last_refresh.json").write_text(WORD)
    assert last_refresh(published).every_s == 3600.0


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"publications": [{"generation": "1"}]}', '{"publications": 3}'])
def test_a_record_that_makes_no_sense_hinders_no_publication(text, published):
    beside(published, "record").write_text(text)
    assert refresh.refresh(published, plan(grid(40)), INSTANT) == 0
    assert verify.verify(published, sample=0) == 0


def garbage_beside(building):
    building.write_bytes(b"garbage")


def a_link_to_the_store(building):
    building.symlink_to(building.with_name("lnmeasure.duckdb"))


def a_pipe(building):
    os.mkfifo(building)


def a_folder(building):
    building.mkdir()


def one_table_less(building):
    there = Building(building.with_name("lnmeasure.duckdb"))
    there._connection.execute("DROP TABLE planned")
    there.close()


@pytest.mark.parametrize("make", [garbage_beside, a_link_to_the_store, a_pipe, a_folder, one_table_less])
def test_what_is_no_building_file_is_put_aside_wherever_the_store_lies(make, tmp_path):
    store = tmp_path / "blocks and locks" / "lnmeasure.duckdb"
    store.parent.mkdir()
    publish(store, [instant(setting) for setting in grid(30)])
    make(beside(store, "building"))
    assert refresh.refresh(store, plan(grid(40)), INSTANT) == 0
    assert len(Store(store).query("SELECT 1 FROM by_cell")) == 40
    assert not beside(store, "wal").exists()
    assert os.path.lexists(beside(store, "building.aside_1"))


def test_a_lock_that_is_a_link_is_not_followed(published):
    theirs = published.with_name("theirs")
    theirs.write_text("precious")
    beside(published, "lock").unlink(missing_ok=True)
    beside(published, "lock").symlink_to(theirs)
    assert exits.ends(lambda: refresh.refresh(published, plan(grid(40)), INSTANT)) == exits.DAMAGED
    assert theirs.read_text() == "precious"


@pytest.mark.parametrize("named", ["/", "/tmp/what?.duckdb", "~nobody_here/x.duckdb"])
def test_a_place_where_no_store_can_be_is_said_by_job_and_page(named, monkeypatch):
    monkeypatch.setenv("LNMEASURE_STORE", named)
    ended = run("-m", "jobs.refresh", "--grid", "page", LNMEASURE_STORE=named)
    assert ended.returncode == exits.BAD_ARGUMENTS
    assert repr(named) in ended.stderr
    assert "Traceback" not in ended.stderr
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "main.py"), default_timeout=60).run()
    assert not app.exception
    assert repr(named) in app.error[0].value


def test_few_open_files_are_said_and_are_no_damage(published):
    command = f"ulimit -n 20; exec {sys.executable} -m jobs.refresh --grid page --workers 2"
    environment = os.environ | {"LNMEASURE_STORE": str(published)}
    ended = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == exits.BUSY, ended.stderr
    assert "ulimit -a" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_reader_of_a_jobs_output_that_goes_away_is_no_error(published):
    command = f"{sys.executable} -m jobs.status | true; echo ${{PIPESTATUS[0]}}"
    environment = os.environ | {"LNMEASURE_STORE": str(published), "PYTHONUNBUFFERED": "1"}
    ended = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "0\n"
    assert "Traceback" not in ended.stderr


def test_a_page_recovers_when_what_was_wrong_has_passed_without_a_new_store(store_at, monkeypatch):
    shutil.copyfile(SHIPPED, store_at)
    shutil.copyfile(beside(SHIPPED, "record"), beside(store_at, "record"))
    good = beside(store_at, "record").read_text()
    beside(store_at, "record").write_text(re.sub(r'"blake2b": "..', '"blake2b": "xx', good))
    follower = Follower(store_at)
    with pytest.raises(StoreError, match="damaged"):
        follower.current()
    beside(store_at, "record").write_text(good)
    with pytest.raises(StoreError, match="damaged"):
        follower.current()
    monkeypatch.setattr("lnmeasure.store.follow.AGAIN_S", 0.0)
    store, trouble = follower.current()
    assert trouble is None
    assert store.meta["generation"] == Store(SHIPPED).meta["generation"]
