"""The big numbers, as HTML that follows the page's theme. Pure: rows in, text out."""

from html import escape

import pandas as pd

from lnmeasure.dashboard.prose import Row, between, by_name, number, with_interval
from lnmeasure.dashboard.theme import PLACEMENTS

STYLE = """
<style>
.ln-readouts {display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0.4rem 2rem;}
.ln-readouts h3 {font-size: 0.95rem; font-weight: 600; margin: 0; padding: 0.2rem 0;}
.ln-readouts p {margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; white-space: nowrap;}
.ln-readouts p small {display: block; font-size: 0.85rem; margin: -0.2rem 0 0.2rem 5.2rem; opacity: 0.75;}
.ln-readouts p span {display: inline-block; min-width: 5.2rem; font-size: 1rem; font-weight: 700;}
.ln-readouts small {font-size: 0.85rem; opacity: 0.8; white-space: normal;}
:has(> .st-key-controls) {position: sticky; top: 3.75rem; z-index: 90; padding: 0.3rem 0 0.5rem;}
.stApp :has(.st-key-controls) {background-color: inherit;}
.stMainBlockContainer {max-width: 1100px; padding-top: 4.5rem;}
@media (max-width: 640px) {.stMainBlockContainer h1 {font-size: 1.7rem;}}
</style>
"""


def readouts_html(readouts: pd.DataFrame) -> str:
    """sigma and top gradient of each placement, and how much smaller pre's is. Columns: those of readouts.sql."""
    rows = by_name(readouts, "placement")
    sigma = [_line(name, row, "sigma") for name, row in rows.items()]
    top = [_line(name, row, "top_grad_w2") for name, row in rows.items()]
    pre = rows["pre"]
    smaller = pre.ratio >= 1
    ratio = (pre.ratio, pre.ratio_low, pre.ratio_high)
    if not smaller:
        ratio = (1 / pre.ratio, 1 / pre.ratio_high, 1 / pre.ratio_low)
    return (
        '<div class="ln-readouts" aria-live="polite">'
        + _box("σ, what the last LayerNorm divides by", "".join(sigma))
        + _box("Top block's gradient, ‖dL/dW<sub>2</sub>‖", "".join(top))
        + _box(
            f"Pre-LN's is {'smaller' if smaller else 'larger'} by a factor of",
            f"<p>{escape(between(*ratio))}</p><small>95 % intervals over {pre.n_seeds} seeds</small>",
        )
        + "</div>"
    )


def _box(title: str, body: str) -> str:
    return f"<div><h3>{title}</h3>{body}</div>"


def _line(placement: str, row: Row, quantity: str) -> str:
    """Mean and interval, and below it in small what theory said, where it did."""
    look, said = PLACEMENTS[placement], getattr(row, f"{quantity}_predicted")
    mean, low, high = (getattr(row, f"{quantity}_{end}") for end in ("mean", "low", "high"))
    below = "" if pd.isna(said) else f"<small>predicted {escape(number(said))}</small>"
    return (
        f'<p><span style="color:{look.colour}">{escape(look.label)}</span>{escape(with_interval(mean, low, high))}'
        f"{below}</p>"
    )
