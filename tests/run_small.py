"""python -m tests.run_small SEEDS: a real refresh of the small grid, for tests that kill it."""

import sys

from jobs.refresh import refresh
from lnmeasure.store.reader import store_path
from tests.small import small_grid

if __name__ == "__main__":
    sys.exit(refresh(store_path(), small_grid(depths=(1, 2, 3), seeds=range(int(sys.argv[1]))), workers=2))
