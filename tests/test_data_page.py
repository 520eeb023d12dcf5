"""Page Data: the dictionary, queries with their answers, and downloads that hold every row."""

import io

import pandas as pd
import pytest

from lnmeasure.store.reader import examples
from tests.conftest import ROOT

PAGE = str(ROOT / "lnmeasure" / "pages" / "data.py")


@pytest.fixture
def page(published):
    from streamlit.testing.v1 import AppTest

    def open_at(**parameters):
        app = AppTest.from_file(PAGE, default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_at


def test_every_view_is_described_column_by_column(page):
    app = page(view="slope")
    assert not app.exception
    assert app.selectbox(key="data_view").value == "slope"
    for view in app.selectbox(key="data_view").options:
        app.selectbox(key="data_view").set_value(view).run()
        assert not app.exception, view
        columns = app.dataframe[0].value
        assert (columns.comment.str.len() > 3).all(), view


def test_every_query_to_begin_with_has_an_answer(page):
    app = page()
    for name in examples():
        app.selectbox(key="data_query").set_value(name).run()
        assert not app.exception, name


@pytest.mark.parametrize("wrong", ["nonsense", "<script>", "by_depth; DROP TABLE cell", "x" * 10_000])
def test_a_view_that_is_not_there_is_said_and_another_is_shown(page, wrong):
    app = page(view=wrong)
    assert not app.exception
    assert any("was dropped" in element.value for element in app.warning)
    assert app.selectbox(key="data_view").value == "by_depth"


@pytest.mark.parametrize("view", ["by_cell", "by_block", "claim_verdict"])
def test_a_download_holds_every_row_of_its_view(shipped, view, monkeypatch):
    import pyarrow.csv
    import pyarrow.parquet

    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    from lnmeasure.pages import data

    rows = len(shipped.query(f"SELECT 1 FROM {view}"))
    assert len(pd.read_parquet(io.BytesIO(data.whole(shipped, view, pyarrow.parquet.ParquetWriter)))) == rows
    if view != "by_block":
        assert len(pd.read_csv(io.BytesIO(data.whole(shipped, view, pyarrow.csv.CSVWriter)))) == rows
