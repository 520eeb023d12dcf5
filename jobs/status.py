"""python -m jobs.status: which store this is, and what its grids still lack."""

import argparse
import sys
from pathlib import Path

from jobs.grids import GRIDS
from jobs.refresh import missing_from
from lnmeasure.store.errors import StoreError, StoreMissing
from lnmeasure.store.reader import Store, store_path

COMPLETE, INCOMPLETE = 0, 1


def main(arguments: list[str] | None = None) -> int:
    """Print the status. Exit codes: 0, with --check 1 where cells are missing, 76 where the store cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m jobs.status", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 where cells are missing")
    options = parser.parse_args(arguments)
    try:
        lacking = report(store_path())
    except StoreError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return INCOMPLETE if lacking and options.check else COMPLETE


def report(path: Path) -> int:
    """Print generation and coverage of the store at path. How many cells of all grids it lacks."""
    try:
        meta = Store(path).meta
        print(f"{path.name}: generation {meta['generation']}, published {meta['published_at']:%Y-%m-%d %H:%M} UTC")
    except StoreMissing:
        print(f"{path.name}: not there yet")
    lacking = 0
    for name, grid in GRIDS.items():
        planned = grid()
        missing = len(missing_from(path, planned))
        print(f"grid {name}: {len(planned) - missing} of {len(planned)} cells")
        lacking += missing
    return lacking


if __name__ == "__main__":
    sys.exit(main())
