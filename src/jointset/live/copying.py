"""Copies of a store, page by page: a backup while it is in use, and one without its free pages in its own place."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from jointset.errors import require
from jointset.live.store import Store, readable
from jointset.predicting.passes import Counting, Progress, silent

MIB = 2**20
PAGES = 1024  # copied at a time
LOOKS = 1000  # instructions of SQLite between two looks at the file it writes


def back_up(store: Store, path: Path, counting: Counting = silent) -> None:
    """Copy a store, whole, to a new file, while it is in use; OSError where that cannot be written."""
    require(not path.exists(), f"{path} is there already: give another name")
    with readable(store.path), closing(sqlite3.connect(path)) as target:
        store.reader.execute("BEGIN")  # what is written meanwhile does not make the copy begin anew
        try:
            size = _used(store.reader)
            _copy(store.reader, target, _in_all(counting(_mib(size), "MiB"), size))
        except sqlite3.OperationalError as error:  # the pages come as they are: a damaged one is no error here
            full = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None
        finally:
            store.reader.execute("COMMIT")
        said = target.execute("PRAGMA quick_check(1)").fetchone()[0]
    words = " ".join(said.split())
    require(said == "ok", f"{store.path} is damaged ({words}): put a backup in its place")


def compact(store: Store, counting: Counting = silent) -> None:
    """Give free pages of a store back to the disk, by way of a file beside it; nobody else may use it.

    The store changes in one transaction: killed at any moment it is as it was, or compact.
    """
    lean = store.path.with_name(f".{store.path.name}.lean")
    lean.unlink(missing_ok=True)  # of a run that was killed
    connection = store.connection
    try:
        with readable(store.path):
            size = _used(connection) - _free(connection)
            written = _in_all(counting(_mib(2 * size), "MiB"), 2 * size)
            connection.set_progress_handler(lambda: written(lean.stat().st_size if lean.exists() else 0), LOOKS)
            connection.execute("VACUUM INTO ?", (str(lean),))
            connection.set_progress_handler(None, 0)
            with closing(sqlite3.connect(lean)) as source:
                _copy(source, connection, lambda done: written(size + done))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.set_progress_handler(None, 0)
        lean.unlink(missing_ok=True)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, written: Callable[[int], None]) -> None:
    """Copy all pages, telling how many bytes are there."""
    page = int(source.execute("PRAGMA page_size").fetchone()[0])
    source.backup(target, pages=PAGES, progress=lambda _, left, total: written((total - left) * page))


def _used(connection: sqlite3.Connection) -> int:
    """Bytes of all pages."""
    return _number(connection, "page_count") * _number(connection, "page_size")


def _free(connection: sqlite3.Connection) -> int:
    """Bytes of the pages that hold nothing any more."""
    return _number(connection, "freelist_count") * _number(connection, "page_size")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _mib(size: int) -> int:
    return -(-size // MIB)


def _in_all(more: Progress, size: int) -> Callable[[int], None]:
    """A function that is told how many bytes there are so far, and tells the new MiB, a hundred times at most."""
    told, step = 0, max(1, _mib(size) // 100)

    def written(so_far: int) -> None:
        nonlocal told
        new = min(_mib(so_far), _mib(size)) - told
        if new >= step:
            told += new
            more(new)

    return written
