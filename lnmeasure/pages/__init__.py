"""The page's scripts: here store and dashboard meet. The only part with streamlit, beside app.py."""
