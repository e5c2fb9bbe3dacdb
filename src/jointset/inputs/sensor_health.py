"""Sensors that fall silent or stand still: how long each usually does either, and how long each has done so now.

A filter follows a sensor that stands still, and after a while no score blames it; one that is silent is left out of
every score. So both are watched apart. A sensor is silent, or stuck, once that lasts longer than twice its longest
spell in the last 5,000 training rows, and longer than 20 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import some
from jointset.inputs.graph_edges import Edges
from jointset.inputs.jumps import UsualJumps
from jointset.inputs.row_clock import Event
from jointset.panel import Panel
from jointset.storage import storable, storable_not_finite

LEAST = 20  # rows that any sensor may be silent or stand still
SPELLS = 2  # of the longest in training that it may
LOOKED_AT = 5_000  # last training rows


@storable
class Usual(NamedTuple):
    """What the last training rows say of each sensor (N,), and of time."""

    mean: Array
    longest_same: Array  # readings in a row with one value
    longest_gap: Array  # rows in a row without a reading
    cadence: int | None = None  # seconds between rows, the most common
    own: Array | None = None  # half-width of the band of the sensor alone, in sd of the law; set by calibration
    jumps: UsualJumps | None = None  # how far neighbourhoods jump; set by calibration


@storable_not_finite("value")
class Health(NamedTuple):
    """Spells of every sensor (N,) up to now, in rows."""

    value: Array  # the last one read, NaN before the first
    same: Array  # readings in a row with that value
    gap: Array  # rows since it was read
    empty: int = 0  # rows in a row without any reading

    def silent(self, usual: Usual) -> Array:
        """Sensors (N,) without a reading for longer than they should be."""
        return self.gap > limit(usual.longest_gap)

    def stuck(self, usual: Usual) -> Array:
        """Sensors (N,) that have stood still for longer than they should; a silent one is not stuck."""
        return (self.same > limit(usual.longest_same)) & ~self.silent(usual)


def limit(longest: Array) -> Array:
    """Rows (N,) that a spell may last."""
    return np.maximum(SPELLS * longest, LEAST)


def start_health(n: int) -> Health:
    """Before the first row."""
    return Health(np.full(n, np.nan), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))


def observe(health: Health, y: Array) -> Health:
    """After one more row (N,), NaN = missing.

    >>> health = start_health(2)
    >>> for row in ([1.0, 5.0], [1.0, np.nan], [1.0, np.nan]):
    ...     health = observe(health, np.array(row))
    >>> health.same.tolist(), health.gap.tolist()
    ([3, 1], [0, 2])
    """
    seen = ~np.isnan(y)
    count, same = np.count_nonzero(seen), np.where(y == health.value, health.same + 1, 1)
    if count == len(y):  # as nearly all are
        return Health(y.copy(), same, np.zeros(count, dtype=np.int64))
    gap, same = np.where(seen, 0, health.gap + 1), np.where(seen, same, health.same)
    return Health(np.where(seen, y, health.value), same, gap, 0 if count else health.empty + 1)


def observe_rows(health: Health, values: Array) -> Health:
    """After many rows (T, N): the same as that many times `observe`."""
    if not len(values):
        return health
    seen = ~np.isnan(values)
    read, columns, steps = seen.any(axis=0), np.arange(values.shape[1]), len(values)
    since = np.where(read, np.argmax(seen[::-1], axis=0), steps)  # rows after the last reading
    gap = np.where(read, 0, health.gap) + since
    value = np.where(read, values[steps - 1 - np.where(read, since, 0), columns], health.value)
    other = seen & (values != value)
    changed = other.any(axis=0)
    first = np.where(changed, steps - np.argmax(other[::-1], axis=0), 0)  # row after the last other reading
    spell = (seen & (np.arange(steps)[:, None] >= first)).sum(axis=0)
    goes_on = ~changed & ((value == health.value) | ~read)
    same = spell + np.where(goes_on, health.same, 0)
    rows = np.flatnonzero(seen.any(axis=1))
    empty = len(values) - 1 - int(rows[-1]) if rows.size else health.empty + len(values)
    return Health(value, same, gap, empty)


def ailing(health: Health, usual: Usual, sensors: Sequence[str]) -> dict[str, list[str]]:
    """Names of the sensors that are silent, and of those that are stuck."""
    if not np.count_nonzero(np.maximum(health.gap, health.same) > LEAST):  # none is that long, as in nearly all rows
        return {"silent": [], "stuck": []}
    found = {"silent": health.silent(usual), "stuck": health.stuck(usual)}
    return {kind: [sensors[i] for i in np.flatnonzero(which).tolist()] for kind, which in found.items()}


def usual_of(panel: Panel) -> Usual:
    """What the last rows of a training panel say.

    >>> panel = Panel([[0.0], [0.0], [np.nan], [0.0], [2.0]], ["a"], timestamps=[0, 60, 120, 180, 240])
    >>> usual = usual_of(panel)
    >>> usual.longest_same.tolist(), usual.longest_gap.tolist(), usual.cadence
    ([3], [1], 60)
    """
    values = panel.values[-LOOKED_AT:]
    same, gap = np.array([_spells(column) for column in np.ascontiguousarray(values.T)], dtype=np.int64).T
    counts = np.maximum(np.count_nonzero(~np.isnan(values), axis=0), 1)
    return Usual(np.nansum(values, axis=0) / counts, same, gap, panel.cadence)


def words_on_jumps(usual: Usual | None, graph: Edges | None) -> str:
    """Why nobody looks for jumps of neighbourhoods, in words; empty where somebody does."""
    if usual is not None and usual.jumps is not None:
        return ""
    why = "no graph, so" if graph is None else "too few calibration rows, or no three sensors that are near each other:"
    return f"{why} jumps of neighbourhoods raise no alarm, only scores do" + (
        ": fit with --graph FILE" * (graph is None)
    )


def unknown_usual(n: int) -> Usual:
    """Where nobody looked: older models."""
    return Usual(np.full(n, np.nan), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))


def expecting_nothing(usual: Usual, sensors: Array) -> Usual:
    """The same where these sensors (N,) are not to be watched, as they were left out on purpose."""
    return usual._replace(longest_gap=np.where(sensors, np.iinfo(np.int64).max // SPELLS, usual.longest_gap))


def falling_ill(before: Health, now: Health, usual: Usual, sensors: Sequence[str], row: int) -> list[Event]:
    """What to tell of the sensors that a row made silent or stuck."""
    events = []
    known = before._replace(gap=before.gap - before.empty).silent(usual)  # in an outage single sensors are not told of
    silent = np.flatnonzero(now.silent(usual) & ~known)
    if silent.size:
        names, rows = some([sensors[i] for i in silent.tolist()]), int(now.gap[silent].max())
        events.append(Event("spells of silent sensors", f"row {row}: no reading of {names} in {rows} rows"))
    stuck = np.flatnonzero(now.stuck(usual) & (before.same <= limit(usual.longest_same)))  # gaps end no such spell
    if stuck.size:
        i, names = int(stuck[0]), some([sensors[i] for i in stuck.tolist()])
        first = f"{sensors[i]!r} has read {now.value[i]:g} {now.same[i]} times in a row"
        mean = "" if np.isnan(usual.mean[i]) else f", where it is {usual.mean[i]:.4g} on average"
        more = f" (stuck: {names})" if stuck.size > 1 else ""
        text = f"row {row}: {first}{mean}: stuck?{more}"
        events.append(Event("spells of stuck sensors", text))
    return events


def _spells(column: Array) -> tuple[int, int]:
    """Longest run of equal readings, gaps between them left out, and longest run of gaps."""
    missing = np.isnan(column)
    read = column[~missing]
    return 1 + longest_run(read[1:] == read[:-1]) if len(read) else 0, longest_run(missing)


def longest_run(flags: Array) -> int:
    """Most True in a row (T,).

    >>> longest_run(np.array([True, False, True, True]))
    2
    """
    ends = np.flatnonzero(~flags)
    return int(np.diff(np.concatenate([[-1], ends, [len(flags)]])).max()) - 1
