"""One contract, two engines: whatever measures, the same cells come back, and the same faults have the same end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from jobs import cluster as dask_engine
from jobs import crew, engines, exits, refresh
from jobs.attempts import KILLED
from jobs.batches import in_batches
from jobs.pool import Work
from jobs.stop import Stop
from jobs.worker import measure_cell, tie_to
from lnmeasure.core.measure import share_prefix
from lnmeasure.store.building import Building
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store
from tests import cells
from tests.clusters import TRIM, Cluster, refresh_beating
from tests.conftest import ROOT
from tests.faults import INSTANT
from tests.journal import journalled
from tests.killing import alive, descendants, read_copy
from tests.nursery import Nursery, wait_until
from tests.small import plan, small_grid

NOBODY_S = 5
"""Seconds within which nobody measures any more."""
TUNED = {"DASK_CONFIG": str(ROOT / "jobs" / "schedule" / "dask.yaml")}
GRID = cells.grid(12, depths=(1,))


@pytest.fixture(scope="module")
def clusters(tmp_path_factory) -> Iterator[list[Cluster]]:
    """Those begun so far; the last one is in use."""
    begun: list[Cluster] = []
    yield begun
    for one in begun:
        one.close()


@pytest.fixture
def cluster(clusters, tmp_path_factory) -> Cluster:
    """Two workers, of which only the first lacks our dask.yaml. A worker that was killed has come again."""
    if not clusters or clusters[-1].lost():
        clusters.append(Cluster(tmp_path_factory.mktemp("dask") / "cluster"))
        clusters[-1].add_worker()
        clusters[-1].add_worker(**TUNED)
    clusters[-1].wait_for_workers(2)
    return clusters[-1]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory) -> Iterator[Nursery]:
    """Forks the drivers that get signals."""
    one = Nursery(tmp_path_factory.mktemp("nursery") / "log")
    yield one
    one.close()


@pytest.fixture(params=engines.ENGINES)
def scheduler(request) -> str | None:
    """The cluster's address, or None for the local engine."""
    return request.getfixturevalue("cluster").address if request.param == "dask" else None


def options(scheduler: str | None, cell) -> refresh.Options:
    """A refresh by an engine, of cells that may have a fault."""
    engine = engines.dask(scheduler) if scheduler else engines.LOCAL
    return refresh.Options(workers=2, work=Work(cell=cell, prepare=tie_to), engine=engine)


def rows(path, what: str = "SELECT 1 FROM by_cell") -> list[dict]:
    """The store's answer as rows."""
    return Store(path).query(what).to_dict("records")


def test_workers_read_the_same_bits_as_measuring_inline(scheduler):
    asked = small_grid(depths=(1, 2), seeds=(0,))
    engine = options(scheduler, measure_cell).engine
    batches = in_batches(asked, set(), lambda s: share_prefix(s.placement, s.init), lambda _: False)
    assert len(batches) < len(asked), "some depths are measured together"
    read = {cell.setting: cell.readings for cell in engine.measure_all(batches, [], 2, Stop())}
    assert read == {setting: measure_cell(setting).readings for setting in asked}


def test_a_cell_that_raises_fails_with_its_reason_and_the_rest_go_on(scheduler, store_at):
    ended = refresh.refresh(store_at, plan(GRID), options(scheduler, cells.fails_at_seed_1))
    assert ended == exits.SOME_FAILED
    assert len(rows(store_at)) == 11
    failures = rows(store_at, "SELECT seed, attempts, reason FROM failure")
    assert failures == [{"seed": 1, "attempts": 1, "reason": "ArithmeticError: no luck with seed 1"}]


def test_a_cell_whose_worker_is_killed_is_tried_again_alone_and_measured(scheduler, store_at, tmp_path):
    once = partial(cells.kills_its_process_once, tmp_path)
    journal = tmp_path / "journal"
    noted = partial(journalled, cell=once, journal=journal)
    assert refresh.refresh(store_at, plan(GRID), options(scheduler, noted)) == 0
    assert len(rows(store_at)) == 12
    assert rows(store_at, "SELECT 1 FROM failure") == []
    assert len(begun_at(journal, GRID[1].key)) == 2
    for key in (setting.key for setting in GRID):
        for again in begun_at(journal, key)[1:]:
            assert journal.read_text().splitlines()[again + 1] == f"ended {key}", "another cell was measured meanwhile"


def begun_at(journal: Path, key: str) -> list[int]:
    """The lines of the journal at which a cell was begun."""
    return [number for number, line in enumerate(journal.read_text().splitlines()) if line == f"began {key}"]


def test_a_cell_that_kills_its_worker_each_time_is_given_up_after_two_and_the_rest_go_on(scheduler, store_at, tmp_path):
    journal = tmp_path / "journal"
    noted = partial(journalled, cell=cells.kills_its_process_at_seed_1, journal=journal)
    assert refresh.refresh(store_at, plan(GRID), options(scheduler, noted)) == exits.SOME_FAILED
    assert len(rows(store_at)) == 11
    failures = rows(store_at, "SELECT seed, attempts, reason FROM failure")
    assert failures == [{"seed": 1, "attempts": 2, "reason": KILLED}]
    assert len(begun_at(journal, GRID[1].key)) == 2, "the cluster tried it on its own account"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_a_signal_to_the_driver_nobody_measures_and_what_is_finished_is_kept(
    sent, scheduler, nursery, store_at, tmp_path, request
):
    driver = nursery.start(refresh_beating, store_at, tmp_path, 12, scheduler)
    wait_until(lambda: at_work(store_at, tmp_path), f"two workers measure, three cells are kept\n{nursery.said()}")
    family = descendants(driver)
    os.kill(driver, sent)
    code = nursery.ended(10)
    assert code == (-sent if sent == signal.SIGKILL else 128 + sent), nursery.said()
    if scheduler:
        wait_until(request.getfixturevalue("cluster").idle, "the cluster has no task of ours", NOBODY_S)
    wait_until(lambda: not any(map(alive, family)), "every process of the driver is gone", NOBODY_S)
    assert "Traceback" not in nursery.said()
    assert store_at.exists() == (sent != signal.SIGKILL), "a signal that can be answered publishes what is finished"
    kept = Building(store_at)
    assert kept.measured_keys() == {setting.key for setting in GRID[:3]}
    kept.close()


def at_work(store: Path, folder: Path) -> bool:
    """Whether two workers take their minute, and the three cells that take none are committed."""
    building = beside(store, "building")
    return len(list(folder.glob("beat_*"))) >= 2 and len(read_copy(building)[1]) == 3


def test_a_worker_without_our_dask_yaml_is_said_once(cluster, store_at, capfd):
    trims = cluster.client.run(lambda: os.environ.get(TRIM))
    assert sorted(trims.values()) == ["1073741824", "65536"]
    assert refresh.refresh(store_at, plan(GRID), options(cluster.address, cells.instant)) == 0
    (slow,) = [address for address, trim in trims.items() if trim == "65536"]
    assert capfd.readouterr().err.count(f"Worker {slow} has no {TRIM} of 1 GiB") == 1


def test_workers_that_are_not_as_the_driver_are_refused_with_the_way_out_and_live_on(
    tmp_path, store_at, capfd, monkeypatch
):
    other = 'import lnmeasure.records\nlnmeasure.records.MEASUREMENT_VERSION = "another"\n'
    without, differing = shadow(tmp_path, "jobs.py", ""), shadow(tmp_path, "sitecustomize.py", other)
    alone = Cluster(tmp_path / "cluster", PYTHONPATH=without)
    asked = replace(options(alone.address, cells.instant), workers=1)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(crew, "PATIENCE_S", 0.5)
            assert exits.ends(lambda: refresh.refresh(store_at, plan(GRID), asked)) == exits.BUSY
        assert "has had no worker for" in capfd.readouterr().err
        for path in (without, differing):
            alone.add_worker("--no-nanny", PYTHONPATH=path)
        alone.wait_for_workers(2)
        assert exits.ends(lambda: refresh.refresh(store_at, plan(GRID), asked)) == exits.BUSY
        assert len(alone.client.nthreads()) == 2
        said = capfd.readouterr().err
        assert "refused: it answers ModuleNotFoundError: No module named 'jobs.on_cluster'" in said
        assert "MEASUREMENT_VERSION another" in said
        assert "install the same checkout" in said
        assert "None of the cluster's workers can measure" in said
        assert "Traceback" not in said
    finally:
        alone.close()


def shadow(folder: Path, name: str, content: str) -> str:
    """A PYTHONPATH that has a file before everything of ours."""
    place = folder / name.removesuffix(".py")
    place.mkdir()
    (place / name).write_text(content, encoding="utf-8")
    return f"{place}{os.pathsep}{ROOT}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "dask"], "needs the cluster's address"),
        (["--scheduler", "tcp://127.0.0.1:8786"], "is for --engine dask"),
        (["--engine", "dask", "--scheduler", "nowhere"], "it must be HOST:PORT"),
        (["--engine", "dask", "--scheduler", "http://127.0.0.1:8786"], "it must be HOST:PORT"),
        (["--engine", "dask", "--scheduler", "127.0.0.1:99999"], "it must be HOST:PORT"),
        (["--engine", "ray"], "invalid choice"),
    ],
)
def test_arguments_that_name_no_cluster_are_said(arguments, words, capsys):
    try:
        code = refresh.main(["--grid", "page", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == exits.BAD_ARGUMENTS
    assert words in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("listens", [True, False])
def test_a_scheduler_that_does_not_answer_ends_the_refresh_with_75(listens, store_at, capfd, monkeypatch):
    monkeypatch.setattr(dask_engine, "ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = "{}:{}".format(*mute.getsockname())
        if not listens:
            mute.close()
        asked = options(address, cells.instant)
        assert exits.ends(lambda: refresh.refresh(store_at, plan(GRID), asked)) == exits.BUSY
    (said,) = capfd.readouterr().err.splitlines()
    assert f"No Dask scheduler answers at {address}" in said
    assert not list(store_at.parent.glob("*building*"))


WITHOUT_DASK = (
    "import sys; from jobs import refresh; assert 'distributed' not in sys.modules; sys.modules['distributed'] = None; "
    "assert refresh.main(['--dry-run']) == 0; sys.exit(refresh.main(['--engine', 'dask', '--scheduler', 'here:1']))"
)


def test_dask_is_needed_only_when_it_is_asked_for(store_at):
    command = [sys.executable, "-c", WITHOUT_DASK]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == exits.BAD_ARGUMENTS
    (said,) = ended.stderr.splitlines()
    assert said.startswith("--engine dask needs distributed, which is not installed: pip install")


def test_a_lost_scheduler_ends_the_refresh_with_75_keeps_what_is_finished_and_the_local_engine_goes_on(
    cluster, nursery, store_at, tmp_path
):
    nursery.start(refresh_beating, store_at, tmp_path, 12, cluster.address)
    wait_until(lambda: at_work(store_at, tmp_path), f"two workers measure, three cells are kept\n{nursery.said()}")
    cluster.lose_scheduler()
    assert nursery.ended(20) == exits.BUSY, nursery.said()
    assert "scheduler is lost" in nursery.said()
    assert "Traceback" not in nursery.said()
    assert not store_at.exists(), "what is finished waits in the building file"
    building = Building(store_at)
    assert building.measured_keys() == {setting.key for setting in GRID[:3]}
    building.close()
    assert refresh.refresh(store_at, plan(GRID), INSTANT) == 0
    assert len(rows(store_at)) == 12
    assert not beside(store_at, "building").exists()
