"""Readers while the store is published again and again: no error, no torn answer, never back to an older generation."""

import os
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path

import duckdb
import pytest

from jobs.verify import verify
from lnmeasure.store.building import Building
from lnmeasure.store.follow import Follower
from lnmeasure.store.reader import Store
from lnmeasure.store.record import Publication, add_to_record, recorded
from tests.cells import grid, invented
from tests.nursery import wait_until
from tests.writer import WHO

CELLS = grid(6)
THREADS = 4
_ONE_GENERATION = (
    "SELECT min(sigma), max(sigma), min(loss), max(loss) FROM by_cell",
    "SELECT min(grad_w2 / block), max(grad_w2 / block), min(stream_rms / block), max(stream_rms / block) FROM by_block",
    "SELECT min(sigma_mean), max(sigma_mean), min(bottom_grad_w2_mean), max(bottom_grad_w2_mean) FROM by_depth",
    "SELECT generation FROM meta",
)
"""Every number these give is the generation of the store that is asked: publish_again sees to it."""


def publish_again(store: Path, generation: int) -> None:
    """Publish a generation, every reading of which is its number, times the block."""
    building = Building(store)
    building.begin(WHO, planned=len(CELLS), reused=0)
    for setting in CELLS:
        building.add(invented(setting, float(generation)))
    assert building.publish("0", None) == generation


def follow(store: Path, last: int, seen: Path) -> list[list[int]]:
    """Ask in several threads of one process until the last generation is there. What each thread saw, in order."""
    follower = Follower(store)
    with ThreadPoolExecutor(THREADS) as pool:
        threads = [pool.submit(_generations, follower, last, seen / f"{os.getpid()}_{n}") for n in range(THREADS)]
    return [thread.result() for thread in threads]


def _generations(follower: Follower, last: int, seen: Path) -> list[int]:
    generations = [0]
    while generations[-1] < last:
        store, trouble = follower.current()
        assert trouble is None
        answers = {number for question in _ONE_GENERATION for number in store.query(question).iloc[0]}
        assert answers == {store.meta["generation"]}, f"torn: {answers}"
        generations.append(int(store.meta["generation"]))
        with seen.open("ab") as file:
            file.truncate(generations[-1])  # its size tells the newest generation seen
    return generations


def analyse(store: Path, last: int, seen: Path) -> list[int]:
    """An analyst's client: one plain connection, held open until the last generation is there. What it was told."""
    connection, told = duckdb.connect(store, read_only=True), []
    while not told or Store(store).meta["generation"] < last:
        for question in _ONE_GENERATION:
            told += connection.execute(question).fetchone()
        (seen / "analyst").touch()
    return told


def publish_under_readers(store: Path, publications: int) -> tuple[list[list[int]], list[int]]:
    """Publish so often with two processes of followers and one analyst at work. What each of them saw.

    They ask without a pause, so they stand back where cores are few: publications would take minutes. Every fourth
    publication waits for them, so that a busy machine does not keep them from the generations between.
    """
    seen = store.parent / "seen"
    seen.mkdir()
    publish_again(store, 1)
    last = publications + 1
    with ProcessPoolExecutor(3, mp_context=get_context("spawn"), initializer=os.nice, initargs=(19,)) as pool:
        analyst = pool.submit(analyse, store, last, seen)
        followers = [pool.submit(follow, store, last, seen) for _ in range(2)]
        try:
            wait_until(lambda: all_at_work(seen, [analyst, *followers]), "every reader is at work")
            for generation in range(2, last + 1):
                publish_again(store, generation)
                if generation % 4 == 0:
                    wait_until(partial(all_have_seen, seen, generation), f"all saw generation {generation}")
            return [thread for process in followers for thread in process.result(60)], analyst.result(60)
        finally:
            for child in active_children():  # a reader that stands still never ends by itself
                child.kill()


def all_at_work(seen: Path, readers: list[Future]) -> bool:
    """Whether each thread of each reader has had an answer, or one of them has ended, which tells why."""
    return len(list(seen.iterdir())) == 2 * THREADS + 1 or any(reader.done() for reader in readers)


def all_have_seen(seen: Path, generation: int) -> bool:
    """Whether each follower's thread has had an answer of this generation or a newer one."""
    return all(at.stat().st_size >= generation for at in seen.iterdir() if at.name != "analyst")


def hold_what_was_seen(publications: int, store: Path) -> None:
    """Every thread sees many generations, the last one too, and never an older one after a newer one."""
    threads, told = publish_under_readers(store, publications)
    assert len(threads) == 2 * THREADS
    for generations in threads:
        assert generations == sorted(generations)
        assert len(set(generations)) > publications // 5
    assert set(told) == {1}, "an open file changed under its reader"
    answers = sum(map(len, threads)) * len(_ONE_GENERATION)
    fewest = min(len(set(generations)) for generations in threads)
    print(
        f"\n{publications} publications: {answers} answers to {len(threads)} threads, each of which saw {fewest} "
        f"generations at least; {len(told)} numbers to the analyst; 0 errors, 0 torn, 0 steps back"
    )


def test_readers_of_50_publications_get_no_error_no_torn_answer_and_no_older_generation(store_at):
    hold_what_was_seen(50, store_at)


@pytest.mark.soak
def test_readers_of_300_publications_get_no_error_no_torn_answer_and_no_older_generation(store_at):
    hold_what_was_seen(300, store_at)


def test_a_store_begun_anew_beside_the_record_of_an_older_one_has_its_own_entry_there(store_at):
    for generation in range(11, 31):
        add_to_record(store_at, Publication(generation=generation, size=1, blake2b="", duckdb="", tables={}))
    assert len(recorded(store_at)) == 10
    publish_again(store_at, 1)
    assert list(recorded(store_at)) == [1]
    assert verify(store_at, sample=0) == 0
