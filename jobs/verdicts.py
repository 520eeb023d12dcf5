"""What the readings say of the ledger's claims: judged anew whenever a store is published, and kept in it."""

from lnmeasure.claims.judging import Ask, judge
from lnmeasure.claims.ledger import shipped
from lnmeasure.store.building import Building
from lnmeasure.store.reader import Store

Rows = list[list[object]]


def rows_of(ask: Ask) -> tuple[Rows, Rows]:
    """The rows of the tables verdict and evidence that follow from what a store answers."""
    found = judge(shipped(), ask)
    return [verdict.row() for verdict in found], [one.row(v.claim.id) for v in found for one in v.evidence]


def are_kept(store: Store) -> bool:
    """Whether a store keeps the verdicts that its readings and today's ledger give."""
    made = (_without_floats(rows) for rows in rows_of(store.readings))
    return all(kept == now for kept, now in zip(map(_without_floats, store.judged()), made, strict=True))


def bring_up(building: Building) -> None:
    """Judge the ledger by the building file, in the place of what was judged before."""
    building.judge(*rows_of(building.readings))


def _without_floats(rows: Rows) -> set[tuple[object, ...]]:
    """What does not hang on the order in which a machine adds up: words, counts and figures of four digits."""
    return {tuple(None if isinstance(value, float) else value for value in row) for row in rows}
