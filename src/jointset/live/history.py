"""Past rows of a network as JSON, CSV or Parquet, read from its store piece by piece."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np
import orjson

from jointset.errors import require
from jointset.live.answers import answer_of, numbers
from jointset.live.store import LATE, ROW, Entry, Store

PIECE = 200  # rows read at once
MOST = 100_000  # rows of one answer
FORMATS = ("json", "csv", "parquet")
FIELDS = ("values", "bounds", "top", "shares")


class Asked(NamedTuple):
    """Which rows: the last `limit` of all that fit, or with `after` the first; and what of them."""

    limit: int = 100
    after: int | None = None  # number of a row
    before: int | None = None
    since: int | None = None  # epoch seconds
    until: int | None = None
    fields: tuple[str, ...] = FIELDS
    told: Callable[[int], None] = lambda rows: None  # called with how many more have been read

    def checked(self) -> Asked:
        """Itself, refused where it makes no sense."""
        require(1 <= self.limit <= MOST, f"limit must be 1 to {MOST:,}, got {self.limit}")
        for name in self.fields:
            require(name in FIELDS, f"unknown field {name[:40]!r}: choose from {', '.join(FIELDS)}")
        return self


def pieces(store: Store, asked: Asked, kinds: tuple[str, ...] = (ROW, LATE)) -> Iterator[list[Entry]]:
    """The entries asked for, oldest first, so many at once that memory stays small."""
    bounds: dict[str, Any] = {"before": asked.before, "since": asked.since, "until": asked.until}
    after, left = asked.after, asked.limit
    if after is None:
        after = store.start_of_last(asked.limit, **bounds) - 1
    while left > 0:
        piece = list(store.entries(after, limit=min(PIECE, left), kinds=kinds, **bounds))
        if not piece:
            return
        yield piece
        asked.told(len(piece))
        after, left = piece[-1].number, left - len(piece)


def row_of_history(entry: Entry, sensors: tuple[str, ...], fields: tuple[str, ...]) -> dict[str, Any]:
    """One row: its answer, and the readings and shares beside it."""
    row = answer_of(entry, sensors)
    for name in ("bounds", "top"):
        if name not in fields:
            row.pop(name, None)
    if "values" in fields and entry.values is not None:
        row["values"] = dict(zip(sensors, numbers(entry.values), strict=True))
    if "shares" in fields and entry.shares is not None:
        row["shares"] = dict(zip(sensors, numbers(np.round(entry.shares.astype(float), 6)), strict=True))
    return row


def as_json(store: Store, sensors: tuple[str, ...], asked: Asked) -> Iterator[str]:
    """`{"rows": [...]}` in pieces."""
    lead = '{"rows": ['
    for piece in pieces(store, asked):
        rows = (orjson.dumps(row_of_history(entry, sensors, asked.fields)).decode() for entry in piece)
        yield lead + ", ".join(rows)
        lead = ", "
    yield (lead if lead.startswith("{") else "") + "]}"


def columns(sensors: tuple[str, ...]) -> list[str]:
    """The columns of a table of rows, each under a name of its own: that of a sensor may be taken.

    >>> columns(("a", "a lower", "score"))[7:12]
    ['a', 'a lower', 'score (2)', 'a lower (2)', 'a upper']
    """
    names = dict.fromkeys(["row", "time", "late", "score", "radius", "inside", "observed"])
    for wanted in (*sensors, *(f"{name} {end}" for name in sensors for end in ("lower", "upper"))):
        tried = chain((wanted,), (f"{wanted} ({k})" for k in count(2)))
        names[next(name for name in tried if name not in names)] = None
    return [*names]


def cells(entry: Entry, n: int) -> list[Any]:
    """The cells of a row of such a table; None where there is nothing."""
    facts = [entry.answer.get(name) for name in ("score", "radius", "inside", "observed")]
    values = [None] * n if entry.values is None else numbers(entry.values)
    ends = [None] * (2 * n) if entry.bounds is None else numbers(entry.bounds.T.ravel())
    return [entry.number, entry.time, entry.kind == LATE, *facts, *values, *ends]


def as_csv(store: Store, sensors: tuple[str, ...], asked: Asked) -> Iterator[str]:
    """A table of CSV in pieces."""
    yield _lines([columns(sensors)])
    for piece in pieces(store, asked):
        yield _lines([["" if cell is None else cell for cell in cells(entry, len(sensors))] for entry in piece])


def _lines(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_parquet(target: object, store: Store, sensors: tuple[str, ...], asked: Asked) -> None:
    """A table of Parquet, written to a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = columns(sensors)
    kinds = [pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.float64(), pa.bool_(), pa.int64()]
    schema = pa.schema(list(zip(names, kinds + [pa.float64()] * (len(names) - len(kinds)), strict=True)))
    with pq.ParquetWriter(target, schema) as writer:
        for piece in pieces(store, asked):
            rows = [cells(entry, len(sensors)) for entry in piece]
            for row in rows:
                row[1] = str(row[1])
            typed = zip(zip(*rows, strict=True), schema.types, strict=True)
            arrays = [pa.array(column, kind) for column, kind in typed]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
