"""Sentences of the page Gradient paths. Every number in them is computed."""

import pandas as pd

from lnmeasure.dashboard.prose import blocks
from lnmeasure.dashboard.theme import PLACEMENTS


def highway(factors: pd.DataFrame, depth: int) -> str:
    """What the handbook draws, and what the Jacobian of the whole stack says of it. Columns: path_factors.sql's."""
    rows = factors[factors["depth"] == depth].set_index("placement")
    if not {"post", "pre"} <= set(rows.index):
        return f"Not measured at {blocks(depth)}."
    post, pre = rows.loc["post"], rows.loc["pre"]
    return (
        "The handbook draws a bright path through all blocks of pre-LN and none through post-LN. Measured through "
        f"{blocks(depth)}: pre-LN's Jacobian has size {pre['size']:.2f} and post-LN's {post['size']:.2f}, where 1 is "
        f"the identity's. Of pre-LN's, {pre['identity_share']:.1%} is a multiple of the identity (trace "
        f"{pre['trace']:.2f} per element); of post-LN's, {post['identity_share']:.2%} (trace {post['trace']:.3f}). So "
        "the direct path is there in pre-LN and gone in post-LN, and a gradient does not need it: what post-LN's "
        "shortcut loses comes back through its branches."
    )


def sizes_caption(rows: pd.DataFrame) -> str:
    """How the numbers were had. Columns: those of path_sizes.sql."""
    worst = (rows["size_se"] / rows["size"]).max()
    return (
        "Size is ||J||_F / sqrt(T d), 1 for the identity; the share is (tr J)² / (T d ||J||_F²). Estimated by "
        f"{rows['n_probes'].max():.0f} random cotangents in each of {rows['n_seeds'].max():.0f} seeds, one per "
        f"sequence; the largest standard error here is {worst:.1%} of a size. Of ResiDual both streams count."
    )


def toy(sizes: pd.DataFrame, count: int, factor: float) -> str:
    """What is left of the toy's point. Columns: placement, backward, block, size."""
    ends = sizes.pivot_table(index=["placement", "backward"], columns="block", values="size")
    ratio = ends[0] / ends[count]
    return (
        f"Through {blocks(count)} the simplified backward leaves {ratio['post', 'simplified']:.3f} of post-LN's "
        f"gradient and {ratio['pre', 'simplified']:.2f} of pre-LN's; the hand-set factor alone, {factor:g}^{count}, is "
        f"{factor**count:.3f}. Exact gradients of the same toy leave {ratio['post', 'exact']:.2f} and "
        f"{ratio['pre', 'exact']:.2f}: the decay was put in by hand. (The cotangent is random. One of all ones comes "
        "to exactly 0 through a LayerNorm.)"
    )


def decay(factors: pd.DataFrame) -> str:
    """Which factor per block the measured stacks come to. Columns: those of path_factors.sql."""
    deepest = factors[factors["depth"] == factors["depth"].max()].dropna(subset=["factor"])
    if deepest.empty:
        return ""
    low, high = deepest.loc[deepest["factor"].idxmin()], deepest.loc[deepest["factor"].idxmax()]
    named = deepest.set_index("placement")["factor"]
    said = ", ".join(f"{PLACEMENTS[name].label} {named[name]:.4f}" for name in ("post", "pre") if name in named)
    return (
        f"Over {blocks(int(deepest['depth'].max()))} the measured size of the whole path comes to a factor per block "
        f"of {said}; the smallest is {PLACEMENTS[low['placement']].label}'s {low['factor']:.4f}, the largest "
        f"{PLACEMENTS[high['placement']].label}'s {high['factor']:.4f}."
    )


def collapse(rows: pd.DataFrame, depth: int) -> str:
    """How W_Q's gradient goes with how alike tokens are. Columns: those of rank_collapse.sql."""
    said = []
    for name, group in rows.groupby("placement"):
        known = group[group["grad_wq"] > 0]
        if len(known) > 2:
            rank = known["token_cosine"].rank().corr(known["grad_wq"].rank())
            said.append(
                f"{PLACEMENTS[name].label}: cosine up to {group['token_cosine'].max():.3f}, rank correlation "
                f"{rank:+.2f}"
            )
    lost = int(rows["n_underflow"].sum())
    text = f"Cosine between tokens against W_Q's gradient, over {blocks(depth)}: {'; '.join(said)}."
    if lost:
        text += f" Crosses mark blocks in which {lost} readings lie below what float32 can hold."
    return text
