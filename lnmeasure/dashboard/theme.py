"""Colours, markers and names: one look per placement and init, the same in every chart, text and readout."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a series is drawn: Okabe-Ito colour, marker, and the label that stands at its end."""

    label: str
    colour: str
    marker: str


PLACEMENTS = {
    "post": Look(label="post-LN", colour="#D55E00", marker="circle"),
    "pre": Look(label="pre-LN", colour="#0082C8", marker="triangle-up"),
}
"""Vermilion as in Okabe-Ito; its blue is lightened a little so that it can be read on black as well as on white."""

INITS = {
    "xavier_uniform": Look(label="Xavier", colour="#0082C8", marker="triangle-up"),
    "xavier_residual": Look(label="residual scaling alone", colour="#009E73", marker="square"),
    "gpt2": Look(label="full GPT-2 init", colour="#CC79A7", marker="diamond"),
}

NEUTRAL = "#888888"
"""Guides and marked values: read equally well on light and dark."""
