"""Jumps of neighbourhoods: readings near each other that move together from one row to the next, and stay.

A filter follows its readings: a neighbourhood that drops by a fifth is a large error in one row and a small one in
those that follow, which the score of a large network hardly shows. Let z be the errors of a row in standard deviations
of the law, each divided by its own recent size and cut at CUT, so that one wild sensor does not count as many; X the
sum of z over a neighbourhood, divided by its own recent size. At a row t,

    J_t = min(X_{t-1}, (X_{t-1} + X_t) / sqrt 2) - max(0, X_{t-4} + X_{t-3} + X_{t-2}) / (2 sqrt 3) + EVEN M_t,

for rises, and the same of -X for drops: the jump, that it did not go back, and that it was no slow rise, such as every
rush hour has; 0 where X_{t-2} is beyond OTHER_WAY the other way, as a way back is no jump. M says how even the jump is:
in recent sizes, no smaller than the usual ones, three of four sensors moved so far in row t - 1 and stayed so far in
row t, times the root of how many there are. A jam that grows takes some sensors far and leaves others. M counts where J
is LEAST or more without it. An error counts only where its sensor was read in the row before as well: the first reading
after a gap is no jump. The largest J of each day of calibration, over all neighbourhoods, says how large J is without a
jump.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.graph_edges import Edges, closed_neighbourhoods
from jointset.storage import storable

FEWEST = 3  # sensors of a neighbourhood, and
READ = 0.5  # share of them that must be read
CUT = 2.5  # in recent sizes, where errors are cut
FAR = 4.0  # recent sizes beyond which an error counts no further in the next size
SENSOR_MEMORY, SENSOR_USUAL = 1 / 6, 0.3  # weight of a row in a sensor's recent size, and that of its usual one
SET_MEMORY, SET_USUAL = 1 / 24, 0.5  # those of a neighbourhood
LAG = 5  # rows that J looks at
OTHER_WAY = 2.0  # X in the row before a jump that makes it a way back
LEAST = 1.5  # J without M from which M counts
EVEN, SHARE = 0.25, 0.75  # weight of M, and the share of the sensors that moved so far or farther
FORM = 2  # of J; usual jumps of another form say nothing about this one
BLOCKS = 8  # largest J that are kept at least
PIECE = 20_000  # neighbourhoods and rows at once
DAY = 86_400


@storable
class UsualJumps(NamedTuple):
    """What calibration rows say: mean squares of errors (N,) and sums (K,), and the largest J of blocks of rows."""

    sensors: Array
    sets: Array
    largest: Array  # (2, B): of rises and of drops
    rows: int  # of a block
    form: int = 1  # models saved before there were others say nothing of it


class JumpState(NamedTuple):
    """Recent mean squares of the errors (N,) and of the sums (K,), and the last sums (LAG, K), NaN = none.

    Of the last two rows the errors that count (2, N), NaN = none, and the sizes they are measured by (2, N); which
    sensors were read in the last row (N,), 1 or 0.
    """

    sensors: Array
    sets: Array
    past: Array
    errors: Array
    sizes: Array
    read: Array


class Neighbourhoods:
    """The neighbourhoods of a graph with FEWEST sensors or more: centres (K,), and who belongs to each (K, N)."""

    def __init__(self, edges: Edges | None, n: int) -> None:
        found = [(centre, places) for centre, places in closed_neighbourhoods(edges, n) if len(places) >= FEWEST]
        self.centres = [centre for centre, _ in found]
        self.members = np.zeros((len(found), n))
        for row, (_, places) in zip(self.members, found, strict=True):
            row[places] = 1.0
        self.least = READ * self.members.sum(axis=1)
        self.roots = np.sqrt(self.members.sum(axis=1))
        self.widest = float(self.roots.max(initial=0.0))
        self.weight = 1.0 / self.roots
        self.places = np.full((len(found), max((len(places) for _, places in found), default=0)), n)  # n: nobody
        for row, (_, places) in zip(self.places, found, strict=True):
            row[: len(places)] = places

    def __len__(self) -> int:
        return len(self.centres)

    def sums(self, z: Array) -> Array:
        """Sums (..., K) of cut errors (..., N) over the root of how many were read; NaN where too few were."""
        read, cut = ~np.isnan(z), np.minimum(np.maximum(z, -CUT), CUT)
        if np.count_nonzero(read) == read.size:
            return (cut @ self.members.T) / self.roots
        count = read @ self.members.T
        total = np.where(read, cut, 0.0) @ self.members.T
        return np.where(count >= self.least, total / np.sqrt(np.maximum(count, 1.0)), np.nan)

    def even(self, moved: Array, which: Array) -> Array:
        """M (H,) of moves (H, N), NaN = none, in the neighbourhoods which (H,)."""
        known = np.concatenate([moved, np.full((len(moved), 1), np.nan)], axis=1)
        ordered = np.sort(np.take_along_axis(known, self.places[which], axis=1), axis=1)  # NaN last
        count = np.count_nonzero(~np.isnan(ordered), axis=1)
        place = np.maximum(count - np.ceil(SHARE * count).astype(int), 0)
        return np.sqrt(count) * np.nan_to_num(ordered[np.arange(len(ordered)), place])


def start_jumps(usual: UsualJumps) -> JumpState:
    """Before the first row."""
    n = len(usual.sensors)
    past, errors = np.full((LAG, len(usual.sets)), np.nan), np.full((2, n), np.nan)
    return JumpState(usual.sensors, usual.sets, past, errors, np.ones((2, n)), np.zeros(n))


def follow(around: Neighbourhoods, usual: UsualJumps, state: JumpState, errors: Array) -> JumpState:
    """After the errors (N,) of one more row."""
    mixed, read = _mixed(usual.sensors, state.sensors, SENSOR_USUAL), (~np.isnan(errors)).astype(float)
    counted = errors if np.count_nonzero(state.read) == len(errors) else np.where(state.read > 0.0, errors, np.nan)
    sums = around.sums(counted / np.sqrt(mixed))
    now = sums / np.sqrt(_mixed(usual.sets, state.sets, SET_USUAL))
    return JumpState(
        _moved(state.sensors, errors, SENSOR_MEMORY),
        _moved(state.sets, sums, SET_MEMORY),
        np.concatenate([state.past[1:], now[None]]),
        np.array((state.errors[1], counted)),
        np.array((state.sizes[1], _size(usual.sensors, mixed))),
        read,
    )


def jumps_of(around: Neighbourhoods, state: JumpState) -> Array:
    """J of rises and of drops (2, K) at the last row."""
    return _with_even(around, jump(state.past)[:, None], state.errors[:, None], state.sizes[:1])[:, 0]


def at_most(around: Neighbourhoods, state: JumpState) -> float:
    """A number that no J at the last row exceeds, at the cost of looking at the largest sum and the largest error."""
    moved, error = np.abs(state.past[-2]), np.abs(state.errors[0]) / state.sizes[0]
    largest = float(np.fmax.reduce(moved, initial=0.0)), float(np.fmax.reduce(error, initial=0.0))
    return largest[0] + EVEN * around.widest * largest[1]


def _with_even(around: Neighbourhoods, found: Array, errors: Array, sizes: Array) -> Array:
    """J with M (2, T, K) from J without it, from errors (2, T, N) of each row and the one before, in sizes (T, N)."""
    for way, jumps in zip((1.0, -1.0), found, strict=True):
        rows, which = np.nonzero(jumps >= LEAST)
        for part in np.array_split(np.arange(len(rows)), len(rows) // PIECE + 1):
            first, then = way * errors[0, rows[part]], way * errors[1, rows[part]]
            stayed = np.minimum(first, first + np.where(np.isnan(then), 0.0, then)) / sizes[rows[part]]
            jumps[rows[part], which[part]] += EVEN * around.even(stayed, which[part])
    return np.maximum(found, 0.0)


def jump(past: Array) -> Array:
    """J without M of rises and of drops (2, ..., K), 0 where there is none, from the last LAG sums (LAG, ..., K).

    The three sums before may be missing, but for the last of them.

    >>> jump(np.array([[0.0], [0.0], [0.0], [-6.0], [-1.0]])).round(2).tolist()
    [[0.0], [4.95]]
    """
    early = np.where(np.isnan(past[:2]), 0.0, past[:2])
    before = (early[0] + early[1] + past[2]) / (2.0 * math.sqrt(3.0))
    first, both = past[3], (past[3] + past[4]) / math.sqrt(2.0)
    found = np.empty((2, *before.shape))
    np.subtract(np.minimum(first, both), np.maximum(before, 0.0), out=found[0])
    np.subtract(np.minimum(before, 0.0), np.maximum(first, both), out=found[1])
    found[0][past[2] < -OTHER_WAY] = found[1][past[2] > OTHER_WAY] = 0.0
    return np.fmax(found, 0.0, out=found)


def usual_jumps(errors: Array, edges: Edges | None, cadence: float | None) -> UsualJumps | None:
    """What errors (m, N) of calibration rows say, NaN = missing; None without a neighbourhood, or with few rows."""
    around = Neighbourhoods(edges, errors.shape[1])
    rows = int(min(DAY / (cadence or 300.0), len(errors) / BLOCKS))
    if not len(around) or rows < 2 * LAG:
        return None
    sensors = _mean_square(errors)
    mixed = _mixed(sensors, _course(sensors, errors, SENSOR_MEMORY), SENSOR_USUAL)
    counted = np.concatenate([np.full((1, errors.shape[1]), np.nan), errors[1:]])
    counted[1:][np.isnan(errors[:-1])] = np.nan
    sums = around.sums(counted / np.sqrt(mixed))
    sets = _mean_square(sums)
    sums = sums / np.sqrt(_mixed(sets, _course(sets, sums, SET_MEMORY), SET_USUAL))
    found = jump(np.stack([sums[k : len(sums) - LAG + 1 + k] for k in range(LAG)]))
    pairs = np.stack([counted[LAG - 2 : -1], counted[LAG - 1 :]])
    most = _with_even(around, found, pairs, _size(sensors, mixed[LAG - 2 : -1])).max(axis=-1)
    return UsualJumps(sensors, sets, most[:, most.shape[1] % rows :].reshape(2, -1, rows).max(axis=-1), rows, FORM)


def _size(usual: Array, mixed: Array) -> Array:
    """What M measures errors by: the recent size, or the usual one where that is larger."""
    return np.sqrt(np.maximum(usual, mixed))


def _mixed(usual: Array, recent: Array, weight: float) -> Array:
    """A mean square between the usual and the recent one."""
    return weight * usual + (1.0 - weight) * recent


def _moved(recent: Array, row: Array, memory: float) -> Array:
    """Mean squares after one more row; what is missing leaves them."""
    step = np.minimum(row * row, FAR * FAR * recent) - recent
    step[np.isnan(step)] = 0.0
    return recent + memory * step


def _course(usual: Array, rows: Array, memory: float) -> Array:
    """Mean squares before each of the rows (m, n), from the usual ones."""
    recent, course = usual, np.empty(rows.shape)
    for t, row in enumerate(rows):
        course[t] = recent
        recent = _moved(recent, row, memory)
    return course


def _mean_square(rows: Array) -> Array:
    """Mean squares of columns, those far off cut once; 1 where there is nothing."""
    rough, read = np.ones(rows.shape[1]), ~np.isnan(rows).all(axis=0)
    rough[read] = np.nanmedian(np.abs(rows[:, read]), axis=0)
    cut = np.minimum(np.abs(rows), 10.0 * np.where(rough > 0.0, rough, 1.0))
    count = np.maximum(np.count_nonzero(~np.isnan(rows), axis=0), 1)
    return np.where(read, np.maximum(np.nansum(cut * cut, axis=0) / count, 1e-4), 1.0)
