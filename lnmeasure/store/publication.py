"""Publishing: a sorted copy is made beside the store, checked, recorded, and put in the store's place by one replace.

That replace is the only commit point. A crash before it leaves the old store, a crash after it the new one.
"""

import os
from pathlib import Path

import duckdb

from lnmeasure.store.clock import now
from lnmeasure.store.errors import StoreError, full_disk_is_said
from lnmeasure.store.files import beside, remove_database, sync
from lnmeasure.store.invariants import broken_invariants, redefined
from lnmeasure.store.reader import stray_log
from lnmeasure.store.record import Publication, add_to_record, publication_of
from lnmeasure.store.shape import Stamp, copy_sorted, version_of


def publish(connection: duckdb.DuckDBPyConnection, path: Path, package_version: str, commit: str | None) -> int:
    """Publish what the connection's database holds as the next generation of the store at path. Its generation.

    StoreError where it breaks an invariant or a client's log lies beside the store, StoreFull where the disk is full:
    the published store is then untouched.
    """
    ready = beside(path, "publishing")
    with full_disk_is_said(path):
        try:
            remove_database(ready)
            copy_sorted(connection, ready, Stamp(published_at=now(), package_version=package_version, commit=commit))
            checked = check(ready)
            ready.chmod(0o444)
            sync(ready)
            require_no_log(path)
            add_to_record(path, checked)
            os.replace(ready, path)
        finally:
            remove_database(ready)
        sync(path.parent)
    return checked.generation


def require_no_log(path: Path) -> None:
    """StoreError where a write-ahead log lies beside the store: the next client would take it for the new file's."""
    if advice := stray_log(path):
        raise StoreError(f"{advice}, and run the same command again.")


def check(path: Path) -> Publication:
    """Reopen a file that is to be published, read all of it, and hold it against every invariant. What it holds."""
    if beside(path, "wal").exists():
        raise StoreError(f"{path} has a write-ahead log, so it was not checkpointed. This is a defect.")
    connection = duckdb.connect(path, read_only=True)
    try:
        version_of(connection, path)
        if broken := broken_invariants(connection) + redefined(connection):
            raise StoreError(f"{path} is not published: {'; '.join(broken)}. This is a defect.")
        (generation,) = connection.execute("SELECT generation FROM meta").fetchone()
        return publication_of(path, generation, connection)
    finally:
        connection.close()
