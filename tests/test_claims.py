"""Claims are data; their verdicts are computed from a store and say 'untested' where it has no evidence."""

import re
import shutil
from collections import Counter
from dataclasses import replace

import duckdb
import pytest

from jobs import claims as job
from jobs import verdicts as verdicts_job
from jobs.grids import Plan
from jobs.refresh import Options, refresh
from jobs.verify import verify
from lnmeasure.claims.judging import judge
from lnmeasure.claims.ledger import shipped as shipped_claims
from lnmeasure.store.invariants import broken_invariants
from lnmeasure.store.reader import SHIPPED, Store

WORDS = {"reproduced", "contradicted", "outside its assumptions", "about training", "untested"}
NOTHING = Plan(grids={})
MINE = """
[[claim]]
id = "mine"
source = "a note"
where = "its second line"
statement = "{statement}"
predicts = "a slope of the top gradient"
assumptions = "setup page"
revise = "another slope"

[[claim.part]]
name = "slope"
placement = "{placement}"
read = "{read}"
take = "slope"
relation = "equals"
value = {value}
margin = 0.1
"""


def verdicts(claims, store):
    return {verdict.claim.id: verdict.verdict for verdict in judge(claims, store.readings)}


def test_every_claim_has_a_verdict_of_the_five_words(shipped):
    found = verdicts(shipped_claims(), shipped)
    assert len(found) == len(shipped_claims()) == 35
    assert set(found.values()) <= WORDS


def test_what_the_shipped_readings_decide(shipped):
    """Pre-LN falls faster than 1/sqrt(L), its gradient is largest at the bottom, and S4's streams are upside down."""
    found = verdicts(shipped_claims(), shipped)
    assert {found[name] for name in ("S0-slope", "X7", "X8", "Q-A", "F1", "F2", "O1", "K1")} == {"contradicted"}
    assert {found[name] for name in ("S0-band", "S0-gpt2", "X1", "X3", "N1", "R1")} == {"reproduced"}
    assert {found[name] for name in ("W1", "X12", "Q-C")} == {"about training"}


def test_without_readings_no_claim_is_decided(tmp_path):
    path = tmp_path / "empty.duckdb"
    shutil.copyfile(SHIPPED, path)
    connection = duckdb.connect(path)
    for table in ("cell", "block_reading", "predicted_value"):
        connection.execute(f"DELETE FROM {table}")
    connection.close()
    assert set(Counter(verdicts(shipped_claims(), Store(path)).values())) <= {"untested", "about training"}


@pytest.mark.parametrize(
    ("statement", "placement", "read", "value", "verdict"),
    [
        ("Post-LN's squared top gradient grows in proportion to depth.", "post", "top_grad_w2^2", 1.0, "contradicted"),
        ("Pre-LN's gradient does not depend on depth.", "pre", "top_grad_w2", 0.0, "contradicted"),
        ("What pre-LN's last norm divides grows as sqrt(L).", "pre", "sigma", 0.5, "reproduced"),
    ],
)
def test_an_analysts_claim_is_judged_by_the_store(statement, placement, read, value, verdict, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(MINE.format(statement=statement, placement=placement, read=read, value=value), encoding="utf-8")
    assert job.main(["check", str(file), "--store", str(SHIPPED)]) == 0
    assert f"mine: {verdict}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "broken",
    ["relation = 'slope_is_about'", "value = 'half'", "colour = 'red'", "placement = 3"],
)
def test_a_malformed_file_is_refused_with_the_line_and_the_reason(broken, tmp_path, capsys):
    key = broken.split(" ")[0]
    lines = MINE.format(statement="x", placement="pre", read="sigma", value=0.5).splitlines()
    kept = [line for line in lines if not line.startswith(f"{key} ")]
    file = tmp_path / "mine.toml"
    file.write_text("\n".join([*kept, broken]), encoding="utf-8")
    assert job.main(["check", str(file), "--store", str(SHIPPED)]) == 2
    said = capsys.readouterr().err
    assert "mine.toml" in said
    assert key in said
    assert any(character.isdigit() for character in said)
    assert "Traceback" not in said


def test_the_claim_that_readme_shows_is_judged(tmp_path, capsys):
    readme = (SHIPPED.parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(example, encoding="utf-8")
    assert job.main(["check", str(file), "--store", str(SHIPPED)]) == 0
    assert "mine: contradicted" in capsys.readouterr().out


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A copy of the shipped store, published once more with its verdicts."""
    path = tmp_path_factory.mktemp("judged") / "lnmeasure.duckdb"
    for ending in ("", ".record"):
        shutil.copyfile(f"{SHIPPED}{ending}", f"{path}{ending}")
    assert refresh(path, NOTHING, Options(judges=True)) == 0
    return path


def test_a_refresh_that_measures_nothing_publishes_verdicts_and_evidence_once(judged):
    first = Store(judged)
    found = first.query("SELECT * FROM claim_verdict")
    assert len(found) == found.claim_id.nunique() == len(shipped_claims())
    assert verdicts(shipped_claims(), first) == dict(zip(found.claim_id, found.verdict, strict=True))
    assert set(first.query("SELECT * FROM claim_evidence").claim_id) == set(found.claim_id)
    assert first.broken_invariants() == []
    assert refresh(judged, NOTHING, Options(judges=True)) == 0
    assert Store(judged).meta["generation"] == first.meta["generation"]


def test_a_claim_that_is_dropped_or_reworded_is_published_again(judged, monkeypatch):
    before = Store(judged)
    assert verdicts_job.are_kept(before)
    first, second, *rest = shipped_claims()
    monkeypatch.setattr(verdicts_job, "shipped", lambda: [replace(second, statement="other"), *rest])
    assert not verdicts_job.are_kept(before)
    assert refresh(judged, NOTHING, Options(judges=True)) == 0
    after = Store(judged).query("SELECT claim_id, statement FROM claim_verdict").set_index("claim_id").statement
    assert first.id not in after
    assert after[second.id] == "other"
    monkeypatch.undo()
    assert refresh(judged, NOTHING, Options(judges=True)) == 0
    assert verdicts_job.are_kept(Store(judged))


def test_the_query_of_the_evidence_gives_the_readings_again(judged):
    store = Store(judged)
    for text in store.query("SELECT evidence_sql FROM claim_verdict").evidence_sql.dropna():
        for one in duckdb.extract_statements(text):
            assert {"seed", "value"} <= set(store.readings(one.query).columns)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("INSERT INTO verdict FROM verdict LIMIT 1", "claims have two verdicts"),
        ("INSERT INTO evidence FROM evidence LIMIT 1", "evidence is there twice"),
        ("UPDATE verdict SET verdict = 'true' WHERE claim_id = 'X9'", "verdicts are none of the five words"),
        ("UPDATE evidence SET claim_id = 'X0' WHERE claim_id = 'X9'", "evidence belongs to no verdict"),
        ("DELETE FROM evidence WHERE claim_id = 'F2'", "verdicts rest on no evidence"),
        ("UPDATE evidence SET holds = true WHERE claim_id = 'F2'", "verdicts say other than their evidence"),
        ("UPDATE evidence SET n_seeds = NULL WHERE claim_id = 'F2'", "evidence has an answer and no readings"),
    ],
)
def test_verdicts_that_break_a_rule_are_found(broken, words, judged, tmp_path):
    path = tmp_path / "broken.duckdb"
    shutil.copyfile(judged, path)
    with duckdb.connect(path) as connection:
        connection.execute(broken)
        assert words in broken_invariants(connection)


def test_verify_judges_again(judged, monkeypatch, capsys):
    assert verify(judged, 0) == 0
    assert "35 verdicts" in capsys.readouterr().out
    monkeypatch.setattr(verdicts_job, "shipped", lambda: shipped_claims()[1:])
    assert verify(judged, 0) == 1
