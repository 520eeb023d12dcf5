"""A full disk is said, harms nothing that is published, and is got over once there is room."""

import shutil
import subprocess
from contextlib import contextmanager

import pytest

from jobs import exits, refresh, verify
from lnmeasure.store.building import Building
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store
from tests.cells import grid, instant
from tests.faults import INSTANT
from tests.small import plan
from tests.test_store import WHO, publish


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
