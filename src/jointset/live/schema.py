"""The tables of a store, the number of the version that has them, and what brings older ones up to them."""

from __future__ import annotations

import sqlite3

VERSION = 1  # of the tables; raised when older code could not read them
APPLICATION = 0x6A736574  # "jset"
OUTCOMES = "CREATE INDEX log_outcomes ON log (number, kind, seconds, score, radius, inside) WHERE kind = 'row'"
CHANGES = "CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, change TEXT NOT NULL)"
TABLES = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, seconds INTEGER, time TEXT, reading BLOB, answer TEXT,
    score REAL, radius REAL, inside INTEGER, bounds BLOB, shares BLOB, sum INTEGER NOT NULL
);
CREATE INDEX log_by_time ON log (seconds) WHERE seconds IS NOT NULL;
{OUTCOMES};
CREATE TABLE held (
    step INTEGER NOT NULL, sensor INTEGER NOT NULL, seconds INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (step, sensor)
) WITHOUT ROWID;
{CHANGES};
CREATE TABLE snapshots (number INTEGER PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
"""


def bring_up(connection: sqlite3.Connection) -> None:
    """Give a store of an older version what it lacks, within a transaction: the index of the page, and numbers of
    changes that are never used again, so that no way out takes a new change for one that arrived.
    """
    known = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    if "log_outcomes" not in known:
        connection.execute(OUTCOMES)
    if "AUTOINCREMENT" not in known["changes"]:
        connection.execute("ALTER TABLE changes RENAME TO older_changes")
        connection.execute(CHANGES)
        connection.execute("INSERT INTO changes SELECT id, number, change FROM older_changes ORDER BY id")
        connection.execute("DROP TABLE older_changes")
