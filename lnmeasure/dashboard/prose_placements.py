"""Sentences of the page 'Placements and inits'. Pure functions of answers; every number comes from the store."""

from collections.abc import Sequence

import pandas as pd

from lnmeasure.dashboard.compare import GRADIENT, STREAM, Profile, drawable
from lnmeasure.dashboard.matrix import WORDS, Measure
from lnmeasure.dashboard.prose import Row, between, blocks, by_name, number, times, with_interval
from lnmeasure.dashboard.theme import PLACEMENTS

FLAT = 0.1
"""A slope of the top gradient no further from 0 than this is called 'hardly changes'."""
EVEN = 1.1
"""A factor below this is called 'within'."""


def headline(rows: pd.DataFrame, depth: int) -> str:
    """What the full GPT-2 init does to the usual answer, and why. Rows: those of small_embedding.sql."""
    by_init = by_name(rows, "init")
    full, alone = by_init.get("gpt2"), by_init.get("xavier_residual")
    if full is None or pd.isna(full.over_post):
        return f"The full GPT-2 init is not measured at {blocks(depth)}: post-LN and pre-LN cannot be compared with it."
    ratio = times(1 / full.over_post, "smaller", "larger")
    said = f"With the full GPT-2 init and {blocks(depth)}, pre-LN's top gradient is **{ratio}** than post-LN's."
    if full.over_post > 1 > full.sigma:
        said += (
            f" That init draws embeddings small too, so the stream starts at rms {number(full.embedding_rms)}. Pre-LN "
            f"never renormalises it, and its last norm divides by σ = {number(full.sigma)}: it multiplies the gradient "
            f"by 1/σ = {number(1 / full.sigma)}."
        )
    if alone is None or pd.isna(alone.over_post):
        return said
    return (
        f"{said} Residual scaling alone, on embeddings of rms {number(alone.embedding_rms)}, leaves pre-LN's at "
        f"{between(alone.over_post, alone.over_post_low, alone.over_post_high)} times post-LN's."
    )


def matrix_caption(matrix: pd.DataFrame, measure: Measure, depth: int) -> str:
    """What colour and words of the matrix mean, and how much of it there is."""
    at = f"The fit takes L = 2 to {measure.depth_max}." if measure.depth_max else f"At {blocks(depth)}."
    ratio = "Ratios are coloured by their logarithm. " if measure.ratio else ""
    missing = sorted(set(matrix.text[~matrix.measured]))
    words = "; ".join(f"*{name}*: {WORDS[name]}" for name in missing)
    return (
        f"{at} {ratio}{int(matrix.measured.sum())} of {len(matrix)} cells have a number."
        + (f" The others have a word: {words}." if words else "")
        + " Click a cell to look at it below."
    )


def placement_sentence(row: Row, slopes: pd.DataFrame, depth: int) -> str:
    """What a placement does at init, from its readings with one init. row: of matrix.sql; slopes: its fits."""
    if pd.isna(row.n_seeds):
        return f"Not measured with this init at {blocks(depth)} yet."
    parts = [_top(row, depth), *_fall(slopes), *_bottom(row), *_divides(row)]
    return "; ".join(parts) + "."


def _top(row: Row, depth: int) -> str:
    at = f"With {blocks(depth)}"
    if row.n_zero:
        return f"{at} the top gradient is exactly 0 at init in {row.n_zero} of {row.n_seeds} seeds"
    if pd.isna(row.top_gradient):
        return f"{at} the top gradient leaves the range of float32 in a seed at least"
    if row.placement == "post" or pd.isna(row.over_post):
        return f"{at} the top gradient is {number(row.top_gradient)}"
    if 1 / EVEN < row.over_post < EVEN:
        return f"{at} the top gradient is within {EVEN - 1:.0%} of post-LN's ({number(row.over_post)} times it)"
    return f"{at} the top gradient is {times(1 / row.over_post, 'smaller', 'larger')} than post-LN's"


def _fall(slopes: pd.DataFrame) -> list[str]:
    """How the top gradient changes with depth, over the longest range that could be fitted."""
    if slopes.empty:
        return []
    row = next(slopes.sort_values("depth_max", ascending=False).itertuples())
    over = f"over L = {row.depth_min} to {row.depth_max}"
    slope = f"{row.estimate:.2f}" if pd.isna(row.low) else with_interval(row.estimate, row.low, row.high)
    slope = slope.replace("-", "−")
    if abs(row.estimate) <= FLAT:
        return [f"it hardly changes with depth (slope {slope} {over})"]
    return [f"it {'falls' if row.estimate < 0 else 'grows'} with depth as L^({slope}) {over}"]


def _bottom(row: Row) -> list[str]:
    if pd.isna(row.bottom_over_top):
        return []
    if 1 / EVEN < row.bottom_over_top < EVEN:
        return [f"the bottom block's is within {EVEN - 1:.0%} of the top's"]
    return [f"the bottom block's is {times(1 / row.bottom_over_top, 'smaller', 'larger')} than the top's"]


def _divides(row: Row) -> list[str]:
    return [] if pd.isna(row.sigma) else [f"the last norm divides by {number(row.sigma)}"]


def init_sentence(rows: pd.DataFrame, depth: int) -> str:
    """What an init does to pre-LN and over all placements. rows: those of matrix.sql with this init."""
    known = rows[rows.over_post.notna()].sort_values("over_post")
    pre = known[known.placement == "pre"]
    if pre.empty:
        return f"Post-LN and pre-LN are not both measured with it at {blocks(depth)} yet."
    ratio = times(1 / pre.over_post.iloc[0], "smaller", "larger")
    least, most = known.iloc[0], known.iloc[-1]
    return (
        f"With {blocks(depth)} pre-LN's top gradient is {ratio} than post-LN's; over {len(known)} placements the ratio "
        f"runs from {number(least.over_post)} ({PLACEMENTS[least.placement].label}) to {number(most.over_post)} "
        f"({PLACEMENTS[most.placement].label})."
    )


def left_out(profiles: pd.DataFrame, chosen: Sequence[str], init: str, depth: int) -> str:
    """In words, what charts of some placements cannot show: not measured, exactly zero, beyond the range."""
    said = []
    for name in chosen:
        own = profiles[profiles.placement == name]
        label = PLACEMENTS[name].label
        if own.empty:
            said.append(f"{label} is not measured in every block with init {init} at {blocks(depth)}.")
            continue
        said += [_gaps(own, label, profile, what) for profile, what in ((STREAM, "stream"), (GRADIENT, "gradient"))]
    return " ".join(filter(None, said))


def _gaps(own: pd.DataFrame, label: str, profile: Profile, what: str) -> str:
    """Which blocks of a placement a logarithmic chart leaves out, and why; empty where it shows all."""
    mean = own[f"{profile.quantity}_mean"]
    zero, null = int((mean == 0).sum()), int(mean.isna().sum())
    if len(drawable(own, profile)) == len(own):
        return ""
    why = [f"exactly 0 in {zero} of {blocks(len(own))}"] if zero else []
    why += [f"beyond the range of float32 in {null} of {blocks(len(own))}"] if null else []
    return f"{label}'s {what} is {' and '.join(why)}, which a logarithmic axis cannot show."


def placement_sentences(readings: pd.DataFrame, slopes: pd.DataFrame, init: str, depth: int) -> dict[str, str]:
    """What each placement does with an init, by name. The answers of matrix.sql and matrix_slopes.sql."""
    fits = slopes[slopes.init == init]
    rows = readings[readings.init == init].itertuples()
    return {row.placement: placement_sentence(row, fits[fits.placement == row.placement], depth) for row in rows}


def init_sentences(readings: pd.DataFrame, depth: int) -> dict[str, str]:
    """What each init does, by name. The answer of matrix.sql."""
    return {init: init_sentence(rows, depth) for init, rows in readings.groupby("init")}
