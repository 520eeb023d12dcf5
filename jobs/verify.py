"""python -m jobs.verify: is the store what was published, does it keep its rules, and do its cells measure the same?"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from jobs import verdicts
from jobs.exits import DAMAGED, DONE, SOME_FAILED, ends, say
from jobs.refresh import describe
from jobs.words import count, whole_number
from lnmeasure.records import PathReading, Reading, Setting, Setup
from lnmeasure.store.errors import StoreError
from lnmeasure.store.files import beside
from lnmeasure.store.reader import Store, store_path, stray_log
from lnmeasure.store.record import recorded

TOLERANCE = 1e-4
"""Relative. The same machine reads the same bits; another processor adds float32 numbers in another order."""


def main(arguments: list[str] | None = None) -> int:
    """Verify. Exit codes: 0 all is well, 1 a cell or claim comes out otherwise, 2 bad arguments, 76 damaged."""
    parser = argparse.ArgumentParser(prog="python -m jobs.verify", description=__doc__)
    number = partial(whole_number, "sample", 0, 10**6)
    parser.add_argument("--sample", type=number, default=5, help="cells to measure again, 0 for none (default 5)")
    parser.add_argument("--seed", type=int, default=None, help="of the sample, to draw the same one again")
    options = parser.parse_args(arguments)
    return ends(lambda: verify(store_path(), options.sample, options.seed))


def verify(path: Path, sample: int, seed: int | None = None) -> int:
    """Hold the file against its record and its rules, then some of its cells against a new measurement."""
    store = Store(path)  # opens, reads every row, and compares with the record
    require_recorded(store)
    print(
        f"{path.name}: generation {store.meta['generation']} as published: size, digest, rows and hash of every table"
    )
    if broken := store.broken_invariants():
        return say(f"{path.name} breaks its rules: {'; '.join(broken)}.", DAMAGED)
    cells = settings_of(store)
    require_keys(cells)
    print(f"every rule holds, and {count(len(cells), 'key')} of this version name what their cells are")
    if code := judge_again(store):
        return code
    return measure_again(store, Random(seed).sample(list(cells.values()), min(sample, len(cells))))


def require_recorded(store: Store) -> None:
    """StoreError unless the file is, byte for byte and row for row, what publication recorded."""
    known = recorded(store.path)
    entry = known.get(store.meta["generation"])
    if entry is None:
        raise StoreError(
            f"There is no record of generation {store.meta['generation']} beside {store.path}, so nothing says whether "
            f"its bytes are the published ones. Copy {store.path.name}.record with the store; the next publication "
            "writes one."
        )
    same_reader = entry.duckdb == store.content.duckdb  # another DuckDB may hash the same rows otherwise
    if entry != (store.content if same_reader else replace(entry, size=store.content.size, blake2b=store.digest)):
        raise StoreError(
            f"{store.path} is not what was published as generation {entry.generation}. Bring the shipped store back "
            "with 'git checkout HEAD data', or move it and its .record away and run 'make refresh'."
        )
    was_cut_off = beside(store.path, "building").exists()  # after the record was written, before the replace
    if max(known) > entry.generation and not was_cut_off:
        raise StoreError(
            f"{store.path} is generation {entry.generation}, and generation {max(known)} was published here: an older "
            "file was put in its place. Bring the newer one back, or this one's own .record."
        )
    if advice := stray_log(store.path):
        raise StoreError(advice)


def judge_again(store: Store) -> int:
    """Judge the ledger's claims again. 1 where the store keeps other verdicts; it may have none yet."""
    kept, _ = store.judged()
    if not kept:
        print("no claim is judged in it yet: 'make refresh' does that and measures nothing again for it")
        return DONE
    if verdicts.are_kept(store):
        print(f"{count(len(kept), 'verdict')} on the ledger's claims follow from its readings")
        return DONE
    return say("Its verdicts are not those of today's ledger: 'make refresh' judges anew.", SOME_FAILED)


def settings_of(store: Store) -> dict[str, Setting]:
    """The setting of every cell of the version that counts for it today, by the key the store keeps for it."""
    try:
        setups = {row["name"]: _setup(row) for row in store.query("SELECT * FROM setup").to_dict("records")}
    except ValueError as error:
        raise StoreError(f"{store.path} describes a setup that cannot be: {error}") from error
    rows = store.query("SELECT key, setup, placement, init, depth, seed, kind, measurement_version FROM cell")
    settings = [
        Setting(
            setup=setups[row.setup],
            placement=row.placement,
            init=row.init,
            depth=int(row.depth),
            seed=int(row.seed),
            kind=row.kind,
        )
        for row in rows.itertuples()
    ]
    pairs = zip(rows.itertuples(), settings, strict=True)
    return {row.key: setting for row, setting in pairs if row.measurement_version == setting.version}


def require_keys(cells: dict[str, Setting]) -> None:
    """StoreError where a key is not the digest of its setting."""
    for key, setting in cells.items():
        if key != setting.key:
            raise StoreError(f"The cell {describe(setting)} has key {key}, and its setting's is {setting.key}.")


def measure_again(store: Store, settings: list[Setting]) -> int:
    """Measure some cells and compare every reading. 1 where one differs by more than TOLERANCE."""
    if not settings:
        return DONE
    worst = max((_worst(store, setting) for setting in settings), default=0.0)
    print(f"{count(len(settings), 'cell')} measured again: readings differ by {worst:.1e} at most")
    if worst <= TOLERANCE:
        return DONE
    return say(
        f"That is more than {TOLERANCE:g} (relative): code and store disagree. Was a reading changed without raising "
        "MEASUREMENT_VERSION?",
        SOME_FAILED,
    )


def _worst(store: Store, setting: Setting) -> float:
    try:
        from lnmeasure.core.measure import measure
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is not installed, so no cell can be measured again: use --sample 0.") from error
    where = {"setup": setting.setup.name, "placement": setting.placement, "init": setting.init}
    where |= {"depth": setting.depth, "seed": setting.seed}
    if setting.kind == "paths":
        worst = _worst_path(store.query(_ROWS.format("path_reading"), where), measure(setting))
    else:
        whole = store.query(_ROWS.format("by_cell"), where)
        blocks = store.query(_ROWS.format("by_block"), where).set_index(["stack", "block"])
        worst = max(_difference(_stored(whole, blocks, reading), reading.value) for reading in measure(setting))
    print(f"  {describe(setting)}: {worst:.1e}")
    return worst


def _worst_path(rows: pd.DataFrame, measured: list[PathReading]) -> float:
    rows = rows.set_index(["from_block", "to_block"])
    kept = [(rows.loc[(one.from_block, one.to_block)], one) for one in measured]
    return max(_difference(_number(row[name]), getattr(one, name)) for row, one in kept for name in ("square", "trace"))


def _number(value: object) -> float | None:
    return None if pd.isna(value) else float(value)


_ROWS = "SELECT * FROM {} WHERE (setup, placement, init, depth, seed) = ($setup, $placement, $init, $depth, $seed)"


def _stored(whole: pd.DataFrame, blocks: pd.DataFrame, reading: Reading) -> float | None:
    if reading.block is None:
        value = whole.iloc[0][reading.quantity]
    elif blocks.empty:
        return reading.value  # a cell of whole-stack readings only has nothing to compare
    else:
        value = blocks.loc[(reading.stack, reading.block), reading.quantity]
    return _number(value)


def _difference(stored: float | None, measured: float | None) -> float:
    """Relative, of what a FLOAT keeps; infinite where only one of them is there."""
    if stored is None or measured is None:
        return 0.0 if stored is None and measured is None else float("inf")
    kept = float(np.float32(measured))
    return abs(stored - kept) / max(abs(stored), abs(kept)) if stored != kept else 0.0


def _setup(row: dict[str, object]) -> Setup:
    return Setup(**{name: value.item() if hasattr(value, "item") else value for name, value in row.items()})


if __name__ == "__main__":
    sys.exit(main())
