"""The variance of an entry of each matrix, by init: all that the mean-field prediction knows of a scheme."""

from collections.abc import Callable
from dataclasses import dataclass

from lnmeasure.records import Setup

_RESIDUAL_OUTPUTS = ("wo", "w2")


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix of a block: its role, its fans, its block from 1 and the stack's depth L."""

    role: str
    n_in: int
    n_out: int
    block: int
    depth: int

    @property
    def xavier(self) -> float:
        """2 / (n_in + n_out)."""
        return 2 / (self.n_in + self.n_out)

    @property
    def writes(self) -> bool:
        """Whether it writes into the stream: W_O and W_2."""
        return self.role in _RESIDUAL_OUTPUTS


def _small(matrix: Matrix) -> float:
    return 0.02**2


VARIANCES: dict[str, Callable[[Matrix], float]] = {
    "xavier_uniform": lambda m: m.xavier,
    "xavier_normal": lambda m: m.xavier,
    "xavier_residual": lambda m: m.xavier / (2 * m.depth if m.writes else 1),
    "gpt2": lambda m: _small(m) / (2 * m.depth if m.writes else 1),
    "normal_002": _small,
    "he": lambda m: (2 if m.role == "w1" else 1) / m.n_in,
    "lecun": lambda m: 1 / m.n_in,
    "torch_linear": lambda m: 1 / (3 * m.n_in),
    "small_wang": lambda m: 4 / (m.depth**2 * m.n_out) if m.writes else 2 / (5 * m.n_in),
    "ds_init": lambda m: m.xavier / m.block,
    "orthogonal": lambda m: (2 if m.role == "w1" else 1) / max(m.n_in, m.n_out),
    "theory": lambda m: 0.0 if m.role in ("wq", "wk") else m.xavier,
}
"""By init. Orthogonal matrices have the variance of 1 / max(fans): their rows or columns are of unit length."""

WHOLE_MODEL = ("gpt2", "normal_002")
"""Inits that draw embeddings and head as small as the rest."""


def variance(init: str, setup: Setup, role: str, block: int, depth: int) -> float:
    """Of an entry of the matrix of a role in a block of a stack of L = depth. KeyError for an init without a rule."""
    n_out, n_in = setup.weight_shapes()[role]
    return VARIANCES[init](Matrix(role=role, n_in=n_in, n_out=n_out, block=block, depth=depth))


def embedding_variance(init: str, setup: Setup) -> float:
    """Of an entry of the embedding: the setup's, but where the init draws the whole model."""
    return 0.02**2 if init in WHOLE_MODEL else setup.embedding_std**2


def head_variance(init: str, setup: Setup) -> float:
    """Of an entry of the head: Xavier's 2 / (d + V), but where the init draws the whole model."""
    return 0.02**2 if init in WHOLE_MODEL else 2 / (setup.width + setup.vocab)
