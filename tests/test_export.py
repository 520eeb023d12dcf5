"""What is exported is what the views answer, every bit of it; queries for analysts run as they stand."""

import re

import duckdb
import pandas as pd
import pyarrow.parquet
import pytest

from jobs import export
from lnmeasure.store.comments import VIEWS
from lnmeasure.store.reader import SHIPPED, Store, examples
from tests.conftest import ROOT

README = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)


def test_every_view_is_exported_as_parquet_and_csv_with_its_comments(tmp_path, monkeypatch):
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    assert export.main([str(tmp_path / "new" / "folder")]) == 0
    store = Store(SHIPPED)
    for view in VIEWS:
        expected = store.query(f"SELECT * FROM {view} ORDER BY ALL")
        file = tmp_path / "new" / "folder" / f"lnmeasure_g{store.meta['generation']}_{view}"
        parquet = duckdb.sql(f"SELECT * FROM '{file}.parquet' ORDER BY ALL").df()
        assert_same(parquet, expected)
        written = pyarrow.parquet.read_schema(f"{file}.parquet")
        assert {field.name: field.metadata[b"comment"].decode() for field in written} == store.comments(view)
        if len(expected):
            types = {row.column_name: row.column_type for row in store.query(f"DESCRIBE {view}").itertuples()}
            rows = duckdb.read_csv(f"{file}.csv", dtype=types).order("ALL").df()
            assert_same(rows, expected)
        else:
            header = open(f"{file}.csv", encoding="utf-8").read().strip()  # noqa: SIM115
            assert header.replace('"', "").split(",") == list(expected.columns)


def assert_same(one, other):
    """Equal but for the last digits of sums: DuckDB's threads add them up in any order."""
    pd.testing.assert_frame_equal(one, other, check_dtype=False, check_exact=False, rtol=1e-9, atol=1e-12)


def test_a_chosen_view_alone_is_exported_and_no_draft_stays(tmp_path, monkeypatch):
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    assert export.main([str(tmp_path), "--view", "slope", "--format", "csv"]) == 0
    (file,) = tmp_path.iterdir()
    assert file.name.endswith("_slope.csv")


def test_an_export_into_a_place_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert export.main([str(tmp_path / "file")]) == 2
    assert "File exists" in capsys.readouterr().err


@pytest.mark.parametrize("query", EXAMPLES, ids=list(examples()))
def test_each_example_of_the_dictionary_is_one_select_that_answers_in_a_plain_client(query):
    assert query.startswith("-- one row per")
    assert [statement.type for statement in duckdb.extract_statements(query)] == [duckdb.StatementType.SELECT]
    client = duckdb.connect(SHIPPED, read_only=True)
    rows = client.execute(query).fetchall()
    client.close()
    assert len(rows) > 0


def test_the_dictionary_has_ten_examples_all_different():
    assert len(set(EXAMPLES)) == 10
