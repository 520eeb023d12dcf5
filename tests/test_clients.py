"""The published file in the DuckDB clients that analysts have. Long: each client is installed for it."""

import json
import os
import subprocess
import sys

import pytest

from lnmeasure.store.comments import VIEWS
from lnmeasure.store.reader import SHIPPED, Store, examples

ANSWER = """
import duckdb, json, sys
client = duckdb.connect(sys.argv[1], read_only=True)
counts = {view: client.execute(f"SELECT count(*) FROM {view}").fetchone()[0] for view in json.loads(sys.argv[2])}
for view in counts:
    client.execute(f"SELECT * FROM {view}").fetchall()
for query in json.loads(sys.argv[3]):
    client.execute(query).fetchall()
comments = client.execute("SELECT count(*) FROM duckdb_columns() WHERE comment IS NOT NULL").fetchone()[0]
print(json.dumps([duckdb.__version__, counts, comments]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("version", ["1.2.2", "1.4.4", "1.5.5"])
def test_every_view_and_example_answers_in_an_older_client_as_in_ours(version, tmp_path):
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*install, f"duckdb=={version}"], check=True)
    arguments = [str(SHIPPED), json.dumps(list(VIEWS)), json.dumps(list(examples().values()))]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", ANSWER, *arguments],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    used, counts, comments = json.loads(said.stdout)
    assert used == version
    store = Store(SHIPPED)
    assert counts == {view: len(store.query(f"SELECT 1 FROM {view}")) for view in VIEWS}
    assert comments >= len(store.ask("dictionary"))
    print(f"\nDuckDB {version}: {sum(counts.values())} rows of {len(counts)} views, {len(examples())} examples")
