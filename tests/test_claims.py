"""Claims are data; their verdicts are computed from a store and say 'untested' where it has no evidence."""

import re
import shutil
from collections import Counter

import duckdb
import pytest

from jobs import claims as job
from lnmeasure.claims.judging import judge
from lnmeasure.claims.ledger import shipped as shipped_claims
from lnmeasure.store.reader import SHIPPED, Store

WORDS = {"reproduced", "contradicted", "outside its assumptions", "about training", "untested"}
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
