"""Rows of a store column by column, in bytes that a browser takes as they are.

Two whole numbers of four bytes, rows and sensors (0: no single readings); then numbers of the log and times
(float64), scores and radii (float32), readings, lower and upper ends and shares of the score (float32, row after row),
and outcomes (one byte: 1 inside, 0 outside, -1 no reading).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require
from jointset.live.store import Store

MOST = 100_000  # rows of one answer,
MOST_DETAILED = 3_000  # and of one with single readings


class Wanted(NamedTuple):
    """Which rows: the last `limit` of those numbered between, with single readings or without."""

    limit: int
    after: int = 0
    before: int | None = None
    detail: bool = False

    def checked(self) -> Wanted:
        """Itself, refused where that is more than a browser should take."""
        most = MOST_DETAILED if self.detail else MOST
        require(1 <= self.limit <= most, f"limit must be 1 to {most:,}, got {self.limit}")
        return self


def packed_rows(store: Store, sensors: int, wanted: Wanted) -> bytes:
    """The rows that are wanted, oldest first."""
    rows = store.columns(wanted.limit, wanted.after, wanted.before, detail=wanted.detail)
    count = len(rows)
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * (8 if wanted.detail else 5)
    number, seconds, score, radius, inside = columns[:5]
    parts = [
        np.array([count, sensors if wanted.detail else 0], "<u4"),
        np.array(number, "<f8"),
        np.array(seconds, "<f8"),
        _numbers(score, np.nan),
        _numbers(radius, np.inf),  # a set without an end has none
    ]
    if wanted.detail:
        parts += _details(columns[5:], count, sensors)
    parts.append(np.array([-1 if hit is None else hit for hit in inside], "i1"))
    return b"".join(part.tobytes() for part in parts)


def _numbers(column: tuple[float | None, ...], unknown: float) -> Array:
    return np.array([unknown if x is None else x for x in column], "<f4")


def _details(columns: list[Any], count: int, sensors: int) -> list[Array]:
    """Readings, ends and shares (T, N) of rows, from the bytes of the store."""
    readings, bounds, shares = columns
    values = np.frombuffer(b"".join(readings), "<f8").reshape(count, sensors)
    lower, upper = np.frombuffer(b"".join(bounds), "<f8").reshape(count, 2, sensors).transpose(1, 0, 2)
    weights = np.frombuffer(b"".join(shares), "<f4")
    return [np.ascontiguousarray(part, "<f4") for part in (values, lower, upper)] + [weights]
