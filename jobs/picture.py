"""python -m jobs.picture FILE.svg: the README's picture, rendered from the store."""

import sys
from pathlib import Path

from jobs.exits import DONE, ends
from lnmeasure.dashboard import prose
from lnmeasure.dashboard.charts import depth_chart
from lnmeasure.store.reader import Store, store_path

SETUP, INIT, DEPTH = "page", "xavier_uniform", 64


def caption(store: Store) -> list[str]:
    """What the picture shows and where it comes from, in two lines."""
    readouts = prose.by_name(store.ask("readouts", setup=SETUP, init=INIT, depth=DEPTH), "placement")
    if "pre" not in readouts:
        raise ValueError(f"The store has no readings of setup {SETUP}, init {INIT}, depth {DEPTH}. Run 'make refresh'.")
    pre = readouts["pre"]
    factor = prose.between(pre.ratio, pre.ratio_low, pre.ratio_high)
    return [
        f"At {DEPTH} blocks pre-LN's is smaller by a factor of {factor}. Dashed: 1/sqrt(L).",
        f"Mean over {pre.n_seeds} seeds with 95 % interval, setup {SETUP}, init {INIT}, "
        f"store generation {store.meta['generation']}",
    ]


def draw(store: Store, path: Path) -> None:
    """Render the depth chart of the store to an SVG file, on white."""
    curve = store.ask("depth_curve", setup=SETUP, init=INIT)
    title = {"text": "Gradient on the top block's second FFN matrix", "subtitle": caption(store), "anchor": "start"}
    chart = depth_chart(curve, DEPTH).properties(width=640, height=340, title=title, background="white")
    chart.configure_title(fontSize=17, subtitleFontSize=12, subtitleColor="#555", offset=14).save(path)


def main() -> int:
    """Draw the file that the command line names. Exit codes: 0, 2 bad arguments, 76 store damaged."""
    if len(sys.argv) != 2 or Path(sys.argv[1]).suffix != ".svg":
        raise ValueError("usage: python -m jobs.picture FILE.svg")
    draw(Store(store_path()), Path(sys.argv[1]))
    return DONE


if __name__ == "__main__":
    sys.exit(ends(main))
