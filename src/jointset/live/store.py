"""The store of one network: a SQLite file with a write-ahead log that is brought to the disk at every commit.

It holds the log of the network, numbered in the order things happened: rows of readings with their answers, and what
an operator did. Beside it stand the readings that wait for the rest of their row, changes of alarms, and snapshots:
the state after some number of the log. The last snapshot and the log after it give the state now, bit for bit.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.live.schema import APPLICATION, TABLES
from jointset.live.schema import VERSION as VERSION
from jointset.support.atomic import identity, sync_folder, writing_to

FILE = "readings.db"
SNAPSHOTS = 2  # kept: where the last is damaged, the one before it serves
ROW, LATE, ACTION = "row", "late", "action"
Cells = tuple[Any, ...]  # of a row of the table
FULL_WORDS = "the disk of the store is full: make room, or keep fewer rows (--keep); nothing was lost"


class StoreError(InputError):
    """The store cannot take a reading: one line. `status` is the answer to the sender, 503 or 507."""

    def __init__(self, text: str, status: int = 503) -> None:
        super().__init__(text)
        self.status = status


class Entry(NamedTuple):
    """One number of the log. A late row has no answer; an action has nothing but one."""

    number: int
    kind: str
    seconds: int | None
    time: Any  # as it was given
    values: Array | None  # (N,)
    answer: dict[str, Any]  # without bounds
    bounds: Array | None = None  # (2, N) of the set announced
    shares: Array | None = None  # (N,) of the score, float32


class Store:
    """The tables of a network. One thread writes, in `writing`; any may read."""

    def __init__(self, path: Path, *, timeout: float = 5.0) -> None:
        self.path, self.timeout = path, timeout
        self._readers = threading.local()
        self._writer: int | None = None  # the thread that is in `writing`
        with readable(path):
            self.connection = self._open()
        self._file = identity(path)

    @classmethod
    def create(cls, path: Path, about: dict[str, Any]) -> Store:
        """A new store, whole or not there; `about` is what it says of itself."""
        unfinished = path.with_name(f".{path.name}.new")
        for left in path.parent.glob(f"{unfinished.name}*"):  # by a start that was killed
            left.unlink()
        with readable(path):
            connection = sqlite3.connect(unfinished, isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            tables = "".join(f"PRAGMA {name}={value};" for name, value in _STAMP.items()) + TABLES
            connection.executescript(f"BEGIN;{tables}COMMIT;")
            rows = [(key, json.dumps(value)) for key, value in about.items()]
            connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
            connection.close()
        with writing_to(path):
            unfinished.replace(path)
            sync_folder(path.parent)
        return cls(path)

    def _open(self) -> sqlite3.Connection:
        require(self.path.is_file(), f"there is no store {self.path}")
        connection = sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None, check_same_thread=False)
        stamp = connection.execute("PRAGMA application_id").fetchone()[0]
        require(stamp == APPLICATION, f"{self.path} is no store of jointset: give another folder")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        require(version <= VERSION, f"{self.path} was written by a newer jointset (store {version}): upgrade jointset")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=4000")  # pages: a copy to the file makes a commit wait
        connection.execute("PRAGMA journal_size_limit=67108864")
        return connection

    @property
    def reader(self) -> sqlite3.Connection:
        """A connection of this thread that only reads; within `writing` the one that sees what was written there."""
        if self._writer == threading.get_ident():
            return self.connection
        if not hasattr(self._readers, "connection"):
            connection = self._open()
            connection.execute("PRAGMA query_only=ON")
            self._readers.connection = connection
        found: sqlite3.Connection = self._readers.connection
        return found

    def about(self) -> dict[str, Any]:
        """What the store says of itself."""
        return {key: json.loads(value) for key, value in self.reader.execute("SELECT key, value FROM about")}

    def close(self) -> None:
        """Close the connection that writes; those that read close with their threads."""
        self.connection.close()

    # ------------------------------------------------------------------ writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all that is written in the block is on the disk when it ends, or nothing is."""
        if identity(self.path) != self._file:  # SQLite would go on with a file that nobody finds
            raise StoreError(f"{self.path} was moved or deleted: put it back, or start the service again")
        with readable(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            self._writer = threading.get_ident()
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            finally:
                self._writer = None

    def append(self, rows: Iterable[Cells]) -> None:
        """Write the next numbers of the log."""
        self.connection.executemany(f"INSERT INTO log VALUES ({','.join('?' * 12)})", rows)

    def hold(self, readings: Iterable[tuple[int, int, int, float]]) -> None:
        """Keep single readings (step, place of the sensor, seconds, value) until their row is whole."""
        self.connection.executemany("INSERT OR REPLACE INTO held VALUES (?, ?, ?, ?)", readings)

    def release(self, step: int) -> None:
        """Forget the single readings of a step: they are a row now."""
        self.connection.execute("DELETE FROM held WHERE step = ?", (step,))

    def add_changes(self, changes: Iterable[tuple[int, Any]]) -> None:
        """Write what became of alarms, each with its number of the log."""
        cells = [(number, json.dumps(one)) for number, one in changes]
        self.connection.executemany("INSERT INTO changes (number, change) VALUES (?, ?)", cells)

    def put_snapshot(self, number: int, state: bytes, keep: int) -> None:
        """Write the state after a number of the log, and forget what is older than the last `keep` numbers."""
        run = self.connection.execute
        run("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (number, state, zlib.crc32(state)))
        kept = [one for (one,) in run("SELECT number FROM snapshots ORDER BY number DESC LIMIT ?", (SNAPSHOTS,))]
        run("DELETE FROM snapshots WHERE number < ?", (kept[-1],))
        oldest = min(number - keep, kept[-1])
        run("DELETE FROM log WHERE number <= ?", (oldest,))
        run("DELETE FROM changes WHERE number <= ?", (oldest,))

    # ------------------------------------------------------------------ reading

    def last(self) -> int:
        """The last number of the log, 0 in a new store."""
        found = self.reader.execute("SELECT max(number) FROM log").fetchone()[0]
        snapshot = self.reader.execute("SELECT max(number) FROM snapshots").fetchone()[0]
        return max(found or 0, snapshot or 0)

    def entries(
        self,
        after: int = 0,
        before: int | None = None,
        limit: int | None = None,
        since: int | None = None,
        until: int | None = None,
        kinds: tuple[str, ...] = (ROW, LATE, ACTION),
    ) -> Iterator[Entry]:
        """Entries of the log, oldest first: those numbered between, of times between."""
        ends = {"number > ?": after, "number < ?": before, "seconds >= ?": since, "seconds <= ?": until}
        told = {condition: value for condition, value in ends.items() if value is not None}
        where = " AND ".join([f"kind IN ({','.join('?' * len(kinds))})", *told])
        query = f"SELECT * FROM log WHERE {where} ORDER BY number LIMIT ?"
        for cells in self.reader.execute(query, (*kinds, *told.values(), -1 if limit is None else limit)):
            yield _entry(cells)

    def rows(self) -> int:
        """How many entries the log has."""
        return int(self.reader.execute("SELECT count(*) FROM log").fetchone()[0])

    def start_of_last(
        self, count: int, before: int | None = None, since: int | None = None, until: int | None = None
    ) -> int:
        """Number of the first of the last `count` rows that fit; the last number of all where none does."""
        query = """SELECT min(number), count(*) FROM (
            SELECT number FROM log WHERE kind IN ('row', 'late')
                AND (?1 IS NULL OR number < ?1) AND (?2 IS NULL OR seconds >= ?2) AND (?3 IS NULL OR seconds <= ?3)
            ORDER BY number DESC LIMIT ?4)"""
        first, found = self.reader.execute(query, (before, since, until, count)).fetchone()
        return int(first) if found else self.last() + 1

    def size(self) -> int:
        """Bytes on the disk."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def at(self, seconds: int, late: bytes | None = None) -> Entry | None:
        """The last row of a time that counted, or that of these readings kept as late; for the thread that writes."""
        kind = "kind = 'row'" if late is None else "kind = 'late' AND reading = ?"
        query = f"SELECT * FROM log WHERE seconds = ? AND {kind} ORDER BY number DESC LIMIT 1"
        cells = self.connection.execute(query, (seconds,) if late is None else (seconds, late)).fetchone()
        return None if cells is None else _entry(cells)

    def newest(self) -> int | None:
        """The latest time of a row that counted."""
        found = self.reader.execute("SELECT max(seconds) FROM log WHERE kind = 'row'").fetchone()[0]
        return None if found is None else int(found)

    def outcomes(self, limit: int) -> Array:
        """Times and outcomes (k, 2) of the last scored rows, oldest first."""
        query = "SELECT seconds, inside FROM log WHERE kind = 'row' AND inside IS NOT NULL ORDER BY number DESC LIMIT ?"
        return np.array(self.reader.execute(query, (limit,)).fetchall()[::-1], dtype=np.int64).reshape(-1, 2)

    def columns(
        self, limit: int, after: int = 0, before: int | None = None, *, detail: bool = False
    ) -> list[tuple[Any, ...]]:
        """Number, seconds, score, radius and outcome of the last rows between; with `detail` readings and sets too."""
        names = "number, seconds, score, radius, inside" + ", reading, bounds, shares" * detail
        query = f"SELECT {names} FROM log WHERE kind = 'row' AND number > ? AND number < ? ORDER BY number DESC LIMIT ?"
        return self.reader.execute(query, (after, 2**62 if before is None else before, limit)).fetchall()[::-1]

    def last_score(self) -> float:
        """That of the last row that had one; NaN where there is none."""
        query = "SELECT score FROM log WHERE kind = 'row' AND score IS NOT NULL ORDER BY number DESC LIMIT 1"
        found = self.reader.execute(query).fetchone()
        return math.nan if found is None else float(found[0])

    def held(self) -> list[tuple[int, int, int, float]]:
        """The single readings that wait for the rest of their row."""
        return self.reader.execute("SELECT * FROM held ORDER BY step, sensor").fetchall()

    def changes(self, after: int = 0, limit: int = -1, beyond: int = 0) -> list[tuple[int, int, Any]]:
        """Changes of alarms after an id and beyond a number of the log: (id, number, change), oldest first."""
        query = "SELECT id, number, change FROM changes WHERE id > ? AND number > ? ORDER BY id LIMIT ?"
        return [(i, number, json.loads(text)) for i, number, text in self.reader.execute(query, (after, beyond, limit))]

    def snapshot(self) -> tuple[int, bytes] | None:
        """The last whole snapshot and its number."""
        for number, state, total in self.reader.execute("SELECT * FROM snapshots ORDER BY number DESC"):
            if zlib.crc32(state) == total:
                return number, state
        return None


_STAMP = {"application_id": APPLICATION, "user_version": VERSION}


def cells_of(entry: Entry) -> Cells:
    """The cells of an entry; TypeError where it holds what cannot be written."""
    answer = entry.answer
    cells = (
        entry.number,
        entry.kind,
        entry.seconds,
        None if entry.time is None else orjson.dumps(entry.time).decode(),
        None if entry.values is None else entry.values.astype("<f8", copy=False).tobytes(),
        orjson.dumps(answer).decode(),
        answer.get("score"),
        answer.get("radius"),
        None if answer.get("inside") is None else int(answer["inside"]),
        None if entry.bounds is None else entry.bounds.astype("<f8", copy=False).tobytes(),
        None if entry.shares is None else entry.shares.astype("<f4", copy=False).tobytes(),
    )
    return (*cells, _sum(cells))


def _entry(cells: Cells) -> Entry:
    """The entry of such cells; refused where they changed since they were written."""
    number, kind, seconds, time, reading, answered, *copied, bounds, shares, total = cells
    changed = f"number {number} of the log was changed after it was written"
    require(_sum(cells[:-1]) == total, changed)
    answer = orjson.loads(answered)
    require([answer.get(name) for name in ("score", "radius", "inside")] == copied, changed)
    return Entry(
        number,
        kind,
        seconds,
        None if time is None else json.loads(time),
        None if reading is None else np.frombuffer(reading, "<f8"),
        answer,
        None if bounds is None else np.frombuffer(bounds, "<f8").reshape(2, -1),
        None if shares is None else np.frombuffer(shares, "<f4"),
    )


def _sum(cells: tuple[Any, ...]) -> int:
    """A check sum of what an entry holds."""
    total = zlib.crc32(f"{cells[:4]}{cells[5]}".encode())
    for part in (cells[4], cells[9], cells[10]):
        total = zlib.crc32(part or b"", total)
    return total


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Make one-line errors of those of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        raise one_line(error, path) from None


def one_line(error: sqlite3.Error, path: Path | str = "the store") -> StoreError:
    """What an error of SQLite means, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    words = " ".join(str(error).split())
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: {FULL_WORDS}", 507)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"{path} is damaged ({words}): put a backup in its place")
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(f"{path} cannot be written: give its folder to the user that runs the service")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"{path} is in use by another program: stop it, or wait for it")
    return StoreError(f"{path} cannot be used ({words}): look at the disk")
