"""Cells for tests of the jobs: measured in no time and without torch, or with a fault."""

import os
import signal
import time
from datetime import datetime
from pathlib import Path

from jobs.pool import Work
from jobs.worker import tie_to
from lnmeasure.records import QUANTITIES, Reading, Setting, Setup
from lnmeasure.store.building import Measured

SETUP = Setup(name="invented", width=16, heads=2, seq_len=5, batch=3, vocab=11)


def grid(cells: int, depths=(1, 2, 3)) -> list[Setting]:
    """So many settings of one placement and init."""
    return [
        Setting(setup=SETUP, placement="pre", init="gpt2", depth=depths[n % len(depths)], seed=n // len(depths))
        for n in range(cells)
    ]


def invented(setting: Setting, value: float) -> Measured:
    """A cell whose readings are all the same number, times the block."""
    whole = [Reading(quantity=name, value=value) for name, known in QUANTITIES.items() if not known.per_block]
    blocks = [
        Reading(quantity=name, value=value * block, block=block)
        for block in range(1, setting.depth + 1)
        for name, known in QUANTITIES.items()
        if known.per_block
    ]
    return Measured(setting=setting, readings=whole + blocks, measured_at=datetime(2026, 1, 1), wall_s=0.5)


def instant(setting: Setting) -> Measured:
    """A number that only the setting decides."""
    return invented(setting, 1.0 + int(setting.key[:8], 16) / 2**32)


def fails_at_seed_1(setting: Setting) -> Measured:
    """Raises an error for seed 1."""
    if setting.seed == 1:
        raise ArithmeticError(f"no luck with seed {setting.seed}\nand a second line")
    return instant(setting)


def kills_its_process_at_seed_1(setting: Setting) -> Measured:
    """Dies as the system kills a process for memory, for seed 1."""
    if setting.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return instant(setting)


def kills_its_process_once(folder: Path, setting: Setting) -> Measured:
    """Dies as the system kills a process for memory, for seed 1, but not a second time. Takes a tenth of a second."""
    time.sleep(0.1)
    if setting.seed == 1:
        try:
            (folder / f"killed_{setting.key}").touch(exist_ok=False)
        except FileExistsError:
            return instant(setting)
        os.kill(os.getpid(), signal.SIGKILL)
    return instant(setting)


def beats_from_seed_3_on(folder: Path, setting: Setting) -> Measured:
    """From seed 3 on takes a minute, and a file grows as long as somebody measures it."""
    for _ in range(1200 if setting.seed >= 3 else 0):
        with (folder / f"beat_{setting.key}").open("ab") as beat:
            beat.write(b".")
        time.sleep(0.05)
    return instant(setting)


def takes_all_memory_at_seed_1(setting: Setting) -> Measured:
    """Asks for more memory than any machine has, for seed 1, in pieces that are each granted."""
    hoard = [bytearray(2**26) for _ in range(2**14)] if setting.seed == 1 else []
    return instant(setting) if not hoard else invented(setting, len(hoard))


def dies_on_start(driver: int, memory: int | None) -> None:
    """A worker that cannot get ready."""
    os._exit(3)


def takes_a_minute_to_start(driver: int, memory: int | None) -> None:
    """A worker that is slow to get ready."""
    tie_to(driver, memory)
    time.sleep(60)


WORK = Work(cell=instant, prepare=tie_to)
