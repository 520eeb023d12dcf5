"""Gradient paths: the handbook's pictures, measured."""

import pandas as pd
import streamlit as st

from lnmeasure.dashboard import paths as charts
from lnmeasure.dashboard import prose_paths as words
from lnmeasure.dashboard.theme import PLACEMENTS
from lnmeasure.pages import numbers, verdicts
from lnmeasure.pages.address import choose, choose_depth, choose_several, remember, say_unknown
from lnmeasure.pages.source import ask, current_store, say_origin
from lnmeasure.theory import toy

SETUP, INIT = "paths", "xavier_uniform"
TITLE = "Gradient paths: is there a highway?"
COMPARED, MOST = ["post", "pre", "sandwich", "reordered"], 4
QUERIES = ("path_sizes", "path_factors", "stream_gradients", "rank_collapse")
TOY_DEPTHS = (6, 12, 24, 48)

store = current_store()


def controls(depths: list[int], placements: list[str]) -> tuple[int, str, list[str]]:
    """Depth, measure and placements; the session owns them once the page is open, and the address follows."""
    state = st.session_state
    if state.get("path_depth") not in depths:
        state.path_depth = choose_depth(depths)
    if state.get("path_measure") not in charts.MEASURES:
        state.path_measure = choose("measure", list(charts.MEASURES), charts.SIZE)
    if not set(state.get("path_compare", [None])) <= set(placements):
        default = [name for name in COMPARED if name in placements] or placements[:MOST]
        state.path_compare = choose_several("compare", placements, default, MOST)
    left, middle, right = st.columns([2, 2, 4])
    left.select_slider("Depth, in blocks", depths, key="path_depth")
    middle.selectbox("In the cells", list(charts.MEASURES), key="path_measure", format_func=charts.MEASURES.get)
    right.multiselect(
        "Placements", placements, key="path_compare", max_selections=MOST, format_func=lambda n: PLACEMENTS[n].label
    )
    say_unknown({"depth", "measure", "compare"})
    remember(depth=state.path_depth, measure=state.path_measure, compare=",".join(state.path_compare))
    return state.path_depth, state.path_measure, list(state.path_compare)


def heat_maps(depth: int, measure: str, compared: list[str], factors: pd.DataFrame) -> None:
    """A heat map per placement, side by side, in the same colours."""
    st.markdown(words.highway(factors, depth))
    rows = ask(store, "path_sizes", setup=SETUP, init=INIT, depth=depth, compared=compared)
    if rows.empty:
        st.info("Choose a placement, and its paths are drawn here.")
        return
    scale = charts.heat_scale(rows, measure)
    there = [name for name in compared if (rows.placement == name).any()]
    for column, name in zip(st.columns(len(there), gap="small"), there, strict=True):
        label = PLACEMENTS[name].label
        column.markdown(f"**{label}**")
        alt = f"{charts.MEASURES[measure]} from every block to every later one, {label}, {depth} blocks"
        column.altair_chart(charts.heat_map(rows[rows.placement == name], measure, scale), alt=alt)
    st.caption(words.sizes_caption(rows))


def stream() -> None:
    """The gradient of the stream at every block of every depth, and times the stream."""
    rows = ask(store, "stream_gradients", setup="page", init=INIT)
    if rows.empty:
        return
    st.subheader("The gradient of the stream, block by block")
    left, right = st.columns(2, gap="medium")
    alt = "post-LN and pre-LN against the block's share of the stack, a line per depth"
    with left:
        st.altair_chart(
            charts.stream_gradients(rows, "mean", "||dL/dx|| of the block's output"), alt=f"Gradient, {alt}"
        )
    with right:
        st.altair_chart(charts.stream_gradients(rows, "product", "||dL/dx|| times stream rms"), alt=f"Product, {alt}")
    st.caption(
        "Setup `page`. To the right the gradient is multiplied by the rms of the stream: in pre-LN one falls as the "
        "other grows, and the product shows what is left of the stack's own making."
    )


def toys() -> None:
    """The handbook's toy with both backward passes, and its hand-set factor under the reader's hand."""
    st.subheader("The handbook's toy, simplified and exact")
    left, middle, right = st.columns(3)
    count = left.select_slider("Blocks of the toy", TOY_DEPTHS, value=48, key="toy_blocks")
    factor = middle.slider("Hand-set factor per block", 0.8, 1.0, 0.95, 0.01, key="toy_factor")
    scale = right.slider("Standard deviation of a weight", 0.005, 0.1, 0.02, 0.005, key="toy_scale", format="%.3f")
    sizes = _toy_sizes(count, factor, scale)
    st.altair_chart(
        charts.toy_chart(sizes), alt="Gradient of the toy per block, exact and simplified, post-LN and pre-LN"
    )
    st.markdown(words.toy(sizes, count, factor))


@st.cache_data(show_spinner=False, max_entries=200)
def _toy_sizes(count: int, factor: float, scale: float) -> pd.DataFrame:
    one = toy.Toy(blocks=count, factor=factor, scale=scale)
    return pd.DataFrame(
        [
            {"placement": placement, "backward": name, "block": block, "size": size}
            for placement in toy.PLACEMENTS
            for name, exact in (("simplified", False), ("exact", True))
            for block, size in enumerate(toy.profiles(one, placement, exact).mean(0))
        ]
    )


def decay(factors: pd.DataFrame) -> None:
    """f^n, and what measured stacks leave."""
    st.subheader("A factor per block, and what stacks really leave")
    own = st.slider("A factor of your own", 0.9, 1.1, 1.0, 0.005, key="decay_factor", format="%.3f")
    shown = factors[factors.placement.isin(["post", "pre", *st.session_state.path_compare])]
    chart = charts.decay_chart([0.99, 0.98, 0.95, own], shown)
    st.altair_chart(chart, alt="A factor per block to the power of blocks, and the measured Jacobians of whole stacks")
    st.markdown(words.decay(factors))


def derivation() -> None:
    """Both block Jacobians."""
    st.subheader("Why")
    st.markdown(
        "A sublayer of post-LN is $x' = N(x + F(x))$, so its Jacobian is $J_N (I + J_F)$: the norm's stands before "
        "everything, the identity included, and divides by the spread $\\sigma$ of the sum. One of pre-LN is $x' = x "
        "+ F(N(x))$, so $I + J_F J_N$: the identity stands alone. A product over $L$ blocks therefore holds the "
        "identity itself in pre-LN, and $\\prod 1/\\sigma$ of it in post-LN. But $\\sigma^2 = 1 + \\|F\\|^2/d$ counts "
        "just what the branch adds, and $J_F$ returns it: in $\\|J_N (I + J_F)\\|^2 \\approx (1 + "
        "\\|J_F\\|^2)/\\sigma^2$ numerator and denominator are nearly the same, which is why the size stays near 1 "
        "while the identity's share is gone."
    )


def collapse(depth: int, compared: list[str]) -> None:
    """Tokens become alike, and W_Q and W_K lose their gradients."""
    rows = ask(store, "rank_collapse", setup="page", init=INIT, depth=_catalogued(depth), compared=compared)
    if rows.empty:
        return
    st.subheader("As tokens become alike, the gradients of queries and keys vanish")
    left, right = charts.collapse_charts(rows)
    for column, chart, alt in zip(
        st.columns(2, gap="medium"), (left, right), ("Cosine between tokens", "Gradient of W_Q"), strict=True
    ):
        column.altair_chart(chart, alt=f"{alt} per block")
    st.markdown(words.collapse(rows, _catalogued(depth)))
    st.caption("Noci et al. 2022, arXiv:2206.03126. Setup `page`, at the depth of the catalogue nearest to yours.")


def _catalogued(depth: int) -> int:
    depths = ask(store, "matrix_depths", setup="page").depth.tolist()
    return min(depths, key=lambda other: abs(other - depth))


def page() -> None:
    """From the pictures to what they are made of."""
    depths = ask(store, "path_depths", setup=SETUP, init=INIT).depth.tolist()
    if not depths:
        st.title(TITLE)
        st.error(
            f"The store {store.path.name} has no Jacobians from block to block. Measure them with 'make refresh', or "
            "bring the shipped store back with 'git checkout HEAD data'."
        )
        return
    (seeds,) = ask(store, "path_seeds", setup=SETUP).itertuples()
    say_origin(store, seeds)
    st.title(TITLE)
    factors = ask(store, "path_factors", setup=SETUP, init=INIT)
    depth, measure, compared = controls(depths, list(PLACEMENTS.of(factors.placement)))
    heat_maps(depth, measure, compared, factors)
    verdicts.cards(store, ("H1", "H2"))
    stream()
    toys()
    decay(factors)
    derivation()
    collapse(depth, compared)
    verdicts.cards(store, ("R1",))
    found = {
        f"Every pair at depth {depth}": (
            ask(store, "path_sizes", setup=SETUP, init=INIT, depth=depth, compared=compared),
            f"{SETUP}_{INIT}_depth{depth}",
        ),
        "Whole stacks": (factors, f"{SETUP}_{INIT}_factors"),
    }
    numbers.tables(store, found, QUERIES, {"setup": SETUP, "init": INIT, "depth": depth, "compared": compared})


page()
