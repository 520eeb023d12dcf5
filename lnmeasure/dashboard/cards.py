"""Cards of placements and inits: name, equation, what it does, source, what is unconfirmed. Pure: rows in, HTML out."""

from collections.abc import Mapping
from html import escape

import pandas as pd

from lnmeasure.dashboard.theme import Look, Looks

STYLE = """
<style>
.ln-cards {display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1.1rem 2rem;}
.ln-cards article {min-width: 0; overflow-wrap: anywhere;}
.ln-cards h4 {font-size: 1rem; font-weight: 700; margin: 0; padding: 0;}
.ln-cards h4 small {font-weight: 400; opacity: 0.75; margin-left: 0.4rem;}
.ln-cards code {font-size: 0.85rem; white-space: normal; padding: 0; background: none; color: inherit;}
.ln-cards p {margin: 0.15rem 0; font-size: 0.9rem;}
.ln-cards p.source {opacity: 0.75; font-size: 0.8rem;}
.ln-scale {display: flex; align-items: center; gap: 0.6rem; font-size: 0.85rem;}
.ln-scale i {flex: 0 1 16rem; height: 1.3rem; border-radius: 3px; text-align: center; font-style: normal;}
.ln-scale b {color: #111111; font-weight: 600;}
</style>
"""


def cards_html(entries: pd.DataFrame, looks: Looks, sentences: Mapping[str, str]) -> str:
    """A card per entry, ours first. Columns: name, equation, source, unconfirmed; sentences by name, where any."""
    rows = {entry["name"]: entry for entry in entries.to_dict("records")}
    cards = [_card(rows[name], look, sentences.get(name, "")) for name, look in looks.of(rows).items()]
    return f'<div class="ln-cards">{"".join(cards)}</div>'


def _card(entry: Mapping[str, object], look: Look, sentence: str) -> str:
    open_question = entry["unconfirmed"]
    return (
        f'<article><h4><span style="color:{look.colour}">{escape(look.label)}</span><small>{escape(entry["name"])}'
        f"</small></h4><code>{escape(entry['equation'])}</code>"
        + (f"<p>{escape(sentence)}</p>" if sentence else "")
        + f'<p class="source">{escape(entry["source"])}</p>'
        + ("" if pd.isna(open_question) else f"<p><strong>unconfirmed:</strong> {escape(open_question)}</p>")
        + "</article>"
    )
