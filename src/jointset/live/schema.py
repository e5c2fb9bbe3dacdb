"""The tables of a store, and the number of the version that has them."""

from __future__ import annotations

VERSION = 1  # of the tables; raised when older code could not read them
APPLICATION = 0x6A736574  # "jset"
TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, seconds INTEGER, time TEXT, reading BLOB, answer TEXT,
    score REAL, radius REAL, inside INTEGER, bounds BLOB, shares BLOB, sum INTEGER NOT NULL
);
CREATE INDEX log_by_time ON log (seconds) WHERE seconds IS NOT NULL;
CREATE INDEX log_outcomes ON log (number, kind, seconds, score, radius, inside) WHERE kind = 'row';
CREATE TABLE held (
    step INTEGER NOT NULL, sensor INTEGER NOT NULL, seconds INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (step, sensor)
) WITHOUT ROWID;
CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, change TEXT NOT NULL);
CREATE TABLE snapshots (number INTEGER PRIMARY KEY, state BLOB NOT NULL, sum INTEGER NOT NULL);
"""
