"""python -m tests.foreign.answers PACKAGE FILE: what a foreign package says to its cases, saved by torch."""

import sys
from importlib import import_module

import torch

from tests.foreign.cases import CASES, PACKAGES
from tests.foreign.model import answer


def main(package: str, path: str) -> None:
    """Answer every case of the package, and what else its adapter has to say."""
    torch.set_num_threads(1)
    adapter = import_module(PACKAGES[package].adapter)
    cases = [case for case in CASES if case.package == package]
    said = {str(case): answer(case.setting, adapter.BUILDERS[case.model]) for case in cases}
    torch.set_default_dtype(torch.float32)
    home = sys.modules[PACKAGES[package].module].__file__
    torch.save({"cases": said, "further": getattr(adapter, "further", dict)(), "home": home}, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
