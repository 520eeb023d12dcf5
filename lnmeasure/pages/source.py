"""The page's data: one open store per published file, answers cached until a new file is published."""

from pathlib import Path

import pandas as pd
import streamlit as st

from lnmeasure.store.errors import StoreError
from lnmeasure.store.reader import Store, sql, store_path

Signature = tuple[str, int, int, int]


def current_store() -> Store:
    """The published store as it is now. Where it cannot be read, says why on the page and stops the script."""
    path = store_path()
    try:
        return _open(_signature(path))
    except StoreError as error:
        st.error(str(error), icon=":material/error:")
        st.stop()


def ask(store: Store, question: str, **parameters: object) -> pd.DataFrame:
    """The answer of a query of the store, cached for everybody. Parameters it does not name are dropped."""
    named = {name: value for name, value in parameters.items() if f"${name}" in sql(question)}
    return _ask(store, store.digest, question, named)


@st.cache_data(max_entries=2000, show_spinner=False)
def _ask(_store: Store, digest: str, question: str, parameters: dict) -> pd.DataFrame:
    return _store.ask(question, **parameters)


@st.cache_resource(max_entries=2, show_spinner="Opening the store")
def _open(signature: Signature) -> Store:
    return Store(Path(signature[0]))


def _signature(path: Path) -> Signature:
    """What changes when another file is published at the path."""
    try:
        facts = path.stat()
    except OSError:
        return (str(path), 0, 0, 0)
    return (str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns)
