"""An engineer adds a placement outside the package: README's example, measured, tested and shown, in real processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import grids
from lnmeasure.core.initialise import INITS
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.store.reader import Store

ROOT = Path(__file__).resolve().parents[1]
GRID = """
from jobs.grids import Setting, Setup

GRIDS = {
    "halves": lambda: [
        Setting(setup=Setup(name="small", width=16, heads=2, seq_len=5, batch=3, vocab=11), placement=name,
                init="xavier_uniform", depth=depth, seed=0) for name in ("half", "pre") for depth in (1, 4)
    ]
}
"""


def example() -> str:
    """The module that README shows."""
    (block,) = re.findall(r"```python\n(# half\.py\n.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    return block


@pytest.fixture
def plugin(tmp_path):
    """A folder with README's module, which a small grid is added to."""
    (tmp_path / "half.py").write_text(example() + GRID, encoding="utf-8")
    return tmp_path


def run(folder, *command):
    """A command in a process of its own that finds what lies in the folder."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_takes_about_eight_lines():
    assert len([line for line in example().splitlines() if line.strip()]) <= 9


def test_what_readme_shows_is_measured_by_workers_and_described_in_the_store(plugin, store_at):
    ended = run(plugin, "jobs.refresh", "--plugin", "half", "--grid", "halves")
    assert ended.returncode == 0, ended.stderr
    store = Store(store_at)
    half, pre = (
        store.query(f"SELECT * FROM by_block WHERE placement = '{name}' AND depth = 4") for name in ("half", "pre")
    )
    assert len(half) == len(pre) == 4
    assert (half.branch_rms_ffn < 0.6 * pre.branch_rms_ffn).all()
    (row,) = store.query("SELECT equation, source FROM placement_info WHERE name = 'half'").itertuples()
    assert row.equation.startswith("x <- x + F(N(x)) / 2")
    assert run(plugin, "jobs.refresh", "--grid", "page", "--budget", "1s").returncode == 0
    assert len(Store(store_at).query("SELECT 1 FROM placement_info WHERE name = 'half'")) == 1


def test_a_placement_of_a_plugin_belongs_to_the_catalogue_and_passes_the_generic_tests(plugin, store_at):
    planned = run(plugin, "jobs.refresh", "--plugin", "half", "--grid", "catalogue", "--dry-run")
    assert f"{len(grids.catalogue()) // len(PLACEMENTS) * (len(PLACEMENTS) + 1)} cells planned" in planned.stdout
    tests = ["tests/test_together.py", "tests/test_known_answers.py", "tests/test_measure.py", "tests/test_plain.py"]
    ended = run(plugin, "pytest", "--plugin", "half", "-q", "-p", "no:cacheprovider", "-k", "half", *tests)
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", ended.stdout)[1]) > 100


def test_a_package_that_offers_the_entry_point_is_found_unasked(plugin, store_at):
    offered = plugin / "half-1.0.dist-info"
    offered.mkdir()
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1.0\n", encoding="utf-8")
    (offered / "entry_points.txt").write_text("[lnmeasure.plugins]\nhalf = half\n", encoding="utf-8")
    assert run(plugin, "jobs.refresh", "--grid", "halves").returncode == 0
    assert len(Store(store_at).query("SELECT 1 FROM by_cell WHERE placement = 'half'")) == 2


def test_a_plugin_that_is_not_there_ends_with_a_sentence(plugin):
    ended = run(plugin, "jobs.refresh", "--plugin", "nowhere.at_all", "--dry-run")
    assert ended.returncode == 2
    assert "plugin is 'nowhere.at_all': there is no such module" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_grids_name_what_core_registers_in_its_order():
    assert (list(PLACEMENTS), list(INITS)) == (grids.PLACEMENTS, grids.INITS)
