"""python -m jobs.dictionary: the data dictionary, written from the comments the store carries."""

import argparse
import sys

from jobs.exits import DONE, ends
from lnmeasure.store.reader import Store, examples, store_path

_HEAD = """# The store: data dictionary

`lnmeasure.duckdb` is one DuckDB file (storage v1.2.0: any DuckDB from 1.2 on opens it). The views below are the
contract with analysts; the tables beneath may change. The file is never written to, only replaced as a whole. Open it
read-only, and copy it first if you keep a connection for long:

```python
import duckdb

store = duckdb.connect("data/lnmeasure.duckdb", read_only=True)
store.sql("SELECT depth, placement, sigma_mean, top_grad_w2_mean FROM by_depth WHERE init = 'xavier_uniform'").show()
```

`lnmeasure.duckdb.record` holds size and digest of what was published; `python -m jobs.verify` compares. `python -m
jobs.export FOLDER` writes every view as Parquet and CSV. The text below is in the file too, as comments on views and
columns. Units stand in brackets, [1] is a pure number. Written by `python -m jobs.dictionary > data/README.md`.

## Ten queries to begin with
"""


def dictionary(store: Store) -> str:
    """The dictionary as markdown: the example queries, then a section per view with a row per column."""
    parts = [_HEAD, *(f"\n```sql\n{text}```\n" for text in examples().values())]
    for view, columns in store.ask("dictionary").groupby("view"):
        parts.append(f"\n## {view}\n\n{columns.view_comment.iloc[0]}\n\n| column | type | meaning |\n|---|---|---|\n")
        parts += [f"| {row.column} | {row.type} | {row.comment} |\n" for row in columns.itertuples()]
    return "".join(parts)


def main() -> int:
    """Print the dictionary. Exit codes: 0, 2 bad arguments, 76 store damaged."""
    argparse.ArgumentParser(prog="python -m jobs.dictionary", description=__doc__).parse_args()
    print(dictionary(Store(store_path())), end="")
    return DONE


if __name__ == "__main__":
    sys.exit(ends(main))
