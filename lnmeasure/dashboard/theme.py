"""Colours, markers, dashes and names: one look per placement and init, the same in every chart, text and readout.

Colours are those of Okabe and Ito, darkened or lightened until they can be read on white as well as on black. There are
fewer of them than placements: two that share a colour differ in marker and dash. Vermilion is post's alone, blue pre's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

VERMILION, BLUE, GREEN, PURPLE = "#D55E00", "#0082C8", "#009E73", "#C2679A"
AMBER, OLIVE, VIOLET, GREY = "#B07D00", "#8A8A00", "#8F6BD0", "#888888"
SOLID, LONG, SHORT = (1, 0), (8, 3), (3, 3)
_SHARED = (GREEN, PURPLE, AMBER, OLIVE, VIOLET, GREY)
_MARKERS = ("square", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a series is drawn: colour, marker and dash, and the label that stands at its end."""

    label: str
    colour: str
    marker: str
    dash: tuple[int, int] = SOLID


class Looks(dict[str, Look]):
    """Looks by name. A name that is not known, such as a plugin's, gets one that its letters decide."""

    def __missing__(self, name: str) -> Look:
        """A look for a name that is not among ours, the same in every process."""
        digest = blake2b(name.encode(), digest_size=3).digest()
        choices = (_SHARED, _MARKERS, (LONG, SHORT))
        colour, marker, dash = (choice[byte % len(choice)] for choice, byte in zip(choices, digest, strict=True))
        return Look(label=name.replace("_", " "), colour=colour, marker=marker, dash=dash)

    def of(self, names: Iterable[str]) -> dict[str, Look]:
        """The looks of some names, each once: ours in our order, then the others by name."""
        wanted = set(names)
        order = [*(name for name in self if name in wanted), *sorted(wanted - set(self))]
        return {name: self[name] for name in order}


REFERENCES = ("post", "pre")
"""The two placements that Home is about, and that every other is looked at beside."""

PLACEMENTS = Looks(
    post=Look(label="post-LN", colour=VERMILION, marker="circle"),
    pre=Look(label="pre-LN", colour=BLUE, marker="triangle-up"),
    none=Look(label="no norm", colour=GREY, marker="cross"),
    sandwich=Look(label="sandwich", colour=GREEN, marker="square"),
    reordered=Look(label="reordered", colour=PURPLE, marker="diamond"),
    reordered_no_qk=Look(label="reordered, no QK", colour=PURPLE, marker="cross", dash=LONG),
    deepnorm=Look(label="DeepNorm", colour=AMBER, marker="square"),
    keel=Look(label="Keel", colour=OLIVE, marker="diamond"),
    admin=Look(label="Admin", colour=VIOLET, marker="triangle-down"),
    normformer=Look(label="NormFormer", colour=GREEN, marker="cross", dash=LONG),
    layernorm_scaling=Look(label="LayerNorm Scaling", colour=AMBER, marker="diamond", dash=LONG),
    mix_ln=Look(label="Mix-LN", colour=OLIVE, marker="triangle-left", dash=LONG),
    hybridnorm=Look(label="HybridNorm", colour=VIOLET, marker="square", dash=LONG),
    b2t=Look(label="B2T", colour=GREY, marker="triangle-right", dash=LONG),
    residual=Look(label="ResiDual", colour=PURPLE, marker="triangle-left", dash=SHORT),
    rezero=Look(label="ReZero", colour=GREY, marker="square", dash=SHORT),
    layerscale=Look(label="LayerScale", colour=GREEN, marker="triangle-right", dash=SHORT),
    depth_mup=Look(label="Depth-muP", colour=AMBER, marker="triangle-down", dash=SHORT),
    completep=Look(label="CompleteP", colour=VIOLET, marker="cross", dash=SHORT),
)

INITS = Looks(
    xavier_uniform=Look(label="Xavier", colour=BLUE, marker="triangle-up"),
    xavier_residual=Look(label="residual scaling alone", colour=GREEN, marker="square"),
    gpt2=Look(label="full GPT-2 init", colour="#CC79A7", marker="diamond"),
    xavier_normal=Look(label="Xavier, normal", colour=BLUE, marker="circle", dash=LONG),
    normal_002=Look(label="N(0, 0.02²) everywhere", colour=PURPLE, marker="cross", dash=LONG),
    he=Look(label="He", colour=VERMILION, marker="circle"),
    lecun=Look(label="LeCun", colour=AMBER, marker="diamond"),
    torch_linear=Look(label="nn.Linear's default", colour=OLIVE, marker="square"),
    small_wang=Look(label="SmallInit and Wang", colour=VIOLET, marker="triangle-down"),
    ds_init=Look(label="DS-Init", colour=GREEN, marker="triangle-left", dash=LONG),
    orthogonal=Look(label="orthogonal", colour=AMBER, marker="triangle-right", dash=LONG),
    theory=Look(label="the theory's, uniform attention", colour=GREY, marker="cross"),
)

SCALING_INITS = ("xavier_uniform", "xavier_residual", "gpt2")
"""The three inits of Home's question about GPT-2's residual scaling."""

NEUTRAL = "#888888"
"""Guides and marked values: read equally well on light and dark."""
