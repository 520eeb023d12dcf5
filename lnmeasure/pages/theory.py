"""Theory: how the prediction is made, and how far it is from what is measured."""

from importlib.resources import files

import streamlit as st

from lnmeasure.dashboard import prose_theory as words
from lnmeasure.pages import numbers
from lnmeasure.pages.source import ask, current_store, say_origin

SETUP = "page"
TITLE = "Theory: what a stack of blocks should read"

store = current_store()


def page() -> None:
    """The errors first, then the derivation."""
    (seeds,) = ask(store, "seeds", setup=SETUP).itertuples()
    say_origin(store, seeds)
    st.title(TITLE)
    errors = ask(store, "prediction_errors", setup=SETUP)
    st.markdown(words.prediction_summary(errors))
    st.subheader("How far the prediction is off")
    st.caption(
        "Relative errors of the prediction against the mean over seeds, over every init and depth measured in setup "
        f"`{SETUP}`, in percent. Where a placement has no number, the recursion does not say it."
    )
    found = {"By placement": (words.prediction_table(errors), f"{SETUP}_prediction_errors")}
    numbers.tables(store, found, ["prediction_errors"], {"setup": SETUP})
    lemma_2()
    st.divider()
    st.markdown(files("lnmeasure.theory").joinpath("derivation.md").read_text(encoding="utf-8"))


def lemma_2() -> None:
    """The paper's own setting, where its assumptions hold, against its Lemma 2."""
    rows = ask(store, "lemma_2", setup="xiong_theory", init="xavier_uniform", depth=12)
    if rows.empty:
        return
    st.subheader("The setting of the theory, measured")
    st.markdown(words.lemma_2(rows))
    st.dataframe(words.lemma_2_table(rows), hide_index=True, width="stretch")
    st.caption(
        "Xiong et al. 2020, Lemma 2: post-LN's stream has mean square 3/2 before the norm after the FFN, in every "
        "block; pre-LN's lies between 1 + l/2 and 1 + 3l/2 after block l. Setup `xiong_theory`: one head, d x d "
        "matrices, attention a plain mean over both sides, no output projection, Gaussian inputs."
    )


page()
