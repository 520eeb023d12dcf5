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


SHORT = {"stream_rms": "stream", "grad_w2": "W₂'s gradient", "grad_w1": "W₁'s gradient"}
ALIKE = 0.99
"""Token cosine from which tokens are said to have become alike."""


def outlier_summary(rows: pd.DataFrame) -> str:
    """How many predictions per block meet the goal. Columns: those of prediction_outliers.sql."""
    values, misses, outside = rows[["n_values", "n_misses", "n_outside"]].sum()
    return (
        "The goal is 3 % for the stream and 10 % for the gradients of W₁ and W₂ at every block, up to 64 blocks. Of "
        f"{values:,} predictions {values - misses:,} meet it ({1 - misses / values:.1%}). Of the others "
        f"{misses - outside:,} lie within the measured 95 % interval, which seeds may explain; {outside:,} lie outside."
    )


def outlier_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Where predictions lie outside goal and interval, and the farthest of them."""
    some = rows[rows["n_outside"] > 0]
    return pd.DataFrame(
        {
            "placement": [PLACEMENTS[name].label for name in some["placement"]],
            "quantity": [SHORT[name] for name in some["quantity"]],
            "outside": [f"{row.n_outside} of {row.n_values}" for row in some.itertuples()],
            "farthest": [f"{row.off:+.0%}" for row in some.itertuples()],
            "there": [f"{row.init}, depth {row.depth:.0f}, block {row.block:.0f}" for row in some.itertuples()],
        }
    )


def outlier_reasons(rows: pd.DataFrame, alike: pd.DataFrame) -> str:
    """What is known or supposed of why predictions miss. alike: placement and its highest token_cosine."""
    missing = set(rows["placement"][rows["n_outside"] > 0])
    named = [PLACEMENTS[n].label for n in alike["placement"][alike["token_cosine"] > ALIKE] if n in missing]
    said = [
        "Every init is drawn from the same seeds, and stacks of different depth share their blocks: what chance does "
        "in one block of three seeds shows in many rows."
    ]
    if named:
        said.append(
            f"In deep stacks of {', '.join(named)} all tokens become alike (token cosine above {ALIKE} somewhere): "
            "what tells them apart then rests on few elements, and the recursion counts infinitely many."
        )
    if "reordered_no_qk" in missing:
        said.append(
            f"{PLACEMENTS['reordered_no_qk'].label} hands its growing stream to attention as it is: softmax nearly "
            "chooses one token, and the gradient through it is an average of rare large values, of which neither three "
            "seeds nor the samples of the prediction (below) see enough."
        )
    return " ".join(said)


def width_summary(rows: pd.DataFrame) -> str:
    """How the error falls with width, in one sentence. Columns: those of prediction_by_width.sql."""
    first, last = rows.iloc[0], rows.iloc[-1]
    return (
        "The recursion is derived for infinite width. Over post-LN and pre-LN, depths 8 to 64 and all blocks, W₂'s "
        f"gradient is off by {first['grad_w2']:.1%} (root mean square) at width {first['width']:.0f} and by "
        f"{last['grad_w2']:.1%} at {last['width']:.0f}; the stream by {first['stream_rms']:.2%} and "
        f"{last['stream_rms']:.2%}. Part of it is the seeds', of which there are {rows['n_seeds'].min():.0f}."
    )


def width_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The error per width in percent."""
    return pd.DataFrame(
        {
            "width d": rows["width"],
            "seeds": rows["n_seeds"],
            "stream, rms error %": rows["stream_rms"].mul(100).round(2),
            "W₂'s gradient, rms error %": rows["grad_w2"].mul(100).round(2),
        }
    )


def sampling_table(errors: dict[str, dict[str, float]]) -> pd.DataFrame:
    """The spread between draws in percent, by placement."""
    columns = {
        "sigma": "σ, %",
        "stream_rms": "stream, %",
        "top_grad_w2": "top gradient, %",
        "grad_w2": "any block's, %",
    }
    rows = [
        {"placement": PLACEMENTS[name].label} | {title: round(100 * found[q], 2) for q, title in columns.items()}
        for name, found in errors.items()
    ]
    return pd.DataFrame(rows)


def lemma_3(table: pd.DataFrame) -> str:
    """Whether the norm's Jacobian halves where its input doubles. Columns: scale, seed, measured, lemma."""
    wide = table.pivot(index="seed", columns="scale", values="measured")
    halved = wide.to_numpy()[:, 1:] / wide.to_numpy()[:, :-1]
    off = (table["measured"] / table["lemma"] - 1).abs().max()
    return (
        f"Each doubling of the input multiplies the Jacobian's norm by {halved.min():.5f} to {halved.max():.5f}. The "
        f"lemma's value is met within {off:.1%}; what is left is each input's mean, which the norm takes away and the "
        "lemma does not count."
    )


def lemma_3_table(means: pd.DataFrame) -> pd.DataFrame:
    """Per scale the norm measured beside the lemma's, as text. Columns: scale, mean, low, high, lemma."""
    return pd.DataFrame(
        {
            "scale k": means["scale"],
            "measured": [between(*row) for row in means[["mean", "low", "high"]].to_numpy()],
            "Lemma 3": means["lemma"].round(4),
        }
    )
