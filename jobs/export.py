"""python -m jobs.export FOLDER: every contract view as Parquet and CSV, named by the store's generation."""

import argparse
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from jobs.exits import DONE, ends
from lnmeasure.store.comments import VIEWS
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store, store_path

FORMATS = ("parquet", "csv")


def main(arguments: list[str] | None = None) -> int:
    """Export. Exit codes: 0 done, 2 bad arguments, 74 disk full, 76 store damaged or missing."""
    parser = argparse.ArgumentParser(prog="python -m jobs.export", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go; it is made if it is not there")
    chosen = {"nargs": "+", "action": "extend"}
    parser.add_argument("--view", **chosen, choices=VIEWS, metavar="VIEW", help=f"of {', '.join(VIEWS)}; default: all")
    parser.add_argument("--format", **chosen, choices=FORMATS, help="default: both")
    options = parser.parse_args(arguments)
    return ends(
        lambda: export(Store(store_path()), options.folder, options.view or [*VIEWS], options.format or [*FORMATS])
    )


def export(store: Store, folder: Path, views: list[str], formats: list[str]) -> int:
    """Write the views into the folder, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for view in views:
        for ending in formats:
            file = folder / f"lnmeasure_g{store.meta['generation']}_{view}.{ending}"
            rows = _write(store, view, file)
            print(f"{file}: {rows} rows")
    return DONE


def _write(store: Store, view: str, file: Path) -> int:
    draft = beside(file, "new")
    batches = store.batches(view)
    schema = _commented(batches.schema, store.comments(view))
    try:
        rows = 0
        with _writer(draft, file.suffix, schema) as writer:
            for batch in batches:
                rows += batch.num_rows
                writer.write_batch(batch.cast(schema))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _writer(draft: Path, ending: str, schema: pa.Schema) -> pa.csv.CSVWriter | pa.parquet.ParquetWriter:
    return pa.csv.CSVWriter(draft, schema) if ending == ".csv" else pa.parquet.ParquetWriter(draft, schema)


def _commented(schema: pa.Schema, comments: dict[str, str]) -> pa.Schema:
    """The columns with their definitions and units, which Parquet keeps with them."""
    return pa.schema([field.with_metadata({"comment": comments[field.name]}) for field in schema])


if __name__ == "__main__":
    sys.exit(main())
