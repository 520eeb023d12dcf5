"""Weight: which tensor is drawn. What inits and the gains of placements are asked about."""

from dataclasses import dataclass

from lnmeasure.core.registry import known


@dataclass(frozen=True, kw_only=True)
class Weight:
    """Which tensor is drawn: its role, its fans, its block from 1 (0 outside blocks) and the stack's depth L.

    Asking for the depth of a tensor that is drawn for stacks of any depth (stack_depth None) raises DepthAsked.
    """

    role: str
    n_in: int
    n_out: int
    block: int
    stack_depth: int | None

    @property
    def depth(self) -> int:
        """Depth L of the stack, in blocks."""
        return known(self.stack_depth)

    @property
    def is_residual_output(self) -> bool:
        """True for W_O, also of attention to an encoder, and W_2: the matrices that write into the stream."""
        return self.role in ("wo", "co", "w2")

    @property
    def width(self) -> int:
        """d, the width of the stream this matrix reads from or writes into."""
        return self.n_out if self.is_residual_output else self.n_in

    @property
    def xavier_variance(self) -> float:
        """2 / (n_in + n_out), Glorot and Bengio 2010."""
        return 2 / (self.n_in + self.n_out)
