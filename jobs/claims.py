"""python -m jobs.claims check FILE [--store PATH]: the verdicts of a store on the claims of a file."""

import argparse
import sys
import textwrap
from pathlib import Path

from jobs.exits import DONE, ends
from lnmeasure.claims.judging import Verdict, judge
from lnmeasure.claims.ledger import load, shipped
from lnmeasure.store.reader import Store, store_path


def main(arguments: list[str] | None = None) -> int:
    """Print the verdicts. Exit codes: 0 done, 2 bad arguments or a malformed file, 76 store damaged or missing."""
    parser = argparse.ArgumentParser(prog="python -m jobs.claims", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="check")
    command = commands.add_parser("check", help="judge claims by a store; nothing is changed")
    command.add_argument(
        "file", type=Path, nargs="?", help="a TOML file of [[claim]] entries (default: the shipped ones)"
    )
    command.add_argument("--store", type=Path, metavar="PATH", help="default: LNMEASURE_STORE, or the shipped store")
    options = parser.parse_args(arguments)
    return ends(lambda: check(options.file, options.store))


def check(file: Path | None, store: Path | None) -> int:
    """Judge the claims of a file, of this package where there is none, by a store."""
    claims = load(file) if file else shipped()
    read = Store(store or store_path())
    for verdict in judge(claims, read.readings):
        print(said(verdict))
    return DONE


def said(verdict: Verdict) -> str:
    """A verdict in a few lines: the word, the claim, and what decided."""
    lines = [f"{verdict.claim.id}: {verdict.verdict}", verdict.claim.statement, verdict.why]
    return lines[0] + "".join(
        "\n" + textwrap.fill(f"{line}", 110, initial_indent="  ", subsequent_indent="  ") for line in lines[1:]
    )


if __name__ == "__main__":
    sys.exit(main())
