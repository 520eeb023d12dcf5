"""The page's data: one reader for everybody, which follows what is published; answers cached until that changes."""

from pathlib import Path

import pandas as pd
import streamlit as st

from lnmeasure.dashboard import prose
from lnmeasure.store.clock import now
from lnmeasure.store.errors import StoreError, StorePathError
from lnmeasure.store.follow import Follower
from lnmeasure.store.freshness import last_refresh, level
from lnmeasure.store.reader import Store, sql, store_path, stray_log


def current_store() -> Store:
    """The published store as it is now, or the last one that could be read, saying so on the page.

    Where there has been none that could be read, the page says why and the script stops.
    """
    try:
        path = store_path()
        store, trouble = _follower(str(path)).current()
    except StorePathError as error:
        st.error(str(error), icon=":material/error:")
        st.stop()
    except StoreError as error:
        st.error(_for_visitors(error, path), icon=":material/error:")
        st.stop()
    if trouble:
        st.warning(
            f"You see generation {store.meta['generation']}, the last that could be read. The file now in its place "
            f"cannot: {_for_visitors(trouble, path)}",
            icon=":material/warning:",
        )
    elif advice := stray_log(path):
        st.warning(_for_visitors(advice, path), icon=":material/warning:")
    return store


def say_origin(store: Store, seeds: prose.Row) -> None:
    """Where the numbers of a page come from, in one line. seeds: the answer to seeds.sql, or one like it."""
    refreshed, meta = say_freshness(store), store.meta
    st.caption(
        f"**lnmeasure** · generation {meta['generation']} · {meta['published_at']:%Y-%m-%d} UTC · "
        f"{prose.seed_range(seeds)} · measured by commit {seeds.commit or 'unknown'}{refreshed}"
    )


def say_freshness(store: Store) -> str:
    """Warns or alarms where the schedule of refreshes has fallen behind. The last success, for the header."""
    last = last_refresh(store.path)
    if last is None:
        return ""
    state = level(last, now())
    if text := prose.freshness(state, last.last_success, last.every_s):
        show = st.error if state == "red" else st.warning
        show(text, icon=":material/schedule:")
    return f" · last refreshed {last.last_success:%Y-%m-%d %H:%M} UTC" if last.last_success else ""


def ask(store: Store, question: str, **parameters: object) -> pd.DataFrame:
    """The answer of a query of the store, cached for everybody. Parameters it does not name are dropped."""
    named = {name: value for name, value in parameters.items() if f"${name}" in sql(question)}
    return _ask(store, store.digest, question, named)


@st.cache_data(max_entries=2000, show_spinner=False)
def _ask(_store: Store, digest: str, question: str, parameters: dict) -> pd.DataFrame:
    return _store.ask(question, **parameters)


@st.cache_resource(show_spinner="Opening the store")
def _follower(path: str) -> Follower:
    return Follower(Path(path))


def _for_visitors(message: object, path: Path) -> str:
    """A message without the folder in which the server keeps its store."""
    return str(message).replace(f"{path.parent}/", "")
