"""Theory: how the prediction is made, and how far it is from what is measured."""

from importlib.resources import files

import streamlit as st

from lnmeasure.dashboard import prose
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
    st.markdown(prose.prediction_summary(errors))
    st.subheader("How far the prediction is off")
    st.caption(
        "Relative errors of the prediction against the mean over seeds, over every init and depth measured in setup "
        f"`{SETUP}`, in percent. Where a placement has no number, the recursion does not say it."
    )
    found = {"By placement": (prose.prediction_table(errors), f"{SETUP}_prediction_errors")}
    numbers.tables(store, found, ["prediction_errors"], {"setup": SETUP})
    st.divider()
    st.markdown(files("lnmeasure.theory").joinpath("derivation.md").read_text(encoding="utf-8"))


page()
