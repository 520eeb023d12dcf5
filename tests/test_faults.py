"""Full disks, damaged files, strange clients, clocks and permissions: said, survived, and nothing overwritten."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from jobs import exits, refresh, verify
from jobs.grids import Plan
from lnmeasure.store import clock
from lnmeasure.store.building import Building
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside
from lnmeasure.store.reader import SHIPPED, Store, store_path
from tests.cells import WORK, grid, instant
from tests.conftest import ROOT
from tests.crashing import to_schema_1
from tests.small import plan
from tests.test_jobs import run
from tests.test_store import WHO, publish

INSTANT = refresh.Options(workers=1, work=WORK)
NOBODY = 65534


@contextmanager
def small_disk(folder, size: str):
    """A file system of a given size, for as long as it is needed. Skips where this machine allows no mounts."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mounts")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def resize(folder, size: str) -> None:
    """Make a small disk larger."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def test_a_disk_full_while_building_ends_with_74_and_a_rerun_goes_on_once_there_is_room(tmp_path, capsys):
    with small_disk(tmp_path / "disk", "24m") as disk:
        path = disk / "lnmeasure.duckdb"
        assert refresh.refresh(path, plan(grid(3)), INSTANT) == 0
        before, ballast = path.read_bytes(), disk / "ballast"
        free = shutil.disk_usage(disk).free
        ballast.write_bytes(bytes(free - len(before) - 300_000))
        many = plan(grid(400, depths=(8,)))
        assert exits.ends(lambda: refresh.refresh(path, many, INSTANT)) == exits.DISK_FULL
        said = capsys.readouterr().err
        assert "is full" in said
        assert "Make room" in said
        assert path.read_bytes() == before
        resize(disk, "200m")
        assert refresh.refresh(path, many, INSTANT) == 0
        assert len(Store(path).query("SELECT 1 FROM by_cell")) == 403


def test_a_disk_full_while_publishing_ends_with_74_keeps_every_cell_and_a_rerun_publishes(tmp_path):
    with small_disk(tmp_path / "disk", "24m") as disk:
        path = disk / "lnmeasure.duckdb"
        publish(path, [instant(setting) for setting in grid(3)])
        before = path.read_bytes()
        building = Building(path)
        building.begin(WHO, planned=200, reused=0)
        for setting in grid(200, depths=(8,)):
            building.add(instant(setting))
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 400_000))
        with pytest.raises(StoreError, match="is full") as raised:
            building.publish("0", None)
        assert raised.value.exit_code == exits.DISK_FULL
        assert path.read_bytes() == before
        assert not beside(path, "publishing").exists()
        building.close()
        (disk / "ballast").unlink()
        assert Building(path).publish("0", None) == 2
        assert len(Store(path).query("SELECT 1 FROM by_cell")) == 203


@pytest.mark.soak
def test_whatever_room_a_disk_leaves_a_refresh_ends_with_0_or_74_and_loses_nothing(tmp_path):
    """From no room at all to enough, in 40 steps: full while starting, committing, copying, checking, recording."""
    ends = []
    for room in range(0, 6_000_000, 150_000):
        with small_disk(tmp_path / f"disk_{room}", "24m") as disk:
            path = disk / "lnmeasure.duckdb"
            assert refresh.refresh(path, plan(grid(3)), INSTANT) == 0
            before = path.read_bytes()
            (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - room))
            ends.append(exits.ends(lambda: refresh.refresh(path, plan(grid(100, depths=(8,))), INSTANT)))  # noqa: B023
            assert ends[-1] in (0, exits.DISK_FULL)
            assert ends[-1] == 0 or path.read_bytes() == before
            resize(disk, "200m")
            assert refresh.refresh(path, plan(grid(100, depths=(8,))), INSTANT) == 0
            assert len(Store(path).query("SELECT 1 FROM by_cell")) == 103
            assert verify.verify(path, sample=0) == 0
    print(f"\n{len(ends)} disks: {ends.count(exits.DISK_FULL)} full, {ends.count(0)} with room enough")
    assert {0, exits.DISK_FULL} == set(ends)


@pytest.fixture
def published(store_at):
    """A published store with a few cells."""
    publish(store_at, [instant(setting) for setting in grid(30)])
    return store_at


def damage(path, content: bytes) -> None:
    """Put other bytes in a file's place."""
    path.unlink()
    path.write_bytes(content)


def test_verify_finds_every_one_of_200_flipped_bits_and_20_truncations(published, capsys):
    good, chance = published.read_bytes(), random.Random(3)
    assert verify.verify(published, sample=0) == 0
    for _ in range(200):
        position = chance.randrange(len(good))
        flipped = bytes([good[position] ^ (1 << chance.randrange(8))])
        damage(published, good[:position] + flipped + good[position + 1 :])
        assert exits.ends(lambda: verify.verify(published, sample=0)) == exits.DAMAGED, f"bit flipped at {position}"
    for _ in range(20):
        damage(published, good[: chance.randrange(len(good))])
        assert exits.ends(lambda: verify.verify(published, sample=0)) == exits.DAMAGED
    damage(published, good)
    assert verify.verify(published, sample=0) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_verify_finds_a_store_that_somebody_wrote_in(published):
    published.chmod(0o644)
    duckdb.connect(published).execute("UPDATE cell SET sigma = 1.5 WHERE seed = 0").close()
    with pytest.raises(StoreError, match="somebody wrote in it"):
        verify.verify(published, sample=0)
    beside(published, "record").unlink()
    with pytest.raises(StoreError, match="no record"):
        verify.verify(published, sample=0)


def test_verify_holds_rows_and_hashes_of_every_table_against_the_record(published):
    good = beside(published, "record").read_text()
    for wrong in (good.replace('"cell": [30, ', '"cell": [31, '), re.sub(r'("meta": \[1, )\d+', r"\g<1>5", good)):
        assert wrong != good
        beside(published, "record").write_text(wrong)
        with pytest.raises(StoreError, match="not what was published"):
            verify.verify(published, sample=0)
    beside(published, "record").write_text(good.replace(f'"{duckdb.__version__}"', '"0.0"'))
    assert verify.verify(published, sample=0) == 0, "rows as another DuckDB hashes them cannot be compared"


def test_verify_finds_a_cell_whose_key_is_not_its_settings(store_at):
    cell = instant(grid(1)[0])
    publish(store_at, [cell])
    building = Building(store_at)
    building._connection.execute("UPDATE cell SET key = 'ffff'")
    building.publish("0", None)
    with pytest.raises(StoreError, match="has key ffff"):
        verify.verify(store_at, sample=0)


def test_verify_measures_a_sample_again_and_says_where_code_and_store_disagree(store_at, capsys):
    from jobs.worker import measure_cell
    from tests.small import small_grid

    publish(store_at, [measure_cell(setting) for setting in small_grid(seeds=(0,))])
    assert verify.verify(store_at, sample=3, seed=1) == 0
    assert "differ by 0.0e+00" in capsys.readouterr().out
    building = Building(store_at)
    building._connection.execute("UPDATE cell SET sigma = sigma * 1.001")
    building.publish("0", None)
    assert verify.verify(store_at, sample=3, seed=1) == exits.SOME_FAILED
    assert "differ by 1.0e-03" in capsys.readouterr().out


def truncated(path):
    damage(path, path.read_bytes()[: path.stat().st_size // 2])


def one_byte_flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damage(path, bytes(content))


def stale_log(path):
    beside(path, "wal").write_bytes(b"left by another file")


def foreign_file(path):
    path.unlink()
    duckdb.connect(path).execute("CREATE TABLE theirs (x INTEGER)").close()


def newer_schema(path):
    path.chmod(0o644)
    duckdb.connect(path).execute("UPDATE meta SET schema_version = 99").close()


def empty_file(path):
    damage(path, b"")


def directory(path):
    path.unlink()
    path.mkdir()


FAULTS = {
    truncated: ("damaged or foreign", "git checkout"),
    one_byte_flipped: ("", "git checkout"),
    stale_log: ("lies beside the published store", "mv lnmeasure.duckdb.wal"),
    foreign_file: ("not an lnmeasure store", "LNMEASURE_STORE"),
    newer_schema: ("schema version 99", "Install the lnmeasure"),
    empty_file: ("", "git checkout"),
    directory: ("not a file", "LNMEASURE_STORE"),
}


def everything_in(folder) -> dict[str, bytes | None]:
    """Every file of a folder with its content, but for the lock and the word a refresh leaves."""
    own = (".lock", "last_refresh.json")
    return {p.name: p.read_bytes() if p.is_file() else None for p in folder.iterdir() if not p.name.endswith(own)}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_job_and_page_say_what_is_wrong_and_the_way_out_and_overwrite_nothing(fault, published):
    fault(published)
    words, way_out = FAULTS[fault]
    before = everything_in(published.parent)
    for job in (["jobs.refresh", "--grid", "page"], ["jobs.verify", "--sample", "0"]):
        ended = run("-m", *job, LNMEASURE_STORE=str(published))
        assert ended.returncode == exits.DAMAGED, ended.stderr
        assert words in ended.stderr
        assert way_out in ended.stderr
        assert "Traceback" not in ended.stderr
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "main.py"), default_timeout=60).run()
    assert not app.exception
    said = " ".join(element.value for element in (*app.error, *app.warning))
    assert words in said
    assert way_out in said
    assert str(published.parent) not in said, "a visitor reads the server's folder"
    assert everything_in(published.parent) == before
    if fault is not stale_log:
        assert json.loads((published.parent / "last_refresh.json").read_text())["exit_code"] == exits.DAMAGED


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


@pytest.fixture
def of_schema_1(store_at):
    """The shipped readings as schema 1 kept them."""
    shutil.copyfile(SHIPPED, store_at)
    to_schema_1(store_at)
    return store_at


def test_an_older_schema_alone_is_reason_enough_to_publish(of_schema_1):
    assert refresh.refresh(of_schema_1, Plan(grids={}), INSTANT) == 0
    new = Store(of_schema_1)
    assert (new.older, new.meta["generation"]) == (False, Store(SHIPPED).meta["generation"] + 1)


def test_a_store_of_an_older_schema_is_read_and_a_refresh_brings_it_up_without_measuring(of_schema_1, capsys):
    store_at, before = of_schema_1, of_schema_1.read_bytes()
    theirs = duckdb.connect(store_at, read_only=True)
    expected = theirs.execute("SELECT * FROM by_block ORDER BY ALL").fetchall()
    theirs.close()
    store = Store(store_at)
    assert store.older
    assert store.meta["schema_version"] > 1
    assert len(store.ask("readouts", setup="page", init="gpt2", depth=8)) == 2
    assert store_at.read_bytes() == before
    assert refresh.main(["--grid", "page"]) == 0
    assert "older schema" in capsys.readouterr().out
    new = Store(store_at)
    assert (new.older, new.meta["generation"]) == (False, Store(SHIPPED).meta["generation"] + 1)
    assert new.query("SELECT sum(ok) AS n FROM coverage").n.tolist() == [660]
    fresh = duckdb.connect(store_at, read_only=True)
    assert fresh.execute("SELECT * FROM by_block ORDER BY ALL").fetchall() == expected
    assert verify.verify(store_at, sample=0) == 0


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


def test_the_shipped_store_is_as_published():
    assert verify.verify(SHIPPED, sample=0) == 0


def test_a_followed_store_that_turns_bad_leaves_the_old_one_in_service_with_a_notice(store_at):
    shutil.copyfile(SHIPPED, store_at)
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "main.py"), default_timeout=60).run()
    assert not app.warning
    generation = Store(store_at).meta["generation"]
    damage(store_at, b"half a copy")
    app.run()
    assert not app.exception
    assert not app.error
    (notice,) = app.warning
    assert f"generation {generation}, the last that could be read" in notice.value
    assert len(app.get("vega_lite_chart")) == 4
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
