"""The nouns every part of the house shares: Quantity, Setup, Setting, Reading. Standard library only.

Shapes are written with B batch, T sequence, d width, V vocabulary, L depth in blocks, r = d_ff / d.
"""

import hashlib
import json
import math
import sys
from dataclasses import dataclass, field, fields

MEASUREMENT_VERSION = 1
"""Raised whenever a reading of an unchanged setting may change; every cell is then measured again."""
REVISED = {"keel": 2, "hybridnorm": 2}
"""Where one placement or init alone changed what it means: the version of its cells, which are measured again."""

ATTENTIONS = ("causal", "bidirectional", "uniform")
ACTIVATIONS = ("relu", "gelu")
NORMS = ("layernorm", "rmsnorm")
INPUTS = ("tokens", "gaussian")
DATA = ("uniform", "zipf")
ENCODERS = ("none", "stack", "cosine")
DTYPES = ("float32", "float64", "bfloat16")
"""The first is what grids measure in, the second is for checks; bfloat16 keeps three digits: only where asked for."""
KINDS = ("readings", "paths")
"""What a cell holds: Readings of stack and blocks, or PathReadings from block to block."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What one reading can be: its definition in words, its unit, and whether it belongs to a block."""

    definition: str
    unit: str = "1"
    per_block: bool = True


def _weight_gradient(tensor: str) -> Quantity:
    return Quantity(definition=f"Frobenius norm of the loss gradient with respect to {tensor}", unit="nat")


QUANTITIES: dict[str, Quantity] = {
    "sigma": Quantity(
        definition="rms per element of what the last norm divides: about each token's mean over d for LayerNorm, "
        "uncentred for RMSNorm",
        per_block=False,
    ),
    "sigma_dual": Quantity(definition="sigma of ResiDual's second (u) branch", per_block=False),
    "top_grad_w2": Quantity(
        definition="Frobenius norm of the loss gradient with respect to the last block's second FFN matrix W2",
        unit="nat",
        per_block=False,
    ),
    "loss": Quantity(definition="mean cross-entropy at initialisation", unit="nat", per_block=False),
    "embedding_rms": Quantity(definition="uncentred rms per element of x_0, the first block's input", per_block=False),
    "stream_rms": Quantity(definition="uncentred rms per element of the un-normalised stream leaving the block"),
    "stream_rms_dual": Quantity(definition="stream_rms of ResiDual's second (u) branch"),
    "branch_rms_attention": Quantity(definition="uncentred rms per element of what attention adds to the stream"),
    "branch_rms_ffn": Quantity(definition="uncentred rms per element of what the FFN adds to the stream"),
    "grad_w1": _weight_gradient("the first FFN matrix W1"),
    "grad_w2": _weight_gradient("the second FFN matrix W2"),
    "grad_wq": _weight_gradient("the query matrix W_Q"),
    "grad_wk": _weight_gradient("the key matrix W_K"),
    "grad_wv": _weight_gradient("the value matrix W_V"),
    "grad_wo": _weight_gradient("the attention output matrix W_O"),
    "grad_stream": Quantity(
        definition="Frobenius norm over all tokens of the loss gradient with respect to the block's output, "
        "which is what the next block receives (after the norm in post-LN)",
        unit="nat",
    ),
    "grad_presum": Quantity(
        definition="Frobenius norm over all tokens of the loss gradient with respect to the tensor whose rms is "
        "stream_rms",
        unit="nat",
    ),
    "token_cosine": Quantity(
        definition="mean uncentred cosine between block outputs at different positions of one sequence"
    ),
    "cross_sequence_cosine": Quantity(
        definition="mean uncentred cosine between block outputs of different sequences, over all pairs of positions"
    ),
    "attention_logit_std": Quantity(
        definition="standard deviation of the attention logits after 1/sqrt(d_head), unmasked entries only"
    ),
    "attention_participation": Quantity(
        definition="mean over attention rows of the sum of squared weights: 1 is one token, 1/T is all alike"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A named set of the constants of a measurement.

    width is d, ffn_ratio r = d_ff / d, seq_len T, batch B, vocab V. embedding_std is the standard deviation of an
    embedding entry (of an input entry when input is 'gaussian'). With an encoder each block attends to its outputs too,
    [B, T, d]: those of a stack as deep as the decoder (encoder 'stack'), or normal ones of unit size any two of which
    have the cosine encoder_cosine ('cosine'). Raises ValueError where a value breaks its rule.
    """

    name: str
    width: int = 256
    heads: int = 4
    ffn_ratio: int = 4
    activation: str = "relu"
    attention: str = "causal"
    output_projection: bool = True
    norm: str = "layernorm"
    eps: float = 1e-5
    seq_len: int = 32
    batch: int = 32
    vocab: int = 1000
    embedding_std: float = 1.0
    input: str = "tokens"
    data: str = "uniform"
    tied_head: bool = False
    dtype: str = "float32"
    encoder: str = "none"
    encoder_cosine: float = 0.0

    def __post_init__(self) -> None:
        _require_name("Setup.name", self.name)
        for name in ("width", "heads", "ffn_ratio", "seq_len", "batch"):
            _require_count(f"Setup.{name}", getattr(self, name))
        _require_count("Setup.vocab", self.vocab, least=2)
        _require_number("Setup.eps", self.eps, least=0.0)
        _require_number("Setup.embedding_std", self.embedding_std, least=0.0, strictly=True)
        _require_number("Setup.encoder_cosine", self.encoder_cosine, least=0.0)
        for name, allowed in _CHOICES.items():
            _require_choice(f"Setup.{name}", getattr(self, name), allowed)
        if self.encoder_cosine > (1 if self.encoder == "cosine" else 0):
            raise ValueError(
                f"Setup.encoder_cosine is {self.encoder_cosine!r} and Setup.encoder is {self.encoder!r}: a cosine is "
                "at most 1, and belongs to encoder='cosine'."
            )
        for name in ("output_projection", "tied_head"):
            _require_choice(f"Setup.{name}", getattr(self, name), (True, False))
        if self.width % self.heads:
            raise ValueError(
                f"Setup.width is {self.width} and Setup.heads is {self.heads}: the width must be divisible by the "
                f"number of heads. Choose a width that is a multiple of {self.heads}, or another number of heads."
            )
        if self.tied_head and self.input != "tokens":
            raise ValueError(
                f"Setup.tied_head is True and Setup.input is {self.input!r}: a tied head needs an embedding. "
                "Use input='tokens', or tied_head=False."
            )

    @property
    def d_ff(self) -> int:
        """Width of the FFN's hidden activation."""
        return self.width * self.ffn_ratio

    @property
    def d_head(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads

    def weight_shapes(self) -> dict[str, tuple[int, int]]:
        """(n_out, n_in) of each weight matrix a block has in this setup, by role; cq to co attend to an encoder."""
        d, hidden = self.width, self.d_ff
        shapes = {"wq": (d, d), "wk": (d, d), "wv": (d, d), "wo": (d, d), "w1": (hidden, d), "w2": (d, hidden)}
        if self.attention == "uniform":
            del shapes["wq"], shapes["wk"]
        if not self.output_projection:
            del shapes["wo"]
        if self.encoder != "none":
            shapes |= {role.replace("w", "c"): (d, d) for role in ("wq", "wk", "wv", "wo") if role in shapes}
        return shapes


_CHOICES = {
    "encoder": ENCODERS,
    "activation": ACTIVATIONS,
    "attention": ATTENTIONS,
    "norm": NORMS,
    "input": INPUTS,
    "data": DATA,
    "dtype": DTYPES,
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One cell of a grid: a setup, where the norm sits, how weights are drawn, the depth L in blocks, the seed.

    kind says what is measured of it. A setup is measured in one kind only: its name leads to the rows. Ranges are
    checked here; whether placement and init are registered is checked by core, which knows them.
    """

    setup: Setup
    placement: str
    init: str
    depth: int
    seed: int
    kind: str = KINDS[0]

    def __post_init__(self) -> None:
        if not isinstance(self.setup, Setup):
            raise ValueError(f"Setting.setup is {self.setup!r}: it must be a Setup, for example Setup(name='page').")
        _require_name("Setting.placement", self.placement)
        _require_name("Setting.init", self.init)
        _require_count("Setting.depth", self.depth)
        _require_count("Setting.seed", self.seed, least=0)
        _require_choice("Setting.kind", self.kind, KINDS)

    @property
    def version(self) -> int:
        """Version of the measuring code that counts for this cell: MEASUREMENT_VERSION, or a later one of its own."""
        return max(MEASUREMENT_VERSION, REVISED.get(self.placement, 0), REVISED.get(self.init, 0))

    @property
    def key(self) -> str:
        """Identity of the cell: blake2b of its fields, defaults filled in, and of its version.

        A field at its default does not enter the digest, so that a field added later, with a default, changes no key.
        """
        facts = {"version": self.version, "setup": _distinct(self.setup)}
        facts |= {name: getattr(self, name) for name in ("placement", "init", "depth", "seed")}
        facts |= {"kind": self.kind} if self.kind != KINDS[0] else {}
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


_REALS = ("eps", "embedding_std", "encoder_cosine")


def _distinct(setup: Setup) -> dict[str, object]:
    chosen = {f.name: getattr(setup, f.name) for f in fields(setup) if getattr(setup, f.name) != f.default}
    return {name: value + 0.0 if name in _REALS else value for name, value in chosen.items()}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One number of one cell: a quantity, at a block (from 1) or, with block None, of the whole stack.

    A value that is not finite cannot be given: it is None, and status says why ('overflow', 'underflow', 'absent').
    """

    quantity: str
    value: float | None
    block: int | None = None
    stack: str = "decoder"
    status: str = field(default="ok")

    def __post_init__(self) -> None:
        known = QUANTITIES.get(self.quantity)
        if known is None:
            raise ValueError(f"Reading.quantity is {self.quantity!r}: it must be one of {', '.join(QUANTITIES)}.")
        if known.per_block != (self.block is not None):
            place = "needs a block" if known.per_block else "belongs to the whole stack, so block must be None"
            raise ValueError(f"Reading.block is {self.block!r}: the quantity {self.quantity} {place}.")
        if self.block is not None:
            _require_count("Reading.block", self.block)
        if (self.value is None) == (self.status == "ok"):
            raise ValueError(
                f"Reading of {self.quantity} has value {self.value!r} and status {self.status!r}: a value comes with "
                "status 'ok', and a missing value with a status that says why."
            )
        if self.value is not None:
            _require_number(f"Reading of {self.quantity}", self.value)


@dataclass(frozen=True, kw_only=True)
class PathReading:
    """J = d x_j / d x_i of one cell, from block i's output (0: the first block's input) to block j's, i < j.

    square estimates ||J||_F^2 / (T d), trace tr J / (T d), both means over n_probes random cotangents, one for each
    sequence of the batch, with their standard errors. None where they overflow. T d is what x_i has of elements.
    """

    from_block: int
    to_block: int
    n_probes: int
    square: float | None
    square_se: float | None
    trace: float | None
    trace_se: float | None

    def __post_init__(self) -> None:
        _require_count("PathReading.from_block", self.from_block, least=0)
        _require_count("PathReading.n_probes", self.n_probes)
        if not self.from_block < self.to_block:
            raise ValueError(
                f"PathReading leads from block {self.from_block} to block {self.to_block}: it must lead upwards."
            )


def _require_count(name: str, value: object, least: int = 1) -> None:
    if type(value) is not int or value < least:
        raise ValueError(f"{name} is {value!r}: it must be a whole number of at least {least}.")


def _require_number(name: str, value: object, least: float = -math.inf, strictly: bool = False) -> None:
    is_number = type(value) in (int, float) and abs(value) <= sys.float_info.max
    if not is_number or value < least or (strictly and value == least):
        rule = "a finite number" if least == -math.inf else f"a finite number {'above' if strictly else 'from'} {least}"
        raise ValueError(f"{name} is {value!r}: it must be {rule}.")


def _require_name(name: str, value: object) -> None:
    if type(value) is not str or not value.isidentifier():
        raise ValueError(
            f"{name} is {value!r}: it must be a name of letters, digits and underscores that does not begin with a "
            "digit, such as 'page'."
        )


def _require_choice(name: str, value: object, allowed: tuple) -> None:
    if value not in allowed or type(value) is not type(allowed[0]):
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, allowed))}.")
