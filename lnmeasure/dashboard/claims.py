"""Claims as the page shows them: verdicts in word, shape and colour, cards, a small chart. Pure: rows in, views out."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import altair as alt
import pandas as pd

from lnmeasure.dashboard.prose import Row, between, blocks
from lnmeasure.dashboard.theme import AMBER, GREEN, GREY, NEUTRAL, PURPLE, VIOLET

STYLE = """
<style>
.ln-claims {display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1.2rem 2rem;}
.ln-claim {min-width: 0; overflow-wrap: anywhere;}
.ln-claim h4 {font-size: 1rem; font-weight: 700; margin: 0; padding: 0;}
.ln-claim p {margin: 0.15rem 0; font-size: 0.9rem;}
.ln-claim p.source {opacity: 0.8; font-size: 0.8rem;}
.ln-claim dl {display: grid; grid-template-columns: fit-content(7rem) 1fr; gap: 0.1rem 0.7rem;}
.ln-claim dl {font-size: 0.9rem; margin: 0.3rem 0; padding: 0;}
.ln-claim dt {opacity: 0.8; font-weight: 400; margin: 0; padding: 0;}
.ln-claim dd {margin: 0; padding: 0; min-width: 0; font-variant-numeric: tabular-nums;}
.ln-verdict {font-weight: 700; white-space: nowrap;}
</style>
"""
CHART_HEIGHT = 110


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How a verdict is shown beside its word."""

    shape: str
    colour: str


MARKS = {
    "contradicted": Mark(shape="✕", colour=PURPLE),
    "outside its assumptions": Mark(shape="◐", colour=AMBER),
    "reproduced": Mark(shape="✓", colour=GREEN),
    "about training": Mark(shape="△", colour=VIOLET),
    "untested": Mark(shape="○", colour=GREY),
}
"""Verdicts in the order in which a reader meets them."""


@dataclass(frozen=True, kw_only=True)
class Region:
    """What a claim allows: a target, and borders that are infinite where there is none."""

    target: float
    low: float
    high: float

    def overshoot(self, estimate: float) -> float:
        """How far an estimate lies outside, as a share of what is larger, the border or the estimate."""
        border = self.high if estimate > self.high else self.low if estimate < self.low else estimate
        return abs(estimate - border) / max(abs(estimate), abs(border), 1e-300)


def verdict_html(verdict: str) -> str:
    """Shape, word and colour."""
    mark = MARKS[verdict]
    return f'<span class="ln-verdict" style="color:{mark.colour}">{mark.shape} {escape(verdict)}</span>'


def verdict_words(verdict: str) -> str:
    """Shape and word, where no colour can be."""
    return f"{MARKS[verdict].shape} {verdict}"


def card_html(claim: Row, why: str | None = None, more: Iterable[tuple[str, str]] = ()) -> str:
    """One claim: verdict, statement, source, expected beside measured, why. more: further lines, name and text."""
    lines = [("expected", claim.expected), ("measured", measured(claim)), *more]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines if text)
    return (
        f'<article class="ln-claim">{verdict_html(claim.verdict)}<h4>{escape(claim.statement)}</h4>'
        f'<p class="source">{escape(claim.claim_id)} · {escape(claim.source)}</p><dl>{listed}</dl>'
        f"<p>{escape(claim.why if why is None else why)}</p></article>"
    )


def cards_html(claims: pd.DataFrame) -> str:
    """Every claim as a card, those a reader meets first before the others."""
    ranks = list(MARKS)
    rows = sorted(claims.itertuples(), key=lambda row: ranks.index(row.verdict))
    return f'<div class="ln-claims">{"".join(map(card_html, rows))}</div>'


def measured(row: Row) -> str:
    """Estimate, interval and seeds of a claim or a part, or that there is none."""
    if pd.isna(row.estimate):
        return "nothing yet"
    return f"{between(row.estimate, row.low, row.high)}, {int(row.n_seeds)} seeds".replace("-", "−")


def counted(claims: pd.DataFrame) -> str:
    """How many claims have which verdict, in a sentence."""
    counts = claims["verdict"].value_counts()
    said = ", ".join(f"{counts[name]} {verdict_words(name)}" for name in MARKS if name in counts)
    return f"{len(claims)} {'claim' if len(claims) == 1 else 'claims'}: {said}." if said else "No claim is like that."


def against_chart(row: Row, region: Region) -> alt.LayerChart:
    """What is allowed as a bar with its target, and below it the measured value with its interval."""
    domain = _domain(row, region)
    low, high = max(region.low, domain[0]), min(region.high, domain[1])
    allowed = pd.DataFrame({"row": ["expected"], "at": [region.target], "low": [low], "high": [high]})
    found = pd.DataFrame({"row": ["measured"], "at": [row.estimate], "low": [row.low], "high": [row.high]})
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(title=None, tickCount=3, grid=False))
    y = alt.Y("row:N", sort=["expected", "measured"], axis=alt.Axis(title=None, domain=False, ticks=False))
    colour = MARKS[row.verdict].colour if hasattr(row, "verdict") else GREY
    return alt.layer(
        alt.Chart(allowed).mark_bar(height=10, color=NEUTRAL, opacity=0.55).encode(x=x, x2="high:Q", y=y),
        alt.Chart(allowed).mark_tick(color=NEUTRAL, thickness=3, size=18).encode(x=alt.X("at:Q"), y=y),
        alt.Chart(found).mark_rule(color=colour, strokeWidth=3).encode(x=x, x2="high:Q", y=y),
        alt.Chart(found).mark_point(color=colour, filled=True, size=80, opacity=1).encode(x=alt.X("at:Q"), y=y),
    ).properties(height=CHART_HEIGHT)


def _domain(row: Row, region: Region) -> list[float]:
    """From the smallest to the largest of what is drawn, with room on either side; bars without end run to its edge."""
    drawn = (region.target, region.low, region.high, row.estimate, row.low, row.high)
    ends = [value for value in drawn if math.isfinite(value)]
    room = 0.12 * (max(ends) - min(ends)) or 0.1 * abs(ends[0]) or 1.0
    return [min(ends) - room, max(ends) + room]


def panel_lead(claims: pd.DataFrame, depth: int) -> str:
    """What the panel is about, in a sentence."""
    apart = claims["verdict"].isin(["contradicted", "outside its assumptions"]).sum()
    return (
        f"{apart} of {len(claims)} claims of papers and pages are not what is measured here. Below are those that lie "
        f"furthest off, judged with {blocks(depth)} where the claim speaks of single depths."
    )


def part_table(parts: pd.DataFrame) -> pd.DataFrame:
    """The evidence of a claim as text."""
    said = {True: "✓ holds", False: "✕ fails"}
    return pd.DataFrame(
        {
            "part": parts["part"],
            "setup": parts["setup"],
            "expected": parts["expected"],
            "measured": [measured(row) for row in parts.itertuples()],
            "outcome": ["○ open" if pd.isna(value) else said[bool(value)] for value in parts["holds"]],
        }
    )


def agreement(claim: Row, holds: bool) -> str:
    """What the readings say to a reader who said that a statement holds, or that it does not."""
    if claim.verdict not in ("reproduced", "contradicted"):
        return "The readings of this store do not settle it with a yes or no."
    agree = (claim.verdict == "reproduced") == holds
    return "✓ The readings agree with you." if agree else "✕ The readings disagree with you."
