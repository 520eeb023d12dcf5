"""Theory: how the prediction is made, and how far it is from what is measured."""

from importlib.resources import files

import pandas as pd
import streamlit as st

from lnmeasure.claims.interval import over_seeds
from lnmeasure.dashboard import prose_theory as words
from lnmeasure.pages import numbers
from lnmeasure.pages.source import ask, current_store, say_origin
from lnmeasure.records import Setting, Setup
from lnmeasure.theory.jacobian import norm_jacobians
from lnmeasure.theory.predict import sampling_error

SETUP = "page"
SCALES = (1, 2, 4, 8)
SAMPLED = ("post", "pre", "reordered_no_qk")
"""Whose sampling error is shown: the two of the paper, and the placement whose softmax is hardest."""
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
    profiles()
    widths()
    sampling()
    lemma_2()
    lemma_3()
    st.divider()
    st.markdown(files("lnmeasure.theory").joinpath("derivation.md").read_text(encoding="utf-8"))


def profiles() -> None:
    """Block by block: which predictions miss the goal, and which of those by more than chance."""
    rows = ask(store, "prediction_outliers", setup=SETUP)
    if rows.empty:
        return
    st.subheader("Block by block: where it misses")
    st.markdown(words.outlier_summary(rows))
    st.dataframe(words.outlier_table(rows), hide_index=True, width="stretch")
    st.markdown(words.outlier_reasons(rows, ask(store, "alike", setup=SETUP)))


def widths() -> None:
    """The recursion is exact for infinite width: its error falls as stacks grow wider."""
    rows = ask(store, "prediction_by_width")
    if len(rows) < 2:
        return
    st.subheader("The wider the stack, the nearer")
    st.markdown(words.width_summary(rows))
    st.dataframe(words.width_table(rows), hide_index=True, width="stretch")


def sampling() -> None:
    """What the random numbers leave, over which attention is averaged."""
    st.subheader("What sampling leaves")
    st.markdown(
        "Softmax weights are averaged over random logits: the only random numbers in the prediction. Drawn anew four "
        "times at 64 blocks with init `xavier_uniform`, they move it by (standard deviation, at the block where it is "
        "largest):"
    )
    st.dataframe(words.sampling_table({name: _sampling_error(name) for name in SAMPLED}), hide_index=True)


@st.cache_data(show_spinner=False)
def _sampling_error(placement: str) -> dict[str, float]:
    setup = Setup(name=SETUP)
    return sampling_error(Setting(setup=setup, placement=placement, init="xavier_uniform", depth=64, seed=0))


def lemma_3() -> None:
    """A norm's Jacobian against the size of what it norms."""
    st.subheader("LayerNorm divides the gradient by the size of its input")
    table = _lemma_3(Setup(name=SETUP).width, Setup(name=SETUP).eps)
    st.markdown(words.lemma_3(table))
    rows = []
    for scale, seeds in table.groupby("scale"):
        found = over_seeds(seeds["measured"].tolist())
        rows.append((scale, found.estimate, found.low, found.high, seeds["lemma"].mean()))
    told = pd.DataFrame(rows, columns=["scale", "mean", "low", "high", "lemma"])
    st.dataframe(words.lemma_3_table(told), hide_index=True, width="stretch")
    st.caption(
        "Xiong et al. 2020, Lemma 3: the spectral norm of LayerNorm's Jacobian is √d over the length of its input. "
        f"Measured here, as the page opens, by central differences at d = {Setup(name=SETUP).width}, inputs "
        "k N(0, 1), ten seeds; float64."
    )


@st.cache_data(show_spinner=False)
def _lemma_3(width: int, eps: float) -> pd.DataFrame:
    found = norm_jacobians(SCALES, width, eps)
    rows = [(j.scale, seed, m, s) for j in found for seed, (m, s) in enumerate(zip(j.measured, j.lemma, strict=True))]
    return pd.DataFrame(rows, columns=["scale", "seed", "measured", "lemma"])


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
