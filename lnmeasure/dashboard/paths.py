"""Charts of the page Gradient paths: heat maps of Jacobians, the toy, the scalar decay, and rank collapse."""

import math
from collections.abc import Sequence

import altair as alt
import pandas as pd

from lnmeasure.dashboard.charts import HEIGHT, block_axis, log_axis
from lnmeasure.dashboard.theme import NEUTRAL, PLACEMENTS

HEAT_HEIGHT = 360
SIZE, SHARE = "size", "identity_share"
MEASURES = {SIZE: "size of the Jacobian", SHARE: "share of the identity in it"}
_TITLES = {SIZE: "size, 1 = identity", SHARE: "share, 1 = identity"}


def heat_scale(rows: pd.DataFrame, measure: str) -> alt.Scale:
    """The colours of all heat maps of a page: logarithmic for sizes, from 0 to 1 for shares."""
    if measure == SHARE:
        return alt.Scale(scheme="viridis", domain=[0, 1])
    sizes = rows["size"][rows["size"] > 0]
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (0.1, 10.0)
    return alt.Scale(scheme="viridis", type="log", domain=[min(low, 0.999), max(high, 1.001)])


def heat_map(rows: pd.DataFrame, measure: str, scale: alt.Scale) -> alt.Chart:
    """One placement's Jacobians: from which block to which. Columns: those of path_sizes.sql."""
    last = int(rows["to_block"].max())
    step = max(1, last // 6)
    ticks = [0, *range(step, last + 1, step)]
    axis = alt.Axis(values=ticks, labelOverlap="greedy", grid=False)
    tooltip = [
        alt.Tooltip("from_block:O", title="from block"),
        alt.Tooltip("to_block:O", title="to block"),
        alt.Tooltip("size:Q", format=".4g"),
        alt.Tooltip("size_se:Q", title="standard error", format=".2g"),
        alt.Tooltip("identity_share:Q", title="identity share", format=".4g"),
        alt.Tooltip("trace:Q", title="trace / Td", format=".4g"),
        alt.Tooltip("n_seeds:Q", title="seeds"),
    ]
    return (
        alt.Chart(rows)
        .mark_rect()
        .encode(
            x=alt.X("from_block:O", axis=axis, title="from the output of block"),
            y=alt.Y("to_block:O", axis=axis, title="to that of block", sort="descending"),
            color=alt.Color(f"{measure}:Q", scale=scale, legend=_legend(measure, scale)),
            tooltip=tooltip,
        )
        .properties(height=HEAT_HEIGHT)
    )


def _legend(measure: str, scale: alt.Scale) -> alt.Legend:
    ticks = alt.Undefined
    if measure == SIZE:
        low, high = scale.domain
        ticks = [tick for tick in (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000) if low <= tick <= high]
    return alt.Legend(title=_TITLES[measure], orient="bottom", format="~g", values=ticks, labelOverlap="greedy")


def stream_gradients(rows: pd.DataFrame, column: str, title: str) -> alt.LayerChart:
    """A line per placement and depth over the share of the stack. Columns: placement, depth, block, and the column."""
    data = rows.assign(
        place=rows["block"] / rows["depth"], label=[PLACEMENTS[name].label for name in rows["placement"]]
    )
    y = log_axis(data, (column,), title)
    looks = PLACEMENTS.of(data["placement"]).values()
    colour = alt.Color(
        "label:N",
        scale=alt.Scale(domain=[look.label for look in looks], range=[look.colour for look in looks]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    dash = alt.StrokeDash("depth:O", legend=alt.Legend(title="depth L", orient="bottom", symbolStrokeColor=NEUTRAL))
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("place:Q", title="block / L", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y(f"{column}:Q", scale=y["scale"], axis=y["axis"]),
            color=colour,
            strokeDash=dash,
            tooltip=["label:N", "depth:O", "block:Q", alt.Tooltip(f"{column}:Q", format=".4g"), "n_seeds:Q"],
        )
    )
    return alt.layer(line).properties(height=HEIGHT)


def toy_chart(rows: pd.DataFrame) -> alt.LayerChart:
    """Gradient against block, exact solid and simplified dashed. Columns: placement, backward, block, size."""
    data = rows.assign(label=[PLACEMENTS[name].label for name in rows["placement"]])
    looks = PLACEMENTS.of(data["placement"]).values()
    colour = alt.Color(
        "label:N",
        scale=alt.Scale(domain=[look.label for look in looks], range=[look.colour for look in looks]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    dash = alt.StrokeDash(
        "backward:N",
        scale=alt.Scale(domain=["exact", "simplified"], range=[[1, 0], [6, 4]]),
        legend=alt.Legend(title=None, orient="bottom", symbolStrokeColor=NEUTRAL),
    )
    y = log_axis(data, ("size",), "||g|| / sqrt(d)")
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=block_axis(data, room=0),
            y=alt.Y("size:Q", scale=y["scale"], axis=y["axis"]),
            color=colour,
            strokeDash=dash,
            tooltip=["label:N", "backward:N", "block:Q", alt.Tooltip("size:Q", format=".4g")],
        )
    )
    return alt.layer(line).properties(height=HEIGHT)


def decay_chart(factors: Sequence[float], measured: pd.DataFrame, blocks: int = 100) -> alt.LayerChart:
    """f^n for some factors, depths 12 and 24 marked, and the whole stack's Jacobian where it is measured.

    measured has columns placement, depth, size.
    """
    curves = pd.DataFrame(
        [{"factor": f"f = {f:g}", "n": n, "left": f**n} for f in factors for n in range(1, blocks + 1)]
    )
    points = measured[measured["size"] > 0]
    points = points.assign(label=[PLACEMENTS[name].label for name in points["placement"]])
    both = pd.concat([curves["left"], points["size"]])
    y = log_axis(pd.DataFrame({"left": both}), ("left",), "what is left of the gradient")
    x = alt.X("n:Q", title="blocks n", scale=alt.Scale(domain=[0, blocks]))
    marked = alt.Chart(pd.DataFrame({"n": [12, 24]})).mark_rule(color=NEUTRAL, strokeDash=[2, 3]).encode(x=x)
    line = (
        alt.Chart(curves)
        .mark_line(color=NEUTRAL, strokeWidth=2)
        .encode(
            x=x, y=alt.Y("left:Q", scale=y["scale"], axis=y["axis"]), detail="factor:N", tooltip=["factor:N", "n:Q"]
        )
    )
    ends = curves[curves["n"] == blocks]
    names = (
        alt.Chart(ends)
        .mark_text(color=NEUTRAL, align="right", dy=-8)
        .encode(x=x, y=alt.Y("left:Q", scale=y["scale"]), text="factor:N")
    )
    looks = PLACEMENTS.of(points["placement"]).values()
    labels = [look.label for look in looks]
    dots = (
        alt.Chart(points)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=alt.X("depth:Q"),
            y=alt.Y("size:Q", scale=y["scale"]),
            color=alt.Color(
                "label:N",
                scale=alt.Scale(domain=labels, range=[look.colour for look in looks]),
                legend=alt.Legend(title=None, orient="bottom", columns=4),
            ),
            shape=alt.Shape(
                "label:N", scale=alt.Scale(domain=labels, range=[look.marker for look in looks]), legend=None
            ),
            tooltip=["label:N", "depth:Q", alt.Tooltip("size:Q", format=".4g")],
        )
    )
    return alt.layer(marked, line, names, dots).properties(height=HEIGHT)


def collapse_charts(rows: pd.DataFrame) -> tuple[alt.LayerChart, alt.LayerChart]:
    """Token cosine, and gradients of W_Q against block; seeds in which they underflow are marked below.

    Columns: those of rank_collapse.sql.
    """
    data = rows.assign(label=[PLACEMENTS[name].label for name in rows["placement"]])
    looks = PLACEMENTS.of(data["placement"]).values()
    colour = alt.Color(
        "label:N",
        scale=alt.Scale(domain=[look.label for look in looks], range=[look.colour for look in looks]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    base = alt.Chart(data).encode(x=block_axis(data, room=0), color=colour)
    cosine = base.mark_line(strokeWidth=2.5).encode(
        y=alt.Y("token_cosine:Q", title="mean cosine between tokens", scale=alt.Scale(domain=[0, 1])),
        tooltip=["label:N", "block:Q", alt.Tooltip("token_cosine:Q", format=".4g"), "n_seeds:Q"],
    )
    y = log_axis(data, ("grad_wq",), "||dL/dW_Q||")
    gradient = base.mark_line(strokeWidth=2.5).encode(
        y=alt.Y("grad_wq:Q", scale=y["scale"], axis=y["axis"]),
        tooltip=["label:N", "block:Q", alt.Tooltip("grad_wq:Q", format=".4g"), alt.Tooltip("grad_wk:Q", format=".4g")],
    )
    lost = data[data["n_underflow"] > 0].assign(floor=_floor(data))
    marks = (
        alt.Chart(lost)
        .mark_point(shape="cross", angle=45, size=50)
        .encode(
            x=alt.X("block:Q"),
            y=alt.Y("floor:Q", scale=y["scale"]),
            color=colour,
            tooltip=["label:N", "block:Q", alt.Tooltip("n_underflow:Q", title="seeds below float32's range")],
        )
    )
    return alt.layer(cosine).properties(height=HEIGHT), alt.layer(gradient, marks).properties(height=HEIGHT)


def _floor(data: pd.DataFrame) -> float:
    positive = data["grad_wq"][data["grad_wq"] > 0]
    return float(positive.min()) if len(positive) else math.nan
