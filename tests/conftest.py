"""What the tests share: the shipped store, a small store made by the real job, and a browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from jobs import plugins
from lnmeasure.store.reader import SHIPPED, Store

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes of many threads wait for each other
ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

settings.register_profile("house", deadline=None)  # a busy machine is slow, which says nothing about the code
settings.load_profile("house")


def pytest_addoption(parser):
    """--soak runs the long tests, --plugin has the generic tests hold over what a module registers too."""
    parser.addoption("--soak", action="store_true", help="run the long tests too")
    parser.addoption("--plugin", action="append", default=[], help="module that registers placements or inits")


def pytest_configure(config):
    """Plugins are loaded before tests are made for every registered placement and init."""
    plugins.load(config.getoption("--plugin"))


ALONE = ("test_kills", "test_engines", "test_interruptions", "test_readers", "test_full_disk", "test_browser")
"""Files whose tests start, kill and time processes: never two of them at once."""


def pytest_collection_modifyitems(config, items):
    """Browser tests need Chromium: without it they are skipped, saying how to get it, and fail under CI.

    Where tests are run by several processes a file's stay together, and those of ALONE in one process.
    """
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("alone" if name in ALONE else name))
        if item.get_closest_marker("browser") and not CHROMIUM and os.environ.get("CI") != "true":
            item.add_marker(pytest.mark.skip(reason="no Chromium: install it with 'apt-get install chromium'"))
        if item.get_closest_marker("soak") and not config.getoption("--soak"):
            item.add_marker(pytest.mark.skip(reason="long: 'make soak' runs it"))


@pytest.fixture(autouse=True)
def _main_stays():
    """AppTest makes its page the process's main module, which a worker spawned later would run as well."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def shipped() -> Store:
    """The store in data/, whatever LNMEASURE_STORE says."""
    return Store(SHIPPED)


@pytest.fixture
def store_at(tmp_path, monkeypatch) -> Path:
    """A path where no store is yet, which LNMEASURE_STORE names."""
    path = tmp_path / "lnmeasure.duckdb"
    monkeypatch.setenv("LNMEASURE_STORE", str(path))
    return path


@pytest.fixture
def published(store_at):
    """A published store with a few cells."""
    from tests.cells import grid, instant
    from tests.test_store import publish

    publish(store_at, [instant(setting) for setting in grid(30)])
    return store_at
