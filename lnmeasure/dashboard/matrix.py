"""The matrix of placements by inits: a number in every cell, coloured about the measure's neutral value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from lnmeasure.dashboard.theme import INITS, PLACEMENTS

SELECTED = "cell"
"""Name of the matrix's click selection."""

BELOW, MIDDLE, ABOVE, INK = "#5CB1EA", "#F2F2F2", "#EB7F49", "#111111"
"""The diverging scale, light enough everywhere for the ink that numbers are written in, in either theme."""

ROW_HEIGHT = 24
WIDEST = 6
"""Inits in one picture: two of them stand side by side, and one under the other where the window is narrow."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a matrix shows: column of the answer, neutral value, and how far from it the colour is full.

    Ratios are coloured by their logarithm, so that full is a factor.
    """

    title: str
    column: str
    neutral: float
    full: float
    ratio: bool = True
    depth_max: int | None = None

    def shade(self, value: float) -> float:
        """Where on the scale a value lies: -1 full below, 0 neutral, 1 full above."""
        place = (
            math.log(value / self.neutral) / math.log(self.full) if self.ratio else (value - self.neutral) / self.full
        )
        return max(-1.0, min(1.0, place))

    def ends(self) -> tuple[str, str]:
        """The values at which the colour is full, as text."""
        if self.ratio:
            return f"1/{self.full:g}", f"{self.full:g}"
        return f"−{self.full:g}", f"{self.full:g}"


MEASURES = {
    "over_post": Measure(title="Top gradient over post-LN's", column="over_post", neutral=1, full=10),
    "slope": Measure(
        title="Slope of the top gradient, L = 2 to 64", column="slope", neutral=0, full=1, ratio=False, depth_max=64
    ),
    "slope_32": Measure(
        title="Slope of the top gradient, L = 2 to 32", column="slope", neutral=0, full=1, ratio=False, depth_max=32
    ),
    "sigma": Measure(title="σ, what the last norm divides by", column="sigma", neutral=1, full=10),
    "bottom_over_top": Measure(title="Bottom gradient over top", column="bottom_over_top", neutral=1, full=10),
}
"""Every measure by its name in the address."""


def matrix_of(readings: pd.DataFrame, slopes: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """A row per cell with value, low, high, shade, and the text in it: a number, or the word for why there is none.

    readings and slopes are the answers of matrix.sql and matrix_slopes.sql.
    """
    table = _with_slopes(readings, slopes, measure.depth_max)
    names = {measure.column: "value", f"{measure.column}_low": "low", f"{measure.column}_high": "high"}
    table = table.rename(columns=names)
    table["row"] = [PLACEMENTS[name].label for name in table.placement]
    measured = table.value > 0 if measure.ratio else table.value.notna()
    rows = list(table.itertuples())
    table["shade"] = [measure.shade(row.value) if ok else None for row, ok in zip(rows, measured, strict=True)]
    table["text"] = [short(r.value, measure) if ok else word(r, measure) for r, ok in zip(rows, measured, strict=True)]
    table["interval"] = [_interval(row, measure) if ok else None for row, ok in zip(rows, measured, strict=True)]
    columns = ["placement", "init", "row", "value", "low", "high", "shade", "text", "interval", "n_seeds"]
    return table[columns].assign(measured=measured)


def _with_slopes(readings: pd.DataFrame, slopes: pd.DataFrame, depth_max: int | None) -> pd.DataFrame:
    fits = slopes[slopes.depth_max == depth_max][["placement", "init", "estimate", "low", "high"]]
    fits = fits.rename(columns={"estimate": "slope", "low": "slope_low", "high": "slope_high"})
    return readings.merge(fits, on=["placement", "init"], how="left")


def short(value: float, measure: Measure) -> str:
    """A value in at most five letters: two digits, and powers of ten where it is far from one."""
    if not measure.ratio:
        return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
    if 0.01 <= value < 999.5:
        return f"{value:.0f}" if value >= 99.5 else f"{value:#.2g}".rstrip(".")
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def word(row: object, measure: Measure) -> str:
    """Why a cell has no number, in a word."""
    if pd.isna(row.n_seeds):
        return "no data"
    if measure.column == "sigma" and not pd.isna(row.top_gradient):
        return "no σ"
    if row.n_beyond:
        return "beyond"
    if row.n_zero:
        return "zero"
    return "no fit" if measure.column == "slope" else "no data"


WORDS = {
    "no data": "not measured (yet)",
    "no σ": "no last norm, so nothing divides",
    "beyond": "a reading beyond the range of float32, in a seed at least",
    "zero": "a gradient of exactly 0, in a seed at least",
    "no fit": "no slope, for a depth of the range is missing, zero or beyond",
}
"""What each word in a cell means."""


def _interval(row: object, measure: Measure) -> str:
    text = f"{row.value:.4g}" if pd.isna(row.low) else f"{row.value:.4g} ({row.low:.4g} to {row.high:.4g})"
    return text.replace("-", "−")


def groups(matrix: pd.DataFrame) -> list[list[str]]:
    """The inits of a matrix in our order, in as few pictures as their width allows, equally many in each."""
    names = list(INITS.of(matrix.init))
    pictures = math.ceil(len(names) / WIDEST)
    size = math.ceil(len(names) / max(pictures, 1))
    return [names[begin : begin + size] for begin in range(0, len(names), size or 1)]


def matrix_chart(matrix: pd.DataFrame, inits: Sequence[str], placement: str, init: str) -> alt.LayerChart:
    """Some inits' columns of a matrix, the chosen cell outlined; a click selects another. Data: that of matrix_of."""
    data = matrix[matrix.init.isin(inits)]
    order = [look.label for look in PLACEMENTS.of(data.placement).values()]
    names = alt.Axis(
        orient="top",
        title=None,
        labelAngle=0,
        labelExpr="split(datum.value, '_')",
        labelOverlap=False,
        labelFlush=False,
        labelFontSize=9,
        domain=False,
    )
    x = alt.X("init:N", sort=list(inits), axis=names, scale=alt.Scale(paddingInner=0.04, paddingOuter=0))
    y = alt.Y(
        "row:N", sort=order, axis=alt.Axis(title=None, labelLimit=200, labelFlush=False, domain=False, ticks=False)
    )
    base = alt.Chart(data).encode(x=x, y=y.scale(paddingInner=0.08, paddingOuter=0))
    layers = [_colours(base), *_texts(base), _outline(base, placement, init), _targets(base)]
    padding = {"left": 2, "right": 12, "top": 4, "bottom": 4}
    return alt.layer(*layers).properties(height=ROW_HEIGHT * len(order), padding=padding)


def _colours(base: alt.Chart) -> alt.Chart:
    scale = alt.Scale(domain=[-1, 0, 1], range=[BELOW, MIDDLE, ABOVE], interpolate="rgb")
    return (
        base.transform_filter("datum.measured").mark_rect().encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    )


def _texts(base: alt.Chart) -> list[alt.Chart]:
    """Numbers in ink on their colour; words, which have none, in the page's own."""
    numbers = base.transform_filter("datum.measured").mark_text(color=INK, fontSize=11)
    words = base.transform_filter("!datum.measured").mark_text(color="currentColor", fontSize=9.5, opacity=0.7)
    return [numbers.encode(text="text:N"), words.encode(text="text:N")]


def _outline(base: alt.Chart, placement: str, init: str) -> alt.Chart:
    chosen = alt.FieldOneOfPredicate(field="placement", oneOf=[placement])
    column = alt.FieldOneOfPredicate(field="init", oneOf=[init])
    outlined = base.transform_filter({"and": [chosen, column]})
    return outlined.mark_rect(filled=False, stroke="currentColor", strokeWidth=2.5)


def _targets(base: alt.Chart) -> alt.Chart:
    """Invisible cells on top of everything, which take the click and say more under the pointer."""
    click = alt.selection_point(name=SELECTED, fields=["placement", "init"], on="click", toggle=False, empty=False)
    shown = {"row": "placement", "init": "init", "text": "in the cell", "interval": "value (95 %)"}
    tooltip = [*(alt.Tooltip(f"{name}:N", title=title) for name, title in shown.items()), alt.Tooltip("n_seeds:Q")]
    return base.mark_rect(opacity=0, cursor="pointer").encode(tooltip=tooltip).add_params(click)


def scale_html(measure: Measure) -> str:
    """The colour scale as a bar, its middle at the neutral value."""
    low, high = measure.ends()
    return (
        f'<div class="ln-scale"><span>{low} or less</span><i style="background: linear-gradient(90deg, {BELOW}, '
        f'{MIDDLE}, {ABOVE})"><b>{measure.neutral:g}</b></i><span>{high} or more</span></div>'
    )
