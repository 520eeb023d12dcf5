"""The frame of every page: title, navigation, look. Run by app.py."""

from importlib.resources import files

import streamlit as st

from lnmeasure.dashboard.readouts import STYLE

ICON = files("lnmeasure.dashboard").joinpath("favicon.svg").read_text(encoding="utf-8")

st.set_page_config(page_title="lnmeasure: how big is the gradient?", page_icon=ICON, layout="wide")
st.html(STYLE)
PAGES = [
    st.Page("home.py", title="Home", default=True),
    st.Page("placements.py", title="Placements and inits", url_path="placements"),
    st.Page("paths.py", title="Gradient paths", url_path="paths"),
    st.Page("claims.py", title="Claims", url_path="claims"),
    st.Page("theory.py", title="Theory", url_path="theory"),
    st.Page("data.py", title="Data", url_path="data"),
]
st.navigation(PAGES, position="top").run()
