"""Who measures: versions, commit, processor. No host names, no paths."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from lnmeasure.store.building import Provenance

_ROOT = Path(__file__).resolve().parents[1]
_CODE = ("lnmeasure", "jobs", "pyproject.toml")


def package_version() -> str:
    """Version of the installed lnmeasure."""
    return version("lnmeasure")


def commit() -> str | None:
    """Short commit of the checkout that runs, with '+' where code differs from it; $LNMEASURE_COMMIT outside one."""
    if given := os.environ.get("LNMEASURE_COMMIT"):
        return given
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--", *_CODE) else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def processor() -> str:
    """Model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def provenance(threads: int) -> Provenance:
    """Everything the refresh log keeps about this run. Needs torch installed, does not load it."""
    return Provenance(
        package=package_version(),
        commit=commit(),
        torch=version("torch"),
        python=platform.python_version(),
        processor=processor(),
        threads=threads,
    )


def _git(*arguments: str) -> str:
    command = [
        "git",
        "-c",
        f"safe.directory={_ROOT}",
        "-C",
        str(_ROOT),
        *arguments,
    ]  # another user may own the checkout
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
