"""Home: how big is the gradient? From top to bottom in a reader's order."""

import math

import streamlit as st

from lnmeasure.dashboard import charts, prose
from lnmeasure.dashboard.readouts import readouts_html
from lnmeasure.dashboard.theme import PLACEMENTS, REFERENCES, SCALING_INITS
from lnmeasure.pages import numbers, verdicts
from lnmeasure.pages.address import choose_depth, choose_init, remember
from lnmeasure.pages.source import ask, current_store, say_origin

SETUP = "page"
TITLE = "How big is the gradient? It depends on what the last LayerNorm divides by."

store = current_store()


def only_row(question: str, **parameters: object) -> prose.Row:
    """The single row a question answers with."""
    (row,) = ask(store, question, **parameters).itertuples()
    return row


def equations() -> None:
    """The two updates, in the colours that mean post and pre everywhere."""
    rows = prose.by_name(ask(store, "equations"), "placement")
    for column, name in zip(st.columns(2), REFERENCES, strict=True):
        look = PLACEMENTS[name]
        with column:
            st.html(f'<strong style="color:{look.colour}">{look.label}</strong>')
            st.code(rows[name].equation, language=None)
            st.caption(rows[name].source)
    st.caption("N is the norm, here LayerNorm; F is a sublayer, attention and then the FFN; a block is both.")


def controls(inits: list[str]) -> tuple[str, int]:
    """Init and depth. The session owns them once the page is open; the address follows."""
    if st.session_state.get("init") not in inits:
        st.session_state.init = choose_init(inits)
    depths = full_depths(st.session_state.init)
    if st.session_state.get("depth") not in depths:
        st.session_state.depth = choose_depth(depths)
    with st.container(key="controls"):
        left, right = st.columns([3, 2])
        depth = left.select_slider("Depth, in blocks", depths, key="depth")
        init = right.selectbox("Init", inits, key="init", format_func=prose.init_label)
    remember(depth=depth, init=init)
    return init, depth


def full_depths(init: str) -> list[int]:
    """Depths at which every block is measured: those one can look into."""
    return ask(store, "depths", setup=SETUP, init=init).depth.tolist()


def select_depth(chart_key: str, init: str) -> None:
    """A click on the depth chart becomes the depth everywhere: that of the nearest that one can look into, in log."""
    clicked = st.session_state[chart_key].selection[charts.SELECTED]
    if clicked:
        at = math.log(clicked[0]["depth"])
        st.session_state.depth = min(full_depths(init), key=lambda depth: abs(math.log(depth) - at))


def stream_and_gradient(init: str, depth: int) -> None:
    """Forward and backward profiles side by side."""
    forward = ask(store, "forward", setup=SETUP, init=init, depth=depth)
    backward = ask(store, "backward", setup=SETUP, init=init, depth=depth)
    band = only_row("post_band", setup=SETUP, init=init)
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Forward: the stream per block")
        st.altair_chart(charts.forward_chart(forward), alt="Stream rms per block, post-LN and pre-LN, 1.0 marked")
        st.markdown(prose.forward_caption(forward))
    with right:
        st.subheader("Backward: W₂'s gradient per block")
        alt = "Gradient of W2 per block, post-LN and pre-LN, and a constant over pre-LN's stream rms, dashed"
        st.altair_chart(charts.backward_chart(backward), alt=alt)
        st.markdown(prose.backward_caption(backward, band))
    st.caption(prose.prediction_caption(forward, backward))


def against_depth(init: str, depth: int) -> None:
    """The log-log chart. Its key carries the depth, so that its own selection never disagrees with the page's."""
    curve = ask(store, "depth_curve", setup=SETUP, init=init)
    key = f"depth_chart_{init}_{depth}"
    st.subheader("The top block's gradient against depth")
    st.altair_chart(
        charts.depth_chart(curve, depth),
        key=key,
        on_select=lambda: select_depth(key, init),
        selection_mode=charts.SELECTED,
        alt="Gradient of the last block's W2 against depth, both axes logarithmic; the slider above selects a depth",
    )
    st.markdown(prose.slope_caption(ask(store, "slopes", setup=SETUP, init=init)))
    st.caption(prose.prediction_caption(curve))


def gpt2_question(depth: int) -> None:
    """The question the reader answers first; the readings answer second."""
    st.subheader("Check yourself: GPT-2's residual init")
    st.markdown(
        "GPT-2 divides the matrices that write into the stream, W_O and W_2, by √(2L) at initialisation. Suppose the "
        f"rest stays as it is. What does that do to pre-LN's stream in a stack of {prose.blocks(depth)}?"
    )
    rows = ask(store, "residual_scaling", setup=SETUP, depth=depth)
    needed = ["first_stream", "last_stream", "pre_sigma", "ratio"]
    if len(rows) < len(SCALING_INITS) or rows[needed].isna().any(axis=None):
        st.info("The store lacks readings of one of the three inits at this depth. `make refresh` measures them.")
        return
    answers = prose.STREAM_ANSWERS
    given = st.radio("Your answer", list(answers), format_func=answers.get, index=None, key="gpt2_answer")
    with st.expander("Open the measured answer"):
        measured = prose.stream_answer(prose.by_name(rows, "init")["xavier_residual"])
        if given:
            st.markdown(f"{'✓ The readings agree' if given == measured else '✕ The readings disagree'} with you.")
        st.markdown(f"{answers[measured]}.\n\n{prose.residual_answer(rows, depth)}")
        chart = charts.forward_by_init_chart(ask(store, "forward_by_init", setup=SETUP, depth=depth))
        st.altair_chart(chart, alt="Pre-LN's stream rms per block for three inits, logarithmic")


def page() -> None:
    """Everything, in order."""
    say_origin(store, only_row("seeds", setup=SETUP))
    st.title(TITLE)
    inits = ask(store, "inits", setup=SETUP).init.tolist()
    if not inits:
        st.error(
            f"The store {store.path.name} has no readings of setup '{SETUP}' for post-LN and pre-LN. Measure them with "
            "'make refresh', or bring the shipped store back with 'git checkout HEAD data'."
        )
        return
    lead = st.container()
    equations()
    init, depth = controls(inits)
    readouts = ask(store, "readouts", setup=SETUP, init=init, depth=depth)
    lead.markdown(prose.finding(readouts, depth))
    st.html(readouts_html(readouts))
    stream_and_gradient(init, depth)
    against_depth(init, depth)
    verdicts.panel(store, depth)
    gpt2_question(depth)
    numbers.section(store, setup=SETUP, init=init, depth=depth)
    st.subheader("Setup")
    st.markdown(prose.setup_line(only_row("setup", setup=SETUP), only_row("seeds", setup=SETUP), init))


page()
