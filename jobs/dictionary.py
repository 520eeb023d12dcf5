"""python -m jobs.dictionary: the data dictionary, written from the comments the store carries."""

import sys

from lnmeasure.store.errors import StoreError
from lnmeasure.store.reader import Store, store_path

_HEAD = """# The store: data dictionary

`lnmeasure.duckdb` is one DuckDB file (storage v1.2.0: any DuckDB from 1.2 on opens it). The views below are the
contract with analysts; the tables beneath may change. The file is never written to, only replaced as a whole. Open it
read-only, and copy it first if you keep a connection for long:

```python
import duckdb

store = duckdb.connect("data/lnmeasure.duckdb", read_only=True)
store.sql("SELECT depth, placement, sigma_mean, top_grad_w2_mean FROM by_depth WHERE init = 'xavier_uniform'").show()
```

The same text is in the file: `SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'by_depth'`. Units
stand in brackets, [1] is a pure number. Written by `python -m jobs.dictionary > data/README.md`.
"""


def dictionary(store: Store) -> str:
    """The dictionary as markdown: a section per view, a row per column."""
    parts = [_HEAD]
    for view, columns in store.ask("dictionary").groupby("view"):
        parts.append(f"\n## {view}\n\n{columns.view_comment.iloc[0]}\n\n| column | type | meaning |\n|---|---|---|\n")
        parts += [f"| {row.column} | {row.type} | {row.comment} |\n" for row in columns.itertuples()]
    return "".join(parts)


if __name__ == "__main__":
    try:
        print(dictionary(Store(store_path())), end="")
    except StoreError as error:
        sys.exit(str(error))
