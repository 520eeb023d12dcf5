"""last_refresh.json beside the store: when a refresh last ran and how it ended. The page's freshness comes from it."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from lnmeasure.store.files import replace_text

AMBER, RED = 1.5, 3.0
"""From how many declared intervals since the last success on the page warns, and from how many it alarms."""
LONGEST_S = 10 * 366 * 86400
"""The longest interval a schedule can declare: ten years."""
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class LastRefresh:
    """How the last refresh ended. Times are UTC; every_s is the interval its schedule declares, in seconds, or None."""

    started: datetime
    finished: datetime
    exit_code: int
    planned: int = 0
    measured: int = 0
    reused: int = 0
    failed: int = 0
    generation: int | None = None
    every_s: float | None = None
    last_success: datetime | None = None


Level = Literal["fresh", "amber", "red", "clock"]


def level(last: LastRefresh, at: datetime) -> Level:
    """Age of the last success at a time: fresh, amber or red by the declared interval; clock where it lies ahead."""
    since = last.last_success or last.started
    if since - at > _SKEW:
        return "clock"
    if last.every_s is None:
        return "fresh"
    if last.last_success is None:
        return "red"
    age = (at - since).total_seconds() / last.every_s
    return "red" if age >= RED else "amber" if age >= AMBER else "fresh"


def last_refresh(store: Path) -> LastRefresh | None:
    """What the last refresh of the store at a path left; None where there is nothing, or nothing that makes sense."""
    try:
        facts = json.loads(_path(store).read_text(encoding="utf-8"))
        times = {name: datetime.fromisoformat(facts[name]) for name in _TIMES if facts[name] is not None}
        last = LastRefresh(**facts | times)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return last if _makes_sense(last) else None


def _makes_sense(last: LastRefresh) -> bool:
    times = [time for time in (last.started, last.finished, last.last_success) if time is not None]
    numbers = (last.exit_code, last.planned, last.measured, last.reused, last.failed)
    return (
        last.started is not None
        and last.finished is not None
        and all(type(time) is datetime and time.tzinfo is None for time in times)
        and all(type(number) is int for number in numbers)
        and (last.every_s is None or (type(last.every_s) in (int, float) and 0 < last.every_s <= LONGEST_S))
    )


def write_last_refresh(store: Path, last: LastRefresh) -> None:
    """Leave how a refresh ended, by one replace. A failed one keeps the time of the last success before it."""
    facts = asdict(last) | {name: _iso(getattr(last, name)) for name in _TIMES}
    replace_text(_path(store), json.dumps(facts, indent=1) + "\n")


_TIMES = ("started", "finished", "last_success")


def _iso(time: datetime | None) -> str | None:
    return time.isoformat(timespec="seconds") if time else None


def _path(store: Path) -> Path:
    return store.with_name("last_refresh.json")
