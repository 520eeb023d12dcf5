"""Data: what the store holds, what every column means, how to ask it, and how to take it away."""

import io

import pyarrow.csv
import pyarrow.parquet
import streamlit as st

from lnmeasure.pages.address import choose, remember, say_unknown
from lnmeasure.pages.source import ask, current_store, say_origin
from lnmeasure.store.reader import Store, examples

SETUP = "page"
TITLE = "Data: one DuckDB file, and what is in it"
OPENING = {
    "Python": """import duckdb

with duckdb.connect("lnmeasure.duckdb", read_only=True) as store:
    frame = store.sql("SELECT * FROM by_depth WHERE setup = 'page'").df()""",
    "Command line": """duckdb -readonly lnmeasure.duckdb \\
    "SELECT placement, depth, sigma_mean FROM by_depth WHERE setup = 'page' AND init = 'xavier_uniform'\"""",
    "R": """library(duckdb)
store <- dbConnect(duckdb(), dbdir = "lnmeasure.duckdb", read_only = TRUE)
frame <- dbGetQuery(store, "SELECT * FROM by_depth WHERE setup = 'page'")
dbDisconnect(store, shutdown = TRUE)""",
    "DBeaver": """New connection > DuckDB > Path: lnmeasure.duckdb
Driver properties > duckdb.read_only = true""",
}
"""How to open the file, by client, so that nobody else is kept from it."""

store = current_store()


def take_away(view: str) -> None:
    """The whole file, and one view of it."""
    generation = store.meta["generation"]
    st.subheader("Take it away")
    st.markdown(
        "The published file is never written to, only replaced as a whole. Open it read-only, or a copy of it: then "
        "it keeps nobody else out, and a refresh does not wait for you."
    )
    name = f"lnmeasure_g{generation}"
    with st.container(horizontal=True):
        st.download_button(
            "The DuckDB file", store.path.read_bytes, f"{name}.duckdb", "application/octet-stream", on_click="ignore"
        )
        for ending, mime, write in (
            ("parquet", "application/vnd.apache.parquet", pyarrow.parquet.ParquetWriter),
            ("csv", "text/csv", pyarrow.csv.CSVWriter),
        ):
            label = f"{view} as {'Parquet' if ending == 'parquet' else 'CSV'}"
            st.download_button(
                label, lambda write=write: whole(store, view, write), f"{name}_{view}.{ending}", mime, on_click="ignore"
            )
    for tab, text in zip(st.tabs(list(OPENING)), OPENING.values(), strict=True):
        tab.code(text, language=None)


def whole(read: Store, view: str, write: type) -> bytes:
    """All rows of a view in the format of a writer, a batch at a time."""
    buffer, batches = io.BytesIO(), read.batches(view)
    with write(buffer, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return buffer.getvalue()


def dictionary() -> str:
    """One view's columns with their meanings. The view's name."""
    rows = ask(store, "dictionary")
    views = list(dict.fromkeys(rows.view))
    state = st.session_state
    if state.get("data_view") not in views:
        state.data_view = choose("view", views, "by_depth")
    st.subheader("What a column means")
    view = st.selectbox("View", views, key="data_view")
    own = rows[rows.view == view]
    st.markdown(own.view_comment.iloc[0])
    st.dataframe(own[["column", "type", "comment"]], hide_index=True, width="stretch")
    return view


def questions() -> None:
    """Queries to begin with, each with its answer."""
    texts = examples()
    titles = {name: text.splitlines()[0].removeprefix("-- ") for name, text in texts.items()}
    st.subheader("Queries to begin with")
    name = st.selectbox("Query", list(texts), key="data_query", format_func=titles.get)
    st.code(texts[name], language="sql")
    st.dataframe(_answer(store, store.digest, name), hide_index=True, width="stretch")


@st.cache_data(show_spinner=False, max_entries=100)
def _answer(_store: Store, digest: str, name: str) -> object:
    return _store.query(examples()[name]).head(200)


def page() -> None:
    """From what there is to how to have it."""
    (seeds,) = ask(store, "seeds", setup=SETUP).itertuples()
    say_origin(store, seeds)
    st.title(TITLE)
    st.caption(
        f"Generation {store.meta['generation']}, {store.content.size / 1e6:.1f} MB, blake2b `{store.digest[:16]}`. "
        f"Made by lnmeasure {store.meta['package_version']}, commit {store.meta['commit'] or 'unknown'}."
    )
    view = dictionary()
    take_away(view)
    questions()
    st.subheader("What was asked for, and what is there")
    st.dataframe(ask(store, "coverage_by_grid"), hide_index=True, width="stretch")
    st.subheader("Every refresh")
    st.dataframe(ask(store, "refreshes"), hide_index=True, width="stretch")
    say_unknown({"view"})
    remember(view=view)


page()
