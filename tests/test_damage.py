"""Damaged, foreign, older and newer files are said with the way out, and nothing that breaks a rule is published."""

import json
import random
import re
import shutil

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from jobs import exits, refresh, verify
from jobs.grids import Plan
from lnmeasure.store.building import Building
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside
from lnmeasure.store.reader import SHIPPED, Store
from lnmeasure.store.record import Publication, add_to_record, publication_of
from tests.cells import grid, instant
from tests.conftest import ROOT
from tests.crashing import to_schema_1
from tests.faults import INSTANT, damage
from tests.small import plan
from tests.test_jobs import run
from tests.test_store import publish


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
    if fault not in (stale_log, directory):
        assert json.loads((published.parent / "last_refresh.json").read_text())["exit_code"] == exits.DAMAGED


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


def test_a_store_of_an_older_schema_is_read_and_a_refresh_brings_it_up_without_measuring(
    of_schema_1, capsys, monkeypatch
):
    monkeypatch.setattr(refresh.predictions, "lacking", lambda unpredicted: [])  # minutes, for every setting shipped
    store_at, before = of_schema_1, of_schema_1.read_bytes()
    theirs = duckdb.connect(store_at, read_only=True)
    columns = ", ".join(name for name, *_ in theirs.execute("DESCRIBE by_block").fetchall())
    ordered = f"SELECT {columns} FROM by_block ORDER BY ALL"
    expected = theirs.execute(ordered).fetchall()
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
    assert fresh.execute(ordered).fetchall() == expected
    assert verify.verify(store_at, sample=0) == 0


def test_the_shipped_store_is_as_published():
    assert verify.verify(SHIPPED, sample=0) == 0


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("DELETE FROM setup", "setup that is not described"),
        ("UPDATE block_reading SET block = 999 WHERE block = 1", "outside their stack"),
        ("UPDATE block_reading SET stack = 'bogus'", "outside their stack"),
        ("UPDATE cell SET sigma = -1", "negative"),
        ("UPDATE cell SET sigma = 'nan'", "not finite"),
        ("UPDATE cell SET loss = NULL", "null and their cell says ok"),
        ("DELETE FROM t_quantile WHERE n > 5", "quantiles"),
        ("DELETE FROM block_reading WHERE block = 2", "lack blocks"),
        ("INSERT INTO cell SELECT * FROM cell LIMIT 1", "twice"),
        (
            "INSERT INTO failure SELECT key, setup, placement, init, depth, seed, 1, 'x', measured_at, 1 FROM cell",
            "failed",
        ),
        ("DELETE FROM cell WHERE seed = 0", "belong to no cell"),
    ],
)
def test_what_breaks_a_rule_is_never_published(broken, words, published):
    before = published.read_bytes()
    building = Building(published)
    building._connection.execute(broken)
    with pytest.raises(StoreError, match=words):
        building.publish("0", None)
    building.close()
    assert published.read_bytes() == before


@pytest.mark.parametrize(
    ("redefined", "name"),
    [
        ("CREATE OR REPLACE VIEW by_depth AS SELECT * REPLACE (1.0 AS sigma_mean) FROM ({by_depth})", "by_depth"),
        ("CREATE OR REPLACE MACRO mean_of(x) AS max(x)", "mean_of"),
    ],
)
def test_verify_finds_views_and_macros_that_are_not_the_schemas(redefined, name, published):
    published.chmod(0o644)
    with duckdb.connect(published) as theirs:
        view = theirs.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'by_depth'").fetchone()[0]
        theirs.execute(redefined.format(by_depth=view.split(" AS ", 1)[1].rstrip(";")))
    add_to_record(published, recorded_again(published))
    assert exits.ends(lambda: verify.verify(published, sample=0)) == exits.DAMAGED
    assert Store(published).broken_invariants() == [f"{name} is not what the schema says"]


def recorded_again(path) -> Publication:
    """What a record would say of a file, by somebody who wants it to pass."""
    with duckdb.connect(path, read_only=True) as connection:
        return publication_of(path, 1, connection)


def test_verify_finds_an_older_file_put_in_the_stores_place(published):
    first = published.read_bytes()
    assert refresh.refresh(published, plan(grid(40)), INSTANT) == 0
    damage(published, first)
    with pytest.raises(StoreError, match="an older file was put in its place"):
        verify.verify(published, sample=0)
