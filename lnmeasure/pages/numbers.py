"""The numbers: tables of what the charts show, with downloads and the queries."""

import io

import pandas as pd
import streamlit as st

from lnmeasure.pages.source import ask
from lnmeasure.store.reader import Store, sql

QUERIES = ("readouts", "forward", "backward", "depth_curve", "slopes", "pre_flatness", "residual_scaling")


def section(store: Store, setup: str, init: str, depth: int) -> None:
    """Tables at this depth and of every depth, each with CSV and Parquet, and the SQL behind the charts."""
    st.subheader("The numbers")
    tables = {
        f"Every block at depth {depth}": ("profile", f"depth{depth}"),
        "Every depth": ("by_depth", "all_depths"),
    }
    for tab, (question, name) in zip(st.tabs(list(tables)), tables.values(), strict=True):
        with tab:
            table = ask(store, question, setup=setup, init=init, depth=depth)
            st.dataframe(table.drop(columns=["setup", "init"]), hide_index=True)
            _downloads(table, f"lnmeasure_g{store.meta['generation']}_{setup}_{init}_{name}")
    with st.expander("The queries behind this page"):
        st.markdown(
            f"Run them on `{store.path.name}` with `$setup = '{setup}'`, `$init = '{init}'`, `$depth = {depth}`."
        )
        for question in QUERIES:
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
