"""What the store says of the ledger's claims, joined with the ledger; and the panel that Home shows of it."""

from functools import cache
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from lnmeasure.claims.judging import at_depth
from lnmeasure.claims.ledger import Claim, Part, shipped
from lnmeasure.dashboard import claims as views
from lnmeasure.dashboard.prose import Row
from lnmeasure.pages.source import ask
from lnmeasure.store.reader import Store

MOST = 3
"""Cards in Home's panel."""
AT = at_depth(0).removesuffix("0")
"""What stands between the name of a part and a depth."""
HOME_PLACEMENTS = (None, "post", "pre")


@cache
def ledger() -> dict[str, Claim]:
    """The claims of this package by id."""
    return {claim.id: claim for claim in shipped()}


def region_of(claim_id: str, part: str) -> views.Region | None:
    """What the ledger allows for a part; None where it has no such part, or nothing measures it yet."""
    found = part_of(claim_id, part)
    if found is None or found.relation is None:
        return None
    region = found.relation.region
    return views.Region(target=region.target, low=region.low, high=region.high)


def part_of(claim_id: str, name: str) -> Part | None:
    """The part of the ledger by the name of its evidence, which has the depth behind it where it is of one depth."""
    claim = ledger().get(claim_id)
    parts = claim.parts if claim else ()
    return next((part for part in parts if name == part.name or name.startswith(part.name + AT)), None)


def address_of(claim: Claim, depth: int | None = None) -> str | None:
    """Where a claim shows best: Home for post and pre, Placements and inits for the others. Relative to any page."""
    link = {**claim.link, **({"depth": depth} if depth else {})}
    if not claim.link:
        return None
    if link.get("placement") in HOME_PLACEMENTS:
        return "./?" + urlencode({key: link[key] for key in ("depth", "init")})
    return "./placements?" + urlencode({key: link[key] for key in ("depth", "placement", "init")})


def panel(store: Store, depth: int) -> None:
    """The strongest disagreements at a depth, three cards side by side, or why there are none."""
    claims = ask(store, "claims")
    found = strongest(claims, ask(store, "claim_parts"), depth)
    st.html(views.STYLE)
    st.subheader("Where theory and measurement part ways")
    if claims.empty:
        st.info("The claims have not been judged against this store yet. `make refresh` judges them.")
        return
    if not found:
        st.info("No claim fails at this depth. The page Claims has all of them.")
        return
    st.markdown(views.panel_lead(claims, depth))
    for column, row in zip(st.columns(len(found), gap="medium"), found, strict=True):
        with column:
            st.html(views.card_html(row))
            region = region_of(row.claim_id, row.part)
            alt = f"Expected {row.expected}, measured {views.measured(row)}"
            st.altair_chart(views.against_chart(row, region), alt=alt)
    st.page_link("claims.py", label="All claims, with their evidence", icon=":material/rule:")


def cards(store: Store, ids: tuple[str, ...]) -> None:
    """What became of some claims, a card each; nothing where the store has not judged them."""
    claims = ask(store, "claims")
    some = claims[claims.claim_id.isin(ids)]
    if len(some):
        st.html(views.STYLE)
        st.html(views.cards_html(some))


def strongest(claims: pd.DataFrame, parts: pd.DataFrame, depth: int) -> list[Row]:
    """What fails at this depth, or at none in particular, of claims that fail: furthest off first, one per source."""
    failing = claims[claims.verdict.isin(["contradicted", "outside its assumptions"])]
    told = failing[["claim_id", "source", "statement", "verdict", "why"]]
    rows = parts[parts.holds.eq(False)].merge(told, on="claim_id")
    here = [row for row in rows.itertuples() if _is_of(row.part, depth) and region_of(row.claim_id, row.part)]
    first: dict[str, Row] = {}
    for row in sorted(here, key=_off, reverse=True):
        first.setdefault(row.source.split(":")[0], row)
    return [_because(row) for row in list(first.values())[:MOST]]


def _off(row: Row) -> float:
    return region_of(row.claim_id, row.part).overshoot(row.estimate)


def _is_of(part: str, depth: int) -> bool:
    return part.endswith(at_depth(depth)) or AT not in part


def _because(row: Row) -> Row:
    """The row with the reason the ledger knows for this part, and the part's name before what is expected."""
    part = part_of(row.claim_id, row.part)
    return row._replace(why=part.because or row.why, expected=f"{row.part}: {row.expected}")
