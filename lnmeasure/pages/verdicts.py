"""What the store says of the ledger's claims, joined with the ledger; and the panel that Home shows of it."""

from functools import cache
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from lnmeasure.claims.judging import at_depth
from lnmeasure.claims.ledger import Claim, shipped
from lnmeasure.dashboard import claims as views
from lnmeasure.dashboard.prose import Row
from lnmeasure.pages.source import ask
from lnmeasure.store.reader import Store

MOST = 3
"""Cards in Home's panel."""
HOME_PLACEMENTS = (None, "post", "pre")


@cache
def ledger() -> dict[str, Claim]:
    """The claims of this package by id."""
    return {claim.id: claim for claim in shipped()}


def region_of(claim_id: str, part: str) -> views.Region | None:
    """What the ledger allows for a part, which evidence at one depth names with its depth behind."""
    claim = ledger().get(claim_id)
    for one in claim.parts if claim else ():
        if one.relation and (part == one.name or part.startswith(one.name + at_depth(0)[:-1])):
            region = one.relation.region
            return views.Region(target=region.target, low=region.low, high=region.high)
    return None


def address_of(claim: Claim, depth: int | None = None) -> str | None:
    """Where a claim shows best: Home for post and pre, Placements and inits for the others. Relative to any page."""
    link = {**claim.link, **({"depth": depth} if depth else {})}
    if not claim.link:
        return None
    if link.get("placement") in HOME_PLACEMENTS:
        return "./?" + urlencode({key: link[key] for key in ("depth", "init")})
    return "./placements?" + urlencode({key: link[key] for key in ("depth", "placement", "init")})


def panel(store: Store, depth: int) -> bool:
    """The strongest disagreements at a depth, three cards side by side. Whether there are any to show."""
    claims = ask(store, "claims")
    found = strongest(claims, ask(store, "claim_parts"), depth)
    if not found:
        return False
    st.html(views.STYLE)
    st.subheader("Where theory and measurement part ways")
    st.markdown(views.panel_lead(claims, depth))
    for column, row in zip(st.columns(len(found), gap="medium"), found, strict=True):
        with column:
            st.html(views.card_html(row))
            region = region_of(row.claim_id, row.part)
            alt = f"Expected {row.expected}, measured {views.measured(row)}"
            st.altair_chart(views.against_chart(row, region), alt=alt)
    st.page_link("claims.py", label="All claims, with their evidence", icon=":material/rule:")
    return True


def strongest(claims: pd.DataFrame, parts: pd.DataFrame, depth: int) -> list[Row]:
    """Of claims that fail, what fails at this depth or at no depth in particular; furthest off first, one per source."""
    failing = claims[claims.verdict.isin(["contradicted", "outside its assumptions"])]
    told = failing[["claim_id", "source", "statement", "verdict", "why"]]
    rows = parts[parts.holds.eq(False)].merge(told, on="claim_id")
    ranked = sorted(
        (
            (_off(row), row)
            for row in rows.itertuples()
            if _is_of(row.part, depth) and region_of(row.claim_id, row.part)
        ),
        key=lambda pair: -pair[0],
    )
    first: dict[str, Row] = {}
    for _, row in ranked:
        first.setdefault(row.source.split(":")[0], row)
    return [_because(row) for row in list(first.values())[:MOST]]


def _off(row: Row) -> float:
    return region_of(row.claim_id, row.part).overshoot(row.estimate)


def _is_of(part: str, depth: int) -> bool:
    return part.endswith(at_depth(depth)) or at_depth(0)[:-1] not in part


def _because(row: Row) -> Row:
    """The row with the reason the ledger knows for this part, and the part's name before what is expected."""
    part = next(p for p in ledger()[row.claim_id].parts if row.part.startswith(p.name))
    return row._replace(why=part.because, expected=f"{row.part}: {row.expected}")
