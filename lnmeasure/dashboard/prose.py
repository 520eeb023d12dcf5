"""Sentences whose every number comes from the store. Pure functions of answers to markdown.

A Row is one row of an answer, as DataFrame.itertuples gives it: whole numbers stay whole.
"""

import math
from datetime import datetime
from typing import Any

import pandas as pd

from lnmeasure.dashboard.theme import INITS, PLACEMENTS

Row = Any


def number(value: float) -> str:
    """Three significant digits."""
    return "not measured" if pd.isna(value) else f"{value:#.3g}".rstrip(".")


def with_interval(mean: float, low: float, high: float) -> str:
    """mean ± half width of its interval, as many digits as the half width deserves."""
    half = (high - low) / 2
    if pd.isna(half):
        return f"{number(mean)} (one seed, no interval)" if not pd.isna(mean) else "not measured"
    if half <= 0:
        return f"{number(mean)} ± 0"
    exponent = math.floor(math.log10(half))
    digits = max(0, -exponent + (1 if half / 10**exponent < 2 else 0))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def between(estimate: float, low: float, high: float) -> str:
    """An estimate whose interval is not symmetric: a ratio."""
    if pd.isna(low):
        return f"{number(estimate)} (one seed, no interval)"
    return f"{number(estimate)} ({number(low)} to {number(high)})"


def blocks(depth: int) -> str:
    """A depth in words."""
    return "1 block" if depth == 1 else f"{depth} blocks"


def by_name(answer: pd.DataFrame, column: str) -> dict[str, Row]:
    """The rows of an answer by the value of a column."""
    return {getattr(row, column): row for row in answer.itertuples()}


def freshness(state: str, success: datetime | None, every_s: float | None) -> str | None:
    """What a reader must know of a schedule that fell behind; None where it is on time. success: the last one, UTC."""
    if state == "clock":
        return "The last refresh lies in the future: the clock of this server or of the refreshing one is wrong."
    if state == "fresh":
        return None
    since = f"the last success was on {success:%Y-%m-%d at %H:%M} UTC" if success else "none has succeeded yet"
    return (
        f"The store is due to be refreshed every {every_s / 3600:g} h, and {since}. What you see is right, and may be "
        "older than planned: 'python -m jobs.status' says why."
    )


def finding(readouts: pd.DataFrame, depth: int) -> str:
    """What the readouts say at this depth, in three sentences."""
    rows = by_name(readouts, "placement")
    post, pre = rows["post"], rows["pre"]
    return (
        "A LayerNorm divides its input by σ, the rms of that input about its mean, and so divides the gradient that "
        f"comes back through it too. With {blocks(depth)}, the last LayerNorm divides by "
        f"**{number(post.sigma_mean)}** in post-LN and by **{number(pre.sigma_mean)}** in pre-LN. The gradient on the "
        f"top block's second FFN matrix follows: **{number(post.top_grad_w2_mean)}** against "
        f"**{number(pre.top_grad_w2_mean)}**, {times(pre.ratio, 'smaller', 'larger')} in pre-LN."
    )


def forward_caption(profile: pd.DataFrame) -> str:
    """What to look for in the forward chart."""
    post, pre = (profile[profile.placement == name].sort_values("block")["mean"] for name in ("post", "pre"))
    if len(pre) == 1:
        return f"One block leaves a stream of {number(post.iloc[0])} in post-LN and {number(pre.iloc[0])} in pre-LN."
    return (
        f"Post-LN renormalises after every sublayer, so its stream leaves each block between {number(post.min())} and "
        f"{number(post.max())}. Pre-LN's only accumulates: {number(pre.iloc[0])} after the first block, "
        f"{number(pre.iloc[-1])} after the last."
    )


def backward_caption(profile: pd.DataFrame, band: Row) -> str:
    """What to look for in the backward chart, with the band post stays in and how well the dashed curve fits."""
    pre = profile.dropna(subset=["over_stream"])
    worst = (pre["over_stream"] / pre["mean"] - 1).abs().max()
    stays = (
        f"Post-LN's mean stays between {number(band.lowest)} and {number(band.highest)} in every block of all "
        f"{band.n_depths} depths."
    )
    if len(pre) == 1:
        return f"{stays} With one block there is no profile to compare with the stream."
    return (
        f"{stays} The dashed curve is one constant divided by pre-LN's stream from the forward chart: it meets "
        f"pre-LN's gradient within {worst:.0%} at every block here. The gradient is set by the size of the stream a "
        "block writes into."
    )


def prediction_caption(*views: pd.DataFrame) -> str:
    """How far the mean-field prediction is from what the views show; nothing where there is none.

    Columns of each: mean, predicted.
    """
    off = pd.concat([(view["predicted"] / view["mean"] - 1).abs() for view in views]).dropna()
    if off.empty:
        return ""
    return (
        "The dotted lines are the mean-field prediction, into which no measurement went: here it is off by "
        f"{off.median():.1%} in the median and by {off.max():.1%} at worst."
    )


def slope_caption(slopes: pd.DataFrame) -> str:
    """Fitted slopes of the top gradient, each with its interval and its range."""
    top = slopes[slopes.quantity == "top_grad_w2"]
    if top.empty:
        return "No slope: the store lacks some of the depths a fit needs, or seeds for them."
    default = by_name(_of_one_range(top, top.depth_min.max()), "placement")
    widest = by_name(_of_one_range(top, top.depth_min.min()), "placement")
    said = ", ".join(f"{PLACEMENTS[name].label} {_slope(row)}" for name, row in default.items())
    any_row = next(iter(default.values()))
    text = f"Fitted log-log slope over L = {any_row.depth_min} to {any_row.depth_max}: {said}."
    if "pre" in widest and widest["pre"].depth_min != any_row.depth_min:
        row = widest["pre"]
        text += f" Over L = {row.depth_min} to {row.depth_max} pre-LN has {_slope(row)}."
    return text + " The dashed guide is 1/√L through pre-LN's deepest point. Click a depth to select it everywhere."


def _of_one_range(slopes: pd.DataFrame, depth_min: int) -> pd.DataFrame:
    """The rows of the longest range that begins at a depth."""
    rows = slopes[slopes.depth_min == depth_min]
    return rows[rows.depth_max == rows.depth_max.max()]


STREAM_ANSWERS = {
    "grows": "It still grows by more than half from the first block to the last",
    "stays": "It stays within a factor of 1.5 of its size after the first block",
    "shrinks": "It shrinks by more than a third on the way up",
}
"""What a reader can answer to the GPT-2 question."""


def stream_answer(row: Row) -> str:
    """Which key of STREAM_ANSWERS the readings of an init support."""
    growth = row.last_stream / row.first_stream
    return "grows" if growth > 1.5 else "shrinks" if growth < 1 / 1.5 else "stays"


def residual_answer(rows: pd.DataFrame, depth: int) -> str:
    """The measured answer to the GPT-2 question, for residual scaling alone and for the full init."""
    by_init = by_name(rows, "init")
    plain, alone, full = (by_init[name] for name in ("xavier_uniform", "xavier_residual", "gpt2"))
    return (
        f"**Residual scaling alone** (W_O and W_2 divided by √(2L), the rest Xavier): with {blocks(depth)}, pre-LN's "
        f"stream ends at {with_interval(alone.last_stream, alone.last_stream_low, alone.last_stream_high)} instead of "
        f"{with_interval(plain.last_stream, plain.last_stream_low, plain.last_stream_high)}. Its top gradient "
        f"is {times(alone.ratio, 'smaller', 'larger')} than post-LN's, and without the scaling it is "
        f"{times(plain.ratio, 'smaller', 'larger')}.\n\n"
        f"**The full GPT-2 init** (also N(0, 0.02²) for every other matrix, embeddings and head): the stream starts "
        f"small and ends at {with_interval(full.last_stream, full.last_stream_low, full.last_stream_high)}. The last "
        f"LayerNorm divides by {number(full.pre_sigma)}, and pre-LN's top gradient, {number(full.pre_gradient)}, is "
        f"{times(full.ratio, 'smaller', 'larger')} than post-LN's, {number(full.post_gradient)}."
    )


def setup_line(setup: Row, seeds: Row, init: str) -> str:
    """The constants of the measurement in one paragraph."""
    norm = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}[setup.norm]
    activation = {"relu": "ReLU", "gelu": "GELU"}[setup.activation]
    head = "head tied to the embedding" if setup.tied_head else "untied Xavier-uniform head"
    return (
        f"Setup `{setup.name}`, init `{init}`: decoder-only Transformer, d = {setup.width}, {setup.heads} heads, FFN "
        f"width {setup.ffn_ratio}d with {activation}, {setup.attention} attention, {norm} with eps {setup.eps:g}, "
        f"sequence length {setup.seq_len}, batch {setup.batch}, vocabulary {setup.vocab}, embeddings "
        f"N(0, {setup.embedding_std:g}²) and {head} (unless the init draws both itself, as gpt2 does), no positions, "
        f"no biases, {setup.data} random tokens and independent random targets, mean cross-entropy, one backward pass "
        f"at initialisation in {setup.dtype}. Every point is a mean over {seed_range(seeds)} with its 95 % t "
        "interval; a ratio is a geometric mean of per-seed ratios."
    )


def seed_range(seeds: Row) -> str:
    """How many seeds the points of a setup are means over."""
    fewest, most = seeds.fewest_seeds, seeds.n_seeds
    return f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds (each point says how many)"


def _slope(row: Row) -> str:
    return with_interval(row.estimate, row.low, row.high).replace("-", "−")


def times(ratio: float, smaller: str, larger: str) -> str:
    """How many times smaller, or larger where the ratio is below one."""
    return f"{number(ratio)} times {smaller}" if ratio >= 1 else f"{number(1 / ratio)} times {larger}"


def init_label(init: str) -> str:
    """An init's name with its short description, where that says more."""
    label = INITS[init].label
    return init if label.lower() == init.replace("_", " ") else f"{init} ({label})"
