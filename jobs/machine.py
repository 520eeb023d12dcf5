"""What this machine gives a job: cores and memory, as far as its container lets it have them."""

import os
from pathlib import Path

_SHARE = 0.9


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Bytes of memory this job can count on: what is free now, or what its control group allows, if that is less."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            free = int(line.split()[1]) * 1024
    limits = [int(line) for line in _lines("/sys/fs/cgroup/memory.max") if line.isdecimal()]
    return min([free, *limits])


def memory_of_each(workers: int) -> int:
    """Bytes one of some workers may take."""
    return int(_SHARE * memory() / workers)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []
