"""python -m tests.run_small SEEDS: a real refresh of the small grid, for tests that kill it."""

import sys

from jobs.grids import GRIDS
from jobs.refresh import main
from tests.small import small_grid

if __name__ == "__main__":
    GRIDS["small"] = lambda: small_grid(depths=(1, 2, 3), seeds=range(int(sys.argv[1])))
    sys.exit(main(["--grid", "small", "--workers", "2"]))
