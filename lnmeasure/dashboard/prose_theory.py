"""Sentences and tables of the page Theory."""

import pandas as pd

from lnmeasure.dashboard.prose import between
from lnmeasure.dashboard.theme import PLACEMENTS


def prediction_summary(errors: pd.DataFrame) -> str:
    """How far predictions are from readings, in one sentence. Columns: those of prediction_errors.sql."""
    if errors.empty:
        return "The store holds no predictions yet: `make refresh` makes them."
    top = errors.dropna(subset=["top_median"])
    worst = top.loc[top["top_worst"].idxmax()]
    return (
        f"A recursion over token covariances, into which no measurement goes, predicts {len(errors)} placements. Its σ "
        f"is off by {errors['sigma_median'].median():.1%} for the median placement, its top gradient by "
        f"{top['top_median'].median():.1%}; the worst top gradient is {PLACEMENTS[worst['placement']].label}'s, off by "
        f"{worst['top_worst']:.0%} somewhere."
    )


def prediction_table(errors: pd.DataFrame) -> pd.DataFrame:
    """The errors in percent, with the placements' names."""
    percent = errors.drop(columns=["placement", "n_settings"]).mul(100).round(1)
    percent.columns = ["σ, median %", "σ, worst %", "top gradient, median %", "top gradient, worst %"]
    named = pd.DataFrame(
        {
            "placement": [PLACEMENTS[name].label for name in errors["placement"]],
            "settings": errors["n_settings"],
        }
    )
    return pd.concat([named, percent], axis=1)


def lemma_2(rows: pd.DataFrame) -> str:
    """Whether the stream is what Lemma 2 says, in one sentence. Columns: those of lemma_2.sql."""
    off = (rows["post"] / 1.5 - 1).abs().max()
    inside = ((rows["pre"] > rows["pre_least"]) & (rows["pre"] < rows["pre_most"])).sum()
    return (
        f"With the paper's assumptions its numbers come out: post-LN's mean square is 3/2 within {off:.1%} in all "
        f"{len(rows)} blocks, and pre-LN's lies within the bounds in {inside} of {len(rows)}."
    )


def lemma_2_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per block what Lemma 2 says beside what is measured, as text."""
    return pd.DataFrame(
        {
            "block": rows["block"],
            "post-LN, 3/2 expected": [between(*row) for row in rows[["post", "post_low", "post_high"]].to_numpy()],
            "at least": rows["pre_least"],
            "pre-LN": [between(*row) for row in rows[["pre", "pre_low", "pre_high"]].to_numpy()],
            "at most": rows["pre_most"],
        }
    )
