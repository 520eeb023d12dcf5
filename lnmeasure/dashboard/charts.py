"""One pure function per view: a DataFrame becomes a Chart. No data access, no state."""

import math

import altair as alt
import pandas as pd

from lnmeasure.dashboard.theme import INITS, NEUTRAL, PLACEMENTS, Looks

HEIGHT, DEPTH_HEIGHT = 320, 400
SELECTED = "depth"
"""Name of the depth chart's click selection."""

_STEPS = ((1, 2, 3, 5), tuple(range(1, 10)), tuple(n / 10 for n in range(10, 100)))
_FEW = 16
_MANY_DECADES, _MOST_DECADES, _FEWEST_TICKS = 4, 9, 3


def forward_chart(profile: pd.DataFrame) -> alt.LayerChart:
    """Stream rms against block for each placement, with 1.0 marked. Columns: placement, block, mean, low, high."""
    one = pd.DataFrame({"y": [1.0], "text": ["1.0"]})
    rule = alt.Chart(one).mark_rule(color=NEUTRAL, strokeDash=[2, 3]).encode(y="y:Q")
    text = (
        alt.Chart(one).mark_text(color=NEUTRAL, align="left", dx=4, dy=-7).encode(y="y:Q", text="text", x=alt.value(0))
    )
    x = block_axis(profile)
    series = _labelled(profile, "placement", PLACEMENTS, x, _linear("rms per element of the stream"))
    return _sized(alt.layer(rule, text, *series, *predicted(profile, x)))


def backward_chart(profile: pd.DataFrame) -> alt.LayerChart:
    """Gradient of W2 against block, and pre's constant over its stream dashed. Further column: over_stream."""
    x, y = block_axis(profile), _linear("||dL/dW2|| of the block")
    curve = profile.dropna(subset=["over_stream"])
    dashed = (
        alt.Chart(curve)
        .mark_line(color=NEUTRAL, strokeDash=[6, 4], strokeWidth=2.5, point=len(curve) == 1)
        .encode(x=x, y=alt.Y("over_stream:Q"), tooltip=_tooltip("over_stream", "constant / pre-LN stream rms"))
    )
    return _sized(alt.layer(*_labelled(profile, "placement", PLACEMENTS, x, y), dashed, *predicted(profile, x)))


def predicted(data: pd.DataFrame, x: alt.X) -> list[alt.Chart]:
    """A dotted line of the mean-field prediction for each placement that has one. Column: predicted."""
    rows = data.dropna(subset=["predicted"])
    return [
        alt.Chart(rows[rows["placement"] == name])
        .mark_line(color=look.colour, strokeDash=[1, 4], strokeCap="round", strokeWidth=2.5)
        .encode(x=x, y=alt.Y("predicted:Q"), tooltip=_tooltip("predicted", f"{look.label}, predicted"))
        for name, look in PLACEMENTS.items()
        if (rows["placement"] == name).sum() > 1
    ]


def forward_by_init_chart(profile: pd.DataFrame) -> alt.LayerChart:
    """Stream rms of pre against block for each init, on a log axis. Columns: init, block, mean, low, high."""
    y = log_axis(profile, ("mean", "low", "high"), "rms per element of the stream")
    return _sized(alt.layer(*_labelled(profile, "init", INITS, block_axis(profile), y)))


def depth_chart(curve: pd.DataFrame, depth: int) -> alt.LayerChart:
    """Top gradient against depth, log-log, with guide and click selection. Columns: those of depth_curve.sql.

    The click goes to invisible points of one height, one per depth: the nearest is then the nearest in log depth alone.
    """
    depths = sorted(curve["depth"].unique().tolist())
    scale = alt.Scale(type="log", domain=[depths[0] / 1.12, depths[-1] * 2.1], nice=False)
    x = alt.X(
        "depth:Q", scale=scale, axis=alt.Axis(values=_ticks(depths), title="depth L in blocks", labelOverlap="greedy")
    )
    y = log_axis(curve, ("mean", "low", "high", "guide", "predicted"), "||dL/dW2|| of the top block")
    click = alt.selection_point(name=SELECTED, fields=["depth"], on="click", nearest=True, toggle=False, empty=False)
    chosen = alt.Chart(pd.DataFrame({"depth": [depth]})).mark_rule(color=NEUTRAL, strokeWidth=1.5).encode(x=x)
    guide = (
        alt.Chart(curve.dropna(subset=["guide"]))
        .mark_line(color=NEUTRAL, strokeDash=[6, 4], strokeWidth=2)
        .encode(x=x, y=alt.Y("guide:Q"))
    )
    targets = (
        alt.Chart(_at_each_depth(curve))
        .mark_point(size=1, opacity=0)
        .encode(x=x, y=alt.value(DEPTH_HEIGHT / 2), tooltip=["depth:Q", *(f"{n}:N" for n in _labels(curve)), "seeds:Q"])
        .add_params(click)
    )
    series = _labelled(curve, "placement", PLACEMENTS, x, y)
    return _sized(alt.layer(chosen, guide, *series, *predicted(curve, x), targets), height=DEPTH_HEIGHT)


def _ticks(depths: list[int]) -> list[int]:
    """Depths to label on a logarithmic axis: powers of two and three times them, or all where few are such."""
    round_ones = [depth for depth in depths if depth // (depth & -depth) in (1, 3)]
    return round_ones if len(round_ones) > 1 else depths


def _at_each_depth(curve: pd.DataFrame) -> pd.DataFrame:
    """One row per depth with what each placement reads there, as text."""
    texts = [f"{mean:.4g} ({low:.4g} to {high:.4g})" for mean, low, high in curve[["mean", "low", "high"]].to_numpy()]
    named = curve.assign(text=texts, label=[PLACEMENTS[name].label for name in curve["placement"]])
    wide = named.pivot_table(index="depth", columns="label", values="text", aggfunc="first")
    return wide.assign(seeds=curve.groupby("depth")["n_seeds"].min()).reset_index()


def _labels(curve: pd.DataFrame) -> list[str]:
    return [look.label for look in PLACEMENTS.of(curve["placement"]).values()]


def _labelled(data: pd.DataFrame, name: str, looks: Looks, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A series per value of a column, with a label at the line's end."""
    named = data.assign(series=[looks[value].label for value in data[name]])
    ends = _end_labels(named, x.shorthand.split(":")[0], x, y, colours(named, name, looks))
    return [*series(data, name, looks, x, y), ends]


def colours(data: pd.DataFrame, name: str, looks: Looks) -> alt.Color:
    """The colour of each series."""
    present = looks.of(data[name]).values()
    scale = alt.Scale(domain=[look.label for look in present], range=[look.colour for look in present])
    return alt.Color("series:N", scale=scale, legend=None)


def series(data: pd.DataFrame, name: str, looks: Looks, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Interval (a band, and bars where few), line and markers, per value of a column."""
    position = x.shorthand.split(":")[0]
    data = data.assign(series=[looks[value].label for value in data[name]])
    present = looks.of(data[name]).values()
    labels = [look.label for look in present]
    shape = alt.Shape("series:N", scale=alt.Scale(domain=labels, range=[look.marker for look in present]), legend=None)
    dash = alt.StrokeDash(
        "series:N", scale=alt.Scale(domain=labels, range=[look.dash for look in present]), legend=None
    )
    base = alt.Chart(data).encode(x=x, color=colours(data, name, looks))
    low = alt.Y("low:Q", scale=y["scale"], axis=y["axis"])
    few = data[position].nunique() <= _FEW
    band = base.mark_area(opacity=0.25).encode(y=low, y2="high:Q")
    bars = base.mark_rule(opacity=float(few)).encode(y=low, y2="high:Q")
    line = base.mark_line(strokeWidth=2.5).encode(y=y, strokeDash=dash)
    points = base.mark_point(filled=True, size=60 if few else 22, opacity=1).encode(
        y=y, shape=shape, tooltip=_interval_tooltip(position)
    )
    return [band, bars, line, points]


def _end_labels(data: pd.DataFrame, position: str, x: alt.X, y: alt.Y, colour: alt.Color) -> alt.LayerChart:
    """The name of each series at its last point: two beside it, pushed apart; more, above it."""
    ends = data.loc[data.groupby("series")[position].idxmax()].sort_values("mean", ascending=False)
    pair = len(ends) == 2
    layers = [
        alt.Chart(ends.iloc[[i]])
        .mark_text(
            align="left" if pair else "right",
            dx=9 if pair else 0,
            dy=(-6, 6)[i] if pair else -12,
            fontSize=13,
            fontWeight="bold",
        )
        .encode(x=x, y=y, text="series:N", color=colour)
        for i in range(len(ends))
    ]
    return alt.layer(*layers)


def block_axis(profile: pd.DataFrame, room: float = 0.18) -> alt.X:
    """Blocks from 1 to the last, and room for labels beyond it, as a part of the axis."""
    last = int(profile["block"].max())
    step = max(1, math.ceil(last / 8))
    ticks = sorted({1, last, *range(step, last + 1, step)} - {last - 1 if last > 8 else 0})
    scale = alt.Scale(domain=[0.5, last + 0.5 + room * last], nice=False)
    return alt.X("block:Q", scale=scale, axis=alt.Axis(values=ticks, format="d", title="block, 1 = bottom"))


def _linear(title: str) -> alt.Y:
    return alt.Y("mean:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=title, tickCount=5))


def log_axis(data: pd.DataFrame, columns: tuple[str, ...], title: str) -> alt.Y:
    """A log axis over the positive values of some columns: explicit domain and ticks."""
    values = data[list(columns)].to_numpy(dtype=float).ravel()
    values = values[values > 0]
    low, high = (values.min() / 1.15, values.max() * 1.15) if len(values) else (0.1, 10.0)
    axis = alt.Axis(title=title, values=_log_ticks(low, high), format="~g", labelOverlap="greedy")
    return alt.Y("mean:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=axis)


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high: three or more, as few to a decade as give that."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if len(decades) > _MANY_DECADES:
        decades, choices = decades[:: math.ceil(len(decades) / _MOST_DECADES)], ((1,),)
    else:
        choices = _STEPS
    for steps in choices:
        ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _FEWEST_TICKS:
            break
    return ticks


def _interval_tooltip(position: str) -> list[alt.Tooltip]:
    names = {"mean": "mean", "low": "95 % from", "high": "95 % to"}
    numbers = [alt.Tooltip(f"{column}:Q", title=title, format=".4g") for column, title in names.items()]
    return [alt.Tooltip(f"{position}:Q"), *numbers, alt.Tooltip("n_seeds:Q", title="seeds")]


def _tooltip(column: str, title: str) -> list[alt.Tooltip]:
    return [alt.Tooltip("block:Q"), alt.Tooltip(f"{column}:Q", title=title, format=".4g")]


def _sized(chart: alt.LayerChart, height: int = HEIGHT) -> alt.LayerChart:
    return chart.properties(height=height)
