"""Profiles of several placements: in one chart, and as small multiples beside post and pre. Logarithmic throughout."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from lnmeasure.dashboard.charts import HEIGHT, block_axis, colours, log_axis, predicted, series
from lnmeasure.dashboard.theme import NEUTRAL, PLACEMENTS, REFERENCES

SMALL_HEIGHT = 220
PLOT_HEIGHT = HEIGHT - 75
"""What its axis and margins leave of a chart's height, or a little less: labels then lie no closer than planned."""

SHOWN = ("mean", "low", "high", "predicted")
_GAP = 15
"""Pixels between two labels."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A quantity against block: its columns in placement_profiles.sql and its axis title."""

    quantity: str
    title: str


STREAM = Profile(quantity="stream_rms", title="rms per element of the stream")
GRADIENT = Profile(quantity="grad_w2", title="||dL/dW2|| of the block")


def drawable(profiles: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """What a logarithmic axis can show of a quantity: placement, block, mean, low, high, n_seeds, predicted.

    Rows whose mean is not positive are left out, and predictions that are not. The end of an interval that is not
    positive is drawn where its mean is.
    """
    names = {f"{profile.quantity}_{part}": part for part in ("mean", "low", "high", "predicted")}
    data = profiles[["placement", "block", "n_seeds", *names]].rename(columns=names)
    data = data[data["mean"] > 0]
    return data.assign(
        low=data.low.where(data.low > 0, data["mean"]),
        high=data.high.fillna(data["mean"]),
        predicted=data.predicted.where(data.predicted > 0),
    )


def together(profiles: pd.DataFrame, profile: Profile) -> alt.LayerChart | None:
    """Every placement's profile and its prediction, labelled at its end. None where nothing is positive."""
    data = drawable(profiles, profile)
    if data.empty:
        return None
    x, y = block_axis(data, room=0), log_axis(data, SHOWN, profile.title)
    ends = end_labels(data, y["scale"].domain)
    text = _label_layers(ends, x, y)
    lines = series(data, "placement", PLACEMENTS, x, y)
    return alt.layer(*lines, *predicted(data, x), *text).properties(height=HEIGHT)


def end_labels(data: pd.DataFrame, domain: Sequence[float]) -> pd.DataFrame:
    """The last point of each placement and by how many pixels its label moves so that none lies on another."""
    ends = data.loc[data.groupby("placement").block.idxmax()].sort_values("mean", ascending=False)
    low, high = map(math.log, domain)
    wanted = [PLOT_HEIGHT * (high - math.log(mean)) / (high - low) for mean in ends["mean"]]
    labels = [PLACEMENTS[name].label for name in ends.placement]
    return ends.assign(series=labels, shift=[a - b for a, b in zip(spread(wanted), wanted, strict=True)])


def spread(wanted: Sequence[float], gap: float = _GAP) -> list[float]:
    """Places in the order of those wanted, as near to them as a gap between any two allows, none below the chart."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + gap) if places else place)
    limit = float(PLOT_HEIGHT)
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places


def _label_layers(ends: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    colour = colours(ends, "placement", PLACEMENTS)
    return [
        alt.Chart(ends.iloc[[i]])
        .mark_text(
            align="left", baseline="middle", dx=9, dy=float(ends["shift"].iloc[i]), fontSize=12, fontWeight="bold"
        )
        .encode(x=x, y=y, text="series:N", color=colour)
        for i in range(len(ends))
    ]


def small_multiple(profiles: pd.DataFrame, profile: Profile, placement: str) -> alt.LayerChart | None:
    """One placement's profile, post's and pre's in grey behind it, on axes that all small multiples share."""
    data = drawable(profiles, profile)
    own = data[data.placement == placement]
    if own.empty:
        return None
    x, y = block_axis(data, room=0), log_axis(data, SHOWN, "")
    behind = [
        alt.Chart(data[data.placement == name])
        .mark_line(color=NEUTRAL, strokeDash=dash, strokeWidth=1.5)
        .encode(x=x, y=y)
        for name, dash in zip(REFERENCES, ([1, 0], [5, 3]), strict=True)
        if name != placement
    ]
    own_lines = [*series(own, "placement", PLACEMENTS, x, y), *predicted(own, x)]
    return alt.layer(*behind, *own_lines).properties(height=SMALL_HEIGHT)
