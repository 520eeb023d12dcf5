"""The page as an application: streamlit run app.py."""

import logging

import streamlit as st


def say_and_log(error: Exception) -> bool:
    """A visitor reads one sentence; the traceback goes to the log."""
    logging.getLogger("lnmeasure").error("the page failed", exc_info=error)
    st.error(
        "This page could not be drawn. The reason is in the server's log. Reload the page, or open it without the part "
        "of its address from '?' on.",
        icon=":material/error:",
    )
    return True


app = st.App("lnmeasure/pages/main.py", on_script_error=say_and_log)
