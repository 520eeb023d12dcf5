"""The page's address is its state: ?depth=48&init=gpt2. Every parameter is checked, and what is dropped is said."""

import streamlit as st

DEFAULT_DEPTH = 24


def choose_init(inits: list[str]) -> str:
    """The init of the address if it is measured, else the first; said where it is not."""
    wanted = st.query_params.get("init", inits[0])
    if wanted not in inits:
        _say_dropped(f"init={wanted}", f"the store has no such init for this page. It has {', '.join(inits)}", inits[0])
        return inits[0]
    return wanted


def choose_depth(depths: list[int]) -> int:
    """The depth of the address if it is measured, else the default, or the measured one nearest to it."""
    default = min(depths, key=lambda depth: abs(depth - DEFAULT_DEPTH))
    wanted = st.query_params.get("depth", str(default))
    if wanted not in {str(depth) for depth in depths}:
        listed = ", ".join(map(str, depths))
        _say_dropped(f"depth={wanted}", f"that depth is not measured. Measured are {listed}", default)
        return default
    return int(wanted)


def remember(**parameters: object) -> None:
    """Write the state into the address."""
    for name, value in parameters.items():
        if st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)


def _say_dropped(part: str, why: str, instead: object) -> None:
    st.warning(f"`{_plain(part)}` in the address was dropped: {why}. Shown instead: {instead}.", icon=":material/info:")


def _plain(text: str, longest: int = 40) -> str:
    """A visitor's text without anything that markdown would act on."""
    kept = "".join(character if character.isalnum() or character in "=._- " else "?" for character in text)
    return kept if len(kept) <= longest else kept[:longest] + "..."
