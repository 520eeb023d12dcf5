"""Claims: what papers and pages say, and what the readings say of it; the whole ledger, with its evidence."""

import pandas as pd
import streamlit as st

from lnmeasure.dashboard import claims as views
from lnmeasure.dashboard.prose import Row
from lnmeasure.pages import numbers
from lnmeasure.pages.address import choose, remember, say_unknown
from lnmeasure.pages.source import ask, current_store, say_origin
from lnmeasure.pages.verdicts import address_of, ledger, region_of

SETUP = "page"
TITLE = "Claims: what papers say, and what is measured"
EVERY = "all"
QUESTIONS = {
    "GPT-2's residual init": ("S0-gpt2",),
    "Four statements on initialisation and warm-up": ("Q-A", "Q-B", "Q-C", "Q-D"),
    "A flash card on the two streams": ("F1", "F2"),
}
"""What a reader can try first. Which statements hold is for the readings to say."""

store = current_store()


def short(source: str) -> str:
    """The name of a source, without its place."""
    return source.split(",")[0].split(":")[0]


def filters(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims of the chosen source and verdict in which the words looked for occur."""
    sources = [EVERY, *sorted(set(map(short, claims.source)))]
    words = [EVERY, *(name for name in views.MARKS if (claims.verdict == name).any())]
    state = st.session_state
    if state.get("claims_source") not in sources:
        state.claims_source = choose("source", sources, EVERY)
    if state.get("claims_verdict") not in words:
        state.claims_verdict = choose("verdict", words, EVERY)
    left, middle, right = st.columns(3)
    source = left.selectbox("Source", sources, key="claims_source")
    verdict = middle.selectbox("Verdict", words, key="claims_verdict")
    search = right.text_input("Search", key="claims_search", placeholder="a word of the claim or its reason")
    kept = [row.Index for row in claims.itertuples() if is_wanted(row, source, verdict, search.strip().lower())]
    return claims.loc[kept]


def is_wanted(row: Row, source: str, verdict: str, search: str) -> bool:
    """Whether a claim is of a source and a verdict and has some words."""
    words = " ".join((row.claim_id, row.source, row.statement, row.why)).lower()
    return source in (EVERY, short(row.source)) and verdict in (EVERY, row.verdict) and search in words


def look(claims: pd.DataFrame, parts: pd.DataFrame) -> str:
    """One claim: its card, a chart, its evidence and query, what would change our mind. Its id."""
    ids = claims.claim_id.tolist()
    if st.session_state.get("claims_claim") not in ids:
        begun = "claims_claim" in st.session_state  # then a filter took the claim away, not the address
        st.session_state.claims_claim = ids[0] if begun else choose("claim", ids, ids[0])
    names = {row.claim_id: f"{row.claim_id} · {views.verdict_words(row.verdict)}" for row in claims.itertuples()}
    chosen = st.selectbox("One claim", ids, key="claims_claim", format_func=names.get)
    (row,) = claims[claims.claim_id == chosen].itertuples()
    own = parts[parts.claim_id == chosen]
    detail(row, own)
    return chosen


def detail(row: Row, parts: pd.DataFrame) -> None:
    """Everything that is known of a claim."""
    claim = ledger().get(row.claim_id)
    more = [("predicts", claim.predicts), ("assumes", claim.assumptions)] if claim else []
    revise = [("would change our mind", claim.revise)] if claim else []
    st.html(views.card_html(row, more=[*more, *revise]))
    leading = parts[parts.estimate.eq(row.estimate) & parts.expected.eq(row.expected)].head(1)
    for part in leading.itertuples():
        if region := region_of(row.claim_id, part.part):
            st.caption(f"{part.part}, setup {part.setup}")
            alt = f"Expected {row.expected}, measured {views.measured(row)}"
            st.altair_chart(views.against_chart(row, region), alt=alt)
    if claim and (address := address_of(claim)):
        st.markdown(f"[See it at {claim.link['depth']} blocks, init {claim.link['init']}]({address})")
    with st.expander(f"Its evidence, {len(parts)} {'part' if len(parts) == 1 else 'parts'}"):
        st.dataframe(views.part_table(parts), hide_index=True)
    if not pd.isna(row.evidence_sql):
        with st.expander("The query of its readings"):
            st.code(row.evidence_sql, language="sql")


def check_yourself(claims: pd.DataFrame) -> None:
    """Statements the reader judges first; the readings answer second."""
    rows = {row.claim_id: row for row in claims.itertuples()}
    st.subheader("Check yourself")
    st.markdown("Think first, then answer: what the readings say opens with your answer.")
    for title, ids in QUESTIONS.items():
        there = [rows[name] for name in ids if name in rows]
        if not there:
            continue
        st.markdown(f"**{title}**")
        for row in there:
            given = st.radio(
                row.statement, ["holds", "does not hold"], index=None, horizontal=True, key=f"answer_{row.claim_id}"
            )
            if given:
                st.html(
                    f'<div class="ln-claim"><p>{views.agreement(row, given == "holds")} '
                    f"{views.verdict_html(row.verdict)}</p></div>"
                )
                st.caption(row.why)


def page() -> None:
    """Filters, one claim, the ledger, the questions and the tables."""
    (seeds,) = ask(store, "seeds", setup=SETUP).itertuples()
    say_origin(store, seeds)
    st.html(views.STYLE)
    st.title(TITLE)
    say_unknown({"source", "verdict", "claim"})
    claims, parts = ask(store, "claims"), ask(store, "claim_parts")
    if claims.empty:
        st.info(
            f"No claim is judged in {store.path.name} yet. 'make refresh' judges the ledger's {len(ledger())} claims "
            "and measures nothing again for that; 'python -m jobs.claims check' prints the verdicts at once."
        )
        return
    st.markdown(
        "A claim is a sentence somebody published, and what it predicts as a quantity and a relation. Its verdict is "
        "computed from the readings when the store is published: an interval inside what it allows reproduces it, "
        "one outside contradicts it, one across the border leaves it untested."
    )
    kept = filters(claims)
    st.markdown(views.counted(kept))
    chosen = None
    if len(kept):
        chosen = look(kept, parts)
        st.subheader("The ledger")
        st.html(views.cards_html(kept))
    state = st.session_state
    remember(source=state.claims_source, verdict=state.claims_verdict, **({"claim": chosen} if chosen else {}))
    check_yourself(claims)
    found = {
        "Verdicts": (kept, "claims"),
        "Evidence": (parts[parts.claim_id.isin(kept.claim_id)], "claims_evidence"),
    }
    numbers.tables(store, found, ("claims", "claim_parts"), {})
    st.caption("Every point is a mean over seeds with its 95 % interval.")


page()
