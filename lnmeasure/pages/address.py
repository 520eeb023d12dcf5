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


def choose(name: str, known: list[str], default: str) -> str:
    """The value of a parameter if it is known, else the default; said where it is not."""
    wanted = st.query_params.get(name, default)
    if wanted not in known:
        _say_dropped(f"{name}={wanted}", f"known are {', '.join(known)}", default)
        return default
    return wanted


def choose_several(name: str, known: list[str], default: list[str], most: int) -> list[str]:
    """The values of a parameter, separated by commas, as far as they are known; what was dropped is said."""
    if name not in st.query_params:
        return default
    wanted = list(dict.fromkeys(filter(None, st.query_params[name].split(","))))
    kept = [value for value in wanted if value in known][:most]
    dropped = ",".join(value for value in wanted if value not in kept)
    if dropped:
        why = f"known are {', '.join(known)}, and at most {most} are shown"
        _say_dropped(f"{name}={dropped}", why, ", ".join(kept) or "none")
    return kept


def say_unknown(known: set[str]) -> None:
    """Parameters that this page does not know are dropped too, in one sentence."""
    unknown = sorted(set(st.query_params) - known)
    if unknown:
        _say_dropped(", ".join(unknown), f"this page knows {', '.join(sorted(known))}", "the page without it")
        for name in unknown:
            del st.query_params[name]


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
