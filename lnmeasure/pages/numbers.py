"""The numbers: tables of what the charts show, with downloads and the queries."""

import io
from collections.abc import Iterable

import pandas as pd
import streamlit as st

from lnmeasure.pages.source import ask
from lnmeasure.store.reader import Store, sql

QUERIES = ("readouts", "forward", "backward", "depth_curve", "slopes", "claim_parts", "residual_scaling")


def section(store: Store, *, setup: str, init: str, depth: int) -> None:
    """Home's tables: at this depth and of every depth."""
    parameters = {"setup": setup, "init": init, "depth": depth}
    questions = {
        f"Every block at depth {depth}": ("profile", f"{setup}_{init}_depth{depth}"),
        "Every depth": ("by_depth", f"{setup}_{init}_all_depths"),
    }
    found = {title: (ask(store, question, **parameters), name) for title, (question, name) in questions.items()}
    tables(store, found, QUERIES, parameters, hidden=["setup", "init"])


def tables(
    store: Store,
    found: dict[str, tuple[pd.DataFrame, str]],
    questions: Iterable[str],
    parameters: dict[str, object],
    hidden: Iterable[str] = (),
) -> None:
    """Tables by title, each with its file's name, CSV and Parquet; and the SQL behind the charts.

    hidden: columns that hold one value, left out of what is shown and not of what is taken away.
    """
    st.subheader("The numbers")
    for tab, (table, name) in zip(st.tabs(list(found)), found.values(), strict=True):
        with tab:
            st.dataframe(table.drop(columns=list(hidden)), hide_index=True)
            _downloads(table, f"lnmeasure_g{store.meta['generation']}_{name}")
    with st.expander("The queries behind this page"):
        values = ", ".join(f"`${name} = {value!r}`" for name, value in parameters.items())
        st.markdown(f"Run them on `{store.path.name}` with {values}.")
        for question in questions:
            st.code(sql(question), language="sql")


def _downloads(table: pd.DataFrame, name: str) -> None:
    kinds = {
        "csv": ("CSV", "text/csv", lambda: table.to_csv(index=False)),
        "parquet": ("Parquet", "application/vnd.apache.parquet", lambda: _parquet(table)),
    }
    with st.container(horizontal=True):
        for ending, (label, mime, make) in kinds.items():
            file = f"{name}.{ending}"
            st.download_button(f"Download {label}", make, file, mime, on_click="ignore", key=file)


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
