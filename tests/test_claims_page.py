"""Claims on the page: verdicts in three ways, filters, evidence, links that Home takes, and answers by the readings."""

import json
import shutil

import duckdb
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from lnmeasure.claims.judging import VERDICTS
from lnmeasure.dashboard import claims as views
from lnmeasure.pages import verdicts
from lnmeasure.store.reader import SHIPPED, Store
from tests.conftest import ROOT
from tests.test_page import text

PAGES = ROOT / "lnmeasure" / "pages"
DEPTHS = (1, 8, 24, 64)
LINKS = sorted({verdicts.address_of(claim) for claim in verdicts.ledger().values() if claim.link})


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(SHIPPED)


@pytest.fixture
def page(monkeypatch):
    """A page at an address, after its first run."""
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)

    def run(script: str = "claims.py", **address: str) -> AppTest:
        app = AppTest.from_file(str(PAGES / script), default_timeout=60)
        app.query_params.update(address)
        app.run()
        assert not app.exception
        return app

    return run


def html(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def test_every_verdict_has_a_word_a_shape_and_a_colour_of_its_own():
    assert set(views.MARKS) == set(VERDICTS)
    assert len({mark.shape for mark in views.MARKS.values()}) == len(VERDICTS)
    assert len({mark.colour for mark in views.MARKS.values()}) == len(VERDICTS)


def test_the_page_shows_every_claim_with_its_verdict_and_reason(page, store):
    app = page()
    shown = html(app)
    for row in store.ask("claims").itertuples():
        assert views.card_html(row) in shown
    assert not app.warning
    assert "35 claims" in text(app)


def test_filters_and_search_leave_what_they_say_and_go_into_the_address(page, store):
    app = page(verdict="contradicted", source="Xiong et al. 2020")
    rows = store.ask("claims")
    wanted = rows[(rows.verdict == "contradicted") & rows.source.str.startswith("Xiong")].claim_id.tolist()
    assert app.selectbox(key="claims_claim").options == [f"{name} · ✕ contradicted" for name in wanted]
    app.text_input(key="claims_search").set_value("ALL parameters").run()
    assert [option.split(" ")[0] for option in app.selectbox(key="claims_claim").options] == ["X8"]
    assert app.query_params["claim"] in ("X8", ["X8"])
    app.text_input(key="claims_search").set_value("no such words").run()
    assert not app.exception
    assert "No claim is like that" in text(app)


@pytest.mark.parametrize("address", [{"verdict": "true"}, {"source": "<b>"}, {"claim": "X99"}, {"depth": "3"}])
def test_what_an_address_has_and_the_page_does_not_is_said(page, address):
    (warning,) = page(**address).warning
    assert "was dropped" in warning.value


def test_a_claim_shows_its_evidence_its_query_and_what_would_change_our_mind(page, store):
    for row in store.ask("claims").itertuples():
        app = page(claim=row.claim_id)
        assert verdicts.ledger()[row.claim_id].revise.split("'")[0] in html(app)
        codes = [element.value for element in app.code]
        assert (row.evidence_sql in codes) != pd.isna(row.evidence_sql)
        assert "nan" not in codes
        parts = store.ask("claim_parts")
        assert len(app.dataframe[0].value) == (parts.claim_id == row.claim_id).sum()


@pytest.mark.parametrize("link", LINKS)
def test_a_claim_links_to_an_address_that_its_page_takes_whole(page, link):
    target, query = link.removeprefix("./").split("?")
    script = "placements.py" if target == "placements" else "home.py"
    wanted = dict(pair.split("=") for pair in query.split("&"))
    app = page(script if target else "main.py", **wanted)
    assert not app.warning
    for name, value in wanted.items():
        assert app.query_params[name] in (value, [value])


@pytest.mark.parametrize("depth", DEPTHS)
def test_homes_panel_shows_what_fails_at_this_depth_and_is_furthest_off(page, store, depth):
    app = page("main.py", depth=str(depth))
    found = verdicts.strongest(store.ask("claims"), store.ask("claim_parts"), depth)
    assert len(found) == verdicts.MOST
    assert len({row.source for row in found}) == verdicts.MOST
    for row in found:
        assert views.card_html(row) in html(app)
        assert row.why
        assert ", L = " not in row.part or row.part.endswith(f", L = {depth}")
        region = verdicts.region_of(row.claim_id, row.part)
        assert not region.low <= row.estimate <= region.high


def test_home_without_verdicts_says_so_in_its_panel(monkeypatch, tmp_path):
    copied = tmp_path / "store.duckdb"
    shutil.copyfile(SHIPPED, copied)
    with duckdb.connect(copied) as connection:
        connection.execute("DELETE FROM verdict; DELETE FROM evidence")
    monkeypatch.setenv("LNMEASURE_STORE", str(copied))
    app = AppTest.from_file(str(PAGES / "main.py"), default_timeout=60).run()
    assert not app.exception
    assert any("part ways" in element.value for element in app.subheader)
    assert any("have not been judged" in element.value for element in app.info)


def test_a_store_without_verdicts_says_how_to_get_them(published):
    app = AppTest.from_file(str(PAGES / "claims.py"), default_timeout=60).run()
    assert not app.exception
    assert "make refresh" in app.info[0].value


@pytest.mark.parametrize("given", ["holds", "does not hold"])
def test_a_reader_answers_first_and_the_readings_second(page, store, given):
    app = page()
    rows = {row.claim_id: row for row in store.ask("claims").itertuples()}
    asked = [radio.key.removeprefix("answer_") for radio in app.radio]
    assert {"S0-gpt2", "Q-A", "Q-B", "Q-C", "Q-D", "F1", "F2"} == set(asked)
    assert "readings agree" not in html(app)
    for name in asked:
        app.radio(key=f"answer_{name}").set_value(given)
    app.run()
    shown = html(app)
    for name in asked:
        settled = rows[name].verdict in ("reproduced", "contradicted")
        right = (rows[name].verdict == "reproduced") == (given == "holds")
        said = views.agreement(rows[name], given == "holds")
        assert said in shown
        assert said.startswith("✓") == (settled and right)


def test_the_answer_is_the_verdicts_and_turns_with_it():
    for verdict, holds in (("reproduced", True), ("contradicted", False)):
        row = next(pd.DataFrame({"verdict": [verdict]}).itertuples())
        assert "agree with" in views.agreement(row, holds)
        assert "disagree" in views.agreement(row, not holds)


def test_every_evidence_that_is_measured_has_a_chart_of_both(store):
    rows = store.ask("claim_parts").dropna(subset=["estimate"])
    for row in rows.itertuples():
        region = verdicts.region_of(row.claim_id, row.part)
        chart = views.against_chart(row, region).to_dict()
        assert "NaN" not in json.dumps(chart)
        assert "Infinity" not in json.dumps(chart)
        low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
        assert low < min(row.low, region.target)
        assert high > max(row.high, region.target)
