"""Placements and inits: the matrix, one cell looked into, up to four placements compared, and what each one is."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from lnmeasure.dashboard import cards, compare, matrix, prose
from lnmeasure.dashboard import prose_placements as words
from lnmeasure.dashboard.theme import INITS, PLACEMENTS, REFERENCES
from lnmeasure.pages import numbers
from lnmeasure.pages.address import choose, choose_depth, choose_several, remember, say_unknown
from lnmeasure.pages.source import ask, current_store, say_origin

SETUP = "page"
TITLE = "Placements and inits: what each does to the gradient"
MOST = 4
COMPARED = ("sandwich", "deepnorm", "normformer", "completep")
QUERIES = ("matrix", "matrix_slopes", "placement_profiles", "placement_entries", "small_embedding")

store = current_store()


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What the reader looks at: the state that the address holds."""

    depth: int
    measure: str
    placement: str
    init: str
    compare: tuple[str, ...]


def begin(depths: list[int], placements: list[str], inits: list[str]) -> None:
    """Take the state from the address once, and again where the store no longer has it. Then the session owns it."""
    state = st.session_state
    if state.get("matrix_depth") not in depths:
        state.matrix_depth = choose_depth(depths)
    if state.get("matrix_measure") not in matrix.MEASURES:
        state.matrix_measure = choose("measure", list(matrix.MEASURES), next(iter(matrix.MEASURES)))
    if state.get("matrix_placement") not in placements:
        state.matrix_placement = choose("placement", placements, "pre" if "pre" in placements else placements[0])
    if state.get("matrix_init") not in inits:
        state.matrix_init = choose("init", inits, "gpt2" if "gpt2" in inits else inits[0])
    if not set(state.get("matrix_compare", [None])) <= set(placements):
        default = [name for name in COMPARED if name in placements] or placements[:MOST]
        state.matrix_compare = choose_several("compare", placements, default, MOST)


def chosen() -> Chosen:
    """The state of the session."""
    state = st.session_state
    return Chosen(
        depth=state.matrix_depth,
        measure=state.matrix_measure,
        placement=state.matrix_placement,
        init=state.matrix_init,
        compare=tuple(state.matrix_compare),
    )


def select_cell(key: str) -> None:
    """A click on a cell becomes the placement and init everywhere."""
    clicked = st.session_state[key].selection[matrix.SELECTED]
    if clicked:
        st.session_state.matrix_placement = clicked[0]["placement"]
        st.session_state.matrix_init = clicked[0]["init"]


def matrix_section(readings: pd.DataFrame, slopes: pd.DataFrame, depths: list[int]) -> None:
    """The matrix of one measure. The keys of its charts carry the choice, so that no selection disagrees with it."""
    left, right = st.columns([3, 2])
    left.selectbox(
        "In the cells", list(matrix.MEASURES), key="matrix_measure", format_func=lambda n: matrix.MEASURES[n].title
    )
    right.select_slider("Depth, in blocks", depths, key="matrix_depth")
    now, measure = chosen(), matrix.MEASURES[chosen().measure]
    st.html(matrix.scale_html(measure))
    table = matrix.matrix_of(readings, slopes, measure)
    groups = matrix.groups(table)
    for number, (column, inits) in enumerate(zip(st.columns(len(groups), gap="small"), groups, strict=True)):
        key = f"matrix_{number}_{now.measure}_{now.depth}_{now.placement}_{now.init}"
        column.altair_chart(
            matrix.matrix_chart(table, inits, now.placement, now.init),
            key=key,
            on_select=lambda key=key: select_cell(key),
            selection_mode=matrix.SELECTED,
            alt=f"{measure.title}, placement by init: {', '.join(inits)}; the table below has the numbers",
        )
    st.caption(words.matrix_caption(table, measure, now.depth))


def look(readings: pd.DataFrame, slopes: pd.DataFrame, entries: pd.DataFrame, placements: list[str]) -> None:
    """One placement with one init: what it is, what it does, and its profiles beside post's and pre's."""
    st.subheader("One cell: its profile beside post-LN and pre-LN")
    left, right = st.columns(2)
    left.selectbox("Placement", placements, key="matrix_placement", format_func=lambda n: PLACEMENTS[n].label)
    right.selectbox("Init", list(INITS.of(readings.init)), key="matrix_init", format_func=prose.init_label)
    now = chosen()
    for column, kind, name, looks, said in (
        (left, "placement", now.placement, PLACEMENTS, sentences(readings, slopes, now.init)),
        (right, "init", now.init, INITS, init_sentences(readings)),
    ):
        one = entries[(entries.kind == kind) & (entries.name == name)]
        column.html(cards.cards_html(one, looks, said))
    profiles([*dict.fromkeys((now.placement, *REFERENCES))], now)


def profiles(names: list[str], now: Chosen) -> None:
    """Forward and backward in one chart each, and what they cannot show in words."""
    rows = ask(store, "placement_profiles", setup=SETUP, init=now.init, depth=now.depth, compared=names)
    labels = ", ".join(PLACEMENTS[name].label for name in names)
    titles = ("Forward: the stream per block", compare.STREAM), ("Backward: W₂'s gradient per block", compare.GRADIENT)
    for column, (title, profile) in zip(st.columns(2, gap="medium"), titles, strict=True):
        chart = compare.together(rows, profile)
        column.markdown(f"**{title}**")
        if chart is None:
            column.info("None of these placements has a reading that a logarithmic axis can show.")
        else:
            column.altair_chart(chart, alt=f"{title}, logarithmic, of {labels}")
    said = prose.prediction_caption(*(compare.drawable(rows, profile) for _, profile in titles))
    for text in filter(None, (said, words.left_out(rows, names, now.init, now.depth))):
        st.caption(text)


def comparison(placements: list[str]) -> None:
    """Up to four placements: in one chart, and as small multiples of the backward profile."""
    st.subheader(f"Compare up to {MOST} placements")
    st.multiselect(
        "Placements",
        placements,
        key="matrix_compare",
        max_selections=MOST,
        format_func=lambda name: PLACEMENTS[name].label,
    )
    now = chosen()
    if not now.compare:
        st.info("Choose a placement, and its profile is drawn here.")
        return
    profiles(list(now.compare), now)
    small_multiples(now)


def small_multiples(now: Chosen) -> None:
    """The backward profile of each placement on the same axes, with post's and pre's behind it."""
    names = [*dict.fromkeys((*now.compare, *REFERENCES))]
    rows = ask(store, "placement_profiles", setup=SETUP, init=now.init, depth=now.depth, compared=names)
    st.markdown("**Backward, each beside post-LN (grey) and pre-LN (grey, dashed)**")
    for column, name in zip(st.columns(len(now.compare)), now.compare, strict=True):
        chart = compare.small_multiple(rows, compare.GRADIENT, name)
        label = PLACEMENTS[name].label
        column.markdown(label)
        if chart is None:
            column.caption("nothing positive to draw")
        else:
            column.altair_chart(chart, alt=f"Gradient of W2 per block of {label}, post-LN and pre-LN in grey")


def sentences(readings: pd.DataFrame, slopes: pd.DataFrame, init: str) -> dict[str, str]:
    """What each placement does with an init, by name."""
    return words.placement_sentences(readings, slopes, init, chosen().depth)


def init_sentences(readings: pd.DataFrame) -> dict[str, str]:
    """What each init does, by name."""
    return words.init_sentences(readings, chosen().depth)


def catalogue(readings: pd.DataFrame, slopes: pd.DataFrame, entries: pd.DataFrame) -> None:
    """Every placement and every init: equation, source, and what it does at init."""
    now = chosen()
    st.subheader(f"Every placement, with init {now.init} and {prose.blocks(now.depth)}")
    st.caption("N is the norm, here LayerNorm; F is a sublayer, attention (A) and then the FFN; a block is both.")
    st.html(cards.cards_html(entries[entries.kind == "placement"], PLACEMENTS, sentences(readings, slopes, now.init)))
    st.subheader(f"Every init, with {prose.blocks(now.depth)}")
    st.html(cards.cards_html(entries[entries.kind == "init"], INITS, init_sentences(readings)))


def take_away(readings: pd.DataFrame, slopes: pd.DataFrame) -> None:
    """The tables behind the page, with downloads and queries."""
    now = chosen()
    names = [*dict.fromkeys((now.placement, *REFERENCES, *now.compare))]
    parameters = {"setup": SETUP, "depth": now.depth, "init": now.init, "compared": names}
    rows = ask(store, "placement_profiles", **parameters)
    found = {
        f"Every cell at depth {now.depth}": (readings, f"{SETUP}_matrix_depth{now.depth}"),
        "Every slope": (slopes, f"{SETUP}_matrix_slopes"),
        "The profiles": (rows, f"{SETUP}_{now.init}_profiles_depth{now.depth}"),
    }
    numbers.tables(store, found, QUERIES, parameters)


def page() -> None:
    """Everything, in order."""
    st.html(cards.STYLE)
    depths = ask(store, "matrix_depths", setup=SETUP).depth.tolist()
    entries = ask(store, "placement_entries")
    placements = list(PLACEMENTS.of(entries.name[entries.kind == "placement"]))
    inits = list(INITS.of(entries.name[entries.kind == "init"]))
    if not (depths and placements and inits):
        st.title(TITLE)
        st.error(
            f"The store {store.path.name} has no readings of setup '{SETUP}' in every block. Measure them with "
            "'make refresh', or bring the shipped store back with 'git checkout HEAD data'."
        )
        return
    begin(depths, placements, inits)
    depth = st.session_state.matrix_depth
    (seeds,) = ask(store, "matrix_seeds", setup=SETUP, depth=depth).itertuples()
    say_origin(store, seeds)
    st.title(TITLE)
    st.markdown(words.headline(ask(store, "small_embedding", setup=SETUP, depth=depth), depth))
    readings = ask(store, "matrix", setup=SETUP, depth=depth)
    slopes = ask(store, "matrix_slopes", setup=SETUP)
    matrix_section(readings, slopes, depths)
    look(readings, slopes, entries, placements)
    comparison(placements)
    catalogue(readings, slopes, entries)
    take_away(readings, slopes)
    (setup,) = ask(store, "setup", setup=SETUP).itertuples()
    st.subheader("Setup")
    st.markdown(prose.setup_line(setup, seeds, st.session_state.matrix_init))
    say_unknown({"depth", "measure", "placement", "init", "compare"})
    state = chosen()
    remember(**{name: getattr(state, name) for name in ("depth", "measure", "placement", "init")})
    remember(compare=",".join(state.compare))


page()
