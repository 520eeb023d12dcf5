"""Arguments from words and words from numbers, the same in every job."""

import argparse

from lnmeasure.store.freshness import LONGEST_S

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def whole_number(name: str, least: int, most: int, text: str) -> int:
    """An argument that counts something. ArgumentTypeError, naming value and rule, where it does not."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{name} is {text[:30]!r}: it must be a whole number from {least} to {most}")
    return int(text)


def seconds(text: str) -> float:
    """An argument such as 90s, 30m, 5h or 1d, in seconds. ArgumentTypeError where it is none."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdecimal() and len(number) < 10) or int(number) == 0:
        raise argparse.ArgumentTypeError(
            f"time is {text[:30]!r}: it must be a number above 0 and a unit, such as 90s, 30m, 5h or 1d"
        )
    if (length_s := int(number) * _UNITS[unit]) > LONGEST_S:
        raise argparse.ArgumentTypeError(f"time is {text!r}: it must be at most ten years")
    return length_s


def count(number: int, thing: str) -> str:
    """How many of a thing."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def duration(length_s: float) -> str:
    """A length of time as people say it."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if length_s >= 2 * size:
            return f"{length_s / size:.0f} {unit}"
    return f"{length_s:.0f} s"
