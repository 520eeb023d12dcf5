"""Die at one line after another of the code that publishes, and look at what is left. Each function is a process."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from jobs.verify import require_recorded
from lnmeasure.records import Setting
from lnmeasure.store import building, files, publication, record, rows, shape, start
from lnmeasure.store.building import Building
from lnmeasure.store.reader import Store
from tests.cells import grid
from tests.writer import add_lacking

CRASHED = 9
CELLS = grid(4)
PUBLISHED, KEPT = CELLS[:2], CELLS[2]
_TRACED = {module.__file__ for module in (building, start, rows, publication, shape, record, files)}


def publish_first(path: Path) -> None:
    """Generation 1, of two cells."""
    _begun(path, PUBLISHED).publish("0", None)


def leave_nothing(path: Path) -> None:
    """The refresh that crashes is the first to work on generation 2."""


def leave_a_building_file(path: Path) -> None:
    """An earlier refresh was killed with a third cell committed, to the log beside its file."""
    left = _begun(path, [KEPT])
    os._exit(0 if left.measured_keys() else 1)


def leave_one_of_another_publication(path: Path) -> None:
    """An earlier refresh was killed, and the store it began from was replaced by another since."""
    left = _begun(path, [KEPT])
    left.close()
    away = path.with_name("away")
    move(left.path, away)
    path.unlink()
    publish_first(path)
    move(away, left.path)


def leave_one_of_an_older_schema(path: Path) -> None:
    """An earlier lnmeasure was killed, with a third cell committed; its store and building file have schema 1."""
    left = _begun(path, [KEPT])
    left.close()
    to_schema_1(path)
    to_schema_1(left.path, logged=True)
    files.beside(path, "record").unlink()


def finish_and_publish(path: Path, phase: str = "", at_each_line: Callable[[], None] = print) -> int:
    """What a refresh does: go on from what is there, and publish all four cells. Calls back at each line of a phase."""
    with _traced(at_each_line, phase == "opening"):
        there = Building(path)
    add_lacking(there, CELLS, path.with_name("journal"))
    with _traced(at_each_line, phase == "publishing"):
        there.publish("0", None)
    return 0


def crash_at(line: int, phase: str, path: Path) -> int:
    """The same, but the process is gone when it comes to the line-th line of a phase. 0 where that has fewer."""
    lines = 0

    def count() -> None:
        nonlocal lines
        lines += 1
        if lines == line:
            os._exit(CRASHED)

    return finish_and_publish(path, phase, count)


def note_lines(phase: str, path: Path, report: Path) -> int:
    """The same, noting how many lines a phase has and at which of them the folder is not as it was a line before."""
    seen = [_folder(path.parent)]
    finish_and_publish(path, phase, lambda: seen.append(_folder(path.parent)))
    changed = [line for line in range(1, len(seen)) if seen[line] != seen[line - 1]]
    report.write_text(json.dumps({"lines": len(seen) - 1, "changed": changed}), encoding="utf-8")
    return 0


def hold_what_is_left(path: Path, kept: bool, aside: bool) -> int:
    """The store is generation 1 or 2, whole; a rerun makes all cells of it, and leaves no litter.

    kept: the cell that was committed before is not measured again. aside: a building file may have been put aside.
    """
    generations = {1: {s.key for s in PUBLISHED}, 2: {s.key for s in CELLS}}
    left = Store(path)
    if not left.older:
        require_recorded(left)
    assert sorted(left.query("SELECT key FROM cell").key) == sorted(generations[left.meta["generation"]])
    there = Building(path)
    assert there.measured_keys() >= generations[1] | ({KEPT.key} if kept else set()), there.notes
    add_lacking(there, CELLS, path.with_name("journal"))
    there.publish("0", None)
    store = Store(path)
    require_recorded(store)
    assert sorted(store.query("SELECT key FROM cell").key) == sorted(generations[2])
    assert store.broken_invariants() == []
    aside_1 = files.beside(path, "building.aside_1")
    expected = {path.name, f"{path.name}.record", "journal"}
    expected |= {aside_1.name, files.beside(aside_1, "wal").name} if aside else set()
    assert {file.name for file in path.parent.iterdir()} == expected
    return 0


def _begun(path: Path, cells: list[Setting]) -> Building:
    there = Building(path)
    add_lacking(there, cells, path.with_name("journal"))
    return there


@contextmanager
def _traced(at_each_line: Callable[[], None], wanted: bool) -> Iterator[None]:
    """Call back before each line of the store's code that writes files."""

    def trace(frame, event, _):
        if frame.f_code.co_filename not in _TRACED:
            return None
        if event == "line":
            at_each_line()
        return trace

    sys.settrace(trace if wanted else None)
    try:
        yield
    finally:
        sys.settrace(None)


def _folder(folder: Path) -> list[tuple]:
    """Everything in a folder that a crash would leave."""
    facts = [(file, file.stat()) for file in sorted(folder.rglob("*"))]
    return [(str(file), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_mode) for file, stat in facts]


def move(database: Path, target: Path) -> None:
    """Rename a DuckDB file and its log."""
    database.rename(target)
    files.beside(database, "wal").rename(files.beside(target, "wal"))


def to_schema_1(file: Path, logged: bool = False) -> None:
    """Put a file in its place that has the tables of schema 1 and the same rows, in a log beside it where logged."""
    old = file.with_name("old")
    with files.connect_to_log(old) if logged else duckdb.connect(old) as connection:
        connection.execute(Path(__file__).with_name("schemas").joinpath("0001.sql").read_text(encoding="utf-8"))
        connection.execute(f"ATTACH '{file}' AS new (READ_ONLY)")
        tables = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        for (table,) in connection.execute(tables).fetchall():
            names = [name for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
            columns = ", ".join(names)
            connection.execute(f"DELETE FROM {table}")
            known = ["true"]  # schema 1 knew no encoder, no paths, and measured every block
            if "setup" in names or table == "setup":
                column = "name" if table == "setup" else "setup"
                known.append(f"{column} IN (SELECT name FROM new.setup WHERE encoder = 'none')")
            if table == "cell":
                known.append("\"full\" AND kind = 'readings'")
            connection.execute(f"INSERT INTO {table} SELECT {columns} FROM new.{table} WHERE {' AND '.join(known)}")
        connection.execute("UPDATE meta SET schema_version = 1")
    files.remove_database(file)
    old.replace(file)
    if logged:
        files.beside(old, "wal").replace(files.beside(file, "wal"))
