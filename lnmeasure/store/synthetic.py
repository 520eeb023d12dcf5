"""A store of invented readings, as large as one likes: what the benchmark asks, and nobody else."""

from importlib.resources import files
from pathlib import Path

import duckdb

from lnmeasure.store.building import Building
from lnmeasure.store.files import beside


def fill(path: Path, rows: int) -> None:
    """Begin a store at path, where none is, with at least so many by_block rows in its building file."""
    Building(path).close()
    script = files("lnmeasure.store").joinpath("synthetic.sql").read_text(encoding="utf-8")
    with duckdb.connect(beside(path, "building")) as connection:
        connection.execute(f"SET VARIABLE rows = {rows:d}")
        connection.execute(script)
