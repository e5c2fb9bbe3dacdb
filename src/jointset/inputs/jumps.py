"""Jumps of neighbourhoods: readings near each other that move together from one row to the next, and stay.

A filter follows its readings: a neighbourhood that drops by a fifth is a large error in one row and a small one in
those that follow, which the score of a large network hardly shows. Let z be the errors of a row in standard deviations
of the law, each divided by its own recent size and cut at CUT, so that one wild sensor does not count as many; R their
usual correlations, and 1 the indicator of a neighbourhood. What best tells a common move of it from usual errors is

    X = 1' (R + RIDGE I)^-1 z,

divided by its usual size: a move that goes through the whole network counts less, as the sensors around say what it
was. Of a jump in the row a, known STAY rows later, S_k being X_a + ... + X_{a+k},

    J = min over k of S_k / sqrt(1 + GROWTH k) - max(0, X_{a-3} + X_{a-2} + X_{a-1}) / (2 sqrt 3) + EVEN M,

for rises, and the same of -X for drops: the jump, that it did not go back, and that it was no slow rise, such as every
rush hour has; 0 where one of these is beyond OTHER_WAY the other way, as a way back is no jump. M says how even the
jump is: in recent sizes, no smaller than the usual ones, three of four sensors moved so far in row a and stayed so far,
times the root of how many there are. A jam that grows takes some sensors far and leaves others. M counts where J is
LEAST or more without it. An error counts only where its sensor was read in the row before as well: the first reading
after a gap is no jump. The largest J of each day of calibration, over all neighbourhoods, says how large J is without
a jump.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.inputs.graph_edges import Edges, closed_neighbourhoods
from jointset.storage import storable

FEWEST = 3  # sensors of a neighbourhood, and
READ = 0.5  # share of them that must be read
CUT = 2.5  # in recent sizes, where errors are cut
FAR = 4.0  # recent sizes beyond which an error counts no further in the next size
MEMORY, USUAL = 1 / 6, 0.6  # weight of a row in a sensor's recent size, and that of its usual one
RIDGE = 0.5  # added to correlations
DENSE = 1_000  # sensors beyond which errors are taken for uncorrelated
STAY, GROWTH = 3, 0.4  # rows that a jump must stay, and what a row adds to the usual square of their sum
LAG = 4 + STAY  # rows that J looks at
OTHER_WAY = 3.0  # X in the three rows before a jump that makes it a way back
LEAST = 1.5  # J without M from which M counts
EVEN, SHARE = 0.25, 0.75  # weight of M, and the share of the sensors that moved so far or farther
ABOVE = 1.0 + 1e-9  # over what M can be, so that rounding leaves nothing out
FORM = 3  # of J; usual jumps of another form say nothing about this one
BLOCKS = 8  # largest J that are kept at least
PIECE = 20_000  # neighbourhoods and rows at once
DAY = 86_400


@storable
class UsualJumps(NamedTuple):
    """What calibration rows say: mean squares of errors (N,) and of X (K,), and the largest J of blocks of rows."""

    sensors: Array
    sets: Array
    largest: Array  # (2, B): of rises and of drops
    rows: int  # of a block
    form: int = 1  # models saved before there were others say nothing of it
    precision: Array | None = None  # (R + RIDGE I)^-1 of cut errors; None where that would be too large


class JumpState(NamedTuple):
    """Recent mean squares of the errors (N,), and the last X (LAG, K), NaN = none.

    Of the last rows the errors that count in their sizes (STAY + 1, N), NaN = none; which sensors were read in the last
    row (N,), 1 or 0.
    """

    sensors: Array
    past: Array
    moved: Array
    read: Array


class Neighbourhoods:
    """The neighbourhoods of a graph with FEWEST sensors or more: centres (K,), and who belongs to each."""

    def __init__(self, edges: Edges | None, n: int) -> None:
        found = [(centre, places) for centre, places in closed_neighbourhoods(edges, n) if len(places) >= FEWEST]
        self.n, self.centres = n, [centre for centre, _ in found]
        counts = np.array([len(places) for _, places in found], dtype=float)
        self.least, self.roots = READ * counts, np.sqrt(counts)
        self.widest = float(self.roots.max(initial=0.0))
        self.weight = 1.0 / self.roots
        self.places = np.full((len(found), max((len(places) for _, places in found), default=0)), n)  # n: nobody
        for row, (_, places) in zip(self.places, found, strict=True):
            row[: len(places)] = places

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def members(self) -> Array:
        """Who belongs to each (K, N): 1, or 0."""
        out = np.zeros((len(self), self.n + 1))
        np.put_along_axis(out, self.places, 1.0, axis=1)
        return np.ascontiguousarray(out[:, : self.n])

    @cached_property
    def _inside(self) -> Any:
        """The same, sparse where sensors are many."""
        if self.n <= DENSE:
            return self.members
        from scipy.sparse import csr_array  # here, so that importing jointset stays fast

        which, column = np.nonzero(self.places < self.n)
        return csr_array((np.ones(len(which)), (which, self.places[which, column])), shape=(len(self), self.n))

    def weights(self, precision: Array | None, squares: Array | None = None) -> Any:
        """What errors count for in X (K, N), of which these are the usual squares (K,)."""
        found = self._inside if precision is None else self.members @ precision
        return found if squares is None else found / np.sqrt(squares)[:, None]

    def sums(self, z: Array, weights: Any) -> Array:
        """X (..., K) of errors (..., N); NaN where too few were read."""
        read, cut = ~np.isnan(z), _cut(z)
        if np.count_nonzero(read) == read.size:
            return cut @ weights.T
        count, total = read @ self._inside.T, np.where(read, cut, 0.0) @ weights.T
        return np.where(count >= self.least, total * self.roots / np.sqrt(np.maximum(count, 1.0)), np.nan)

    def even(self, moved: Array, which: Array) -> Array:
        """M (H,) of moves (H, N), NaN = none, in the neighbourhoods which (H,)."""
        known = np.concatenate([moved, np.full((len(moved), 1), np.nan)], axis=1)
        return _even(np.take_along_axis(known, self.places[which], axis=1))


def _even(moved: Array) -> Array:
    """M (H,) of moves of the sensors of one neighbourhood each (H, k), NaN = none."""
    ordered = np.sort(moved, axis=1)  # NaN last
    count = np.count_nonzero(~np.isnan(ordered), axis=1)
    place = np.maximum(count - np.ceil(SHARE * count).astype(int), 0)
    return np.sqrt(count) * np.nan_to_num(ordered[np.arange(len(ordered)), place])


def start_jumps(usual: UsualJumps) -> JumpState:
    """Before the first row."""
    n = len(usual.sensors)
    return JumpState(
        usual.sensors, np.full((LAG, len(usual.sets)), np.nan), np.full((STAY + 1, n), np.nan), np.zeros(n)
    )


def follow(around: Neighbourhoods, weights: Any, usual: UsualJumps, state: JumpState, errors: Array) -> JumpState:
    """After the errors (N,) of one more row; `weights` are those of the neighbourhoods for X of the usual size 1."""
    mixed, missing = _mixed(usual.sensors, state.sensors), np.isnan(errors)
    before = np.count_nonzero(state.read) == len(errors)
    counted = errors if before else np.where(state.read > 0.0, errors, np.nan)
    z, whole = counted / np.sqrt(mixed), before and not np.count_nonzero(missing)
    now = _cut(z) @ weights.T if whole else around.sums(z, weights)
    return JumpState(
        _moved(state.sensors, errors, whole),
        np.concatenate([state.past[1:], now[None]]),
        np.concatenate([state.moved[1:], (counted / _size(usual.sensors, mixed))[None]]),
        state.read if whole else 1.0 - missing,
    )


def jumps_of(around: Neighbourhoods, state: JumpState, least: float = 0.0) -> Array:
    """J of rises and of drops (2, K) at the last row where it is `least` or more; elsewhere some number below that.

    J is at most |X| in the row of the jump and what M can add, which three of four sensors must have moved by: most
    neighbourhoods need no further look.
    """
    found, sizes, moves = np.zeros((2, len(around))), np.abs(state.past[-1 - STAY]), np.abs(state.moved[0])
    largest, farthest = (float(np.fmax.reduce(one, initial=0.0)) for one in (sizes, moves))
    if largest + EVEN * ABOVE * around.widest * farthest < least:  # as most rows of a small network
        return found
    near, read = (sizes >= min(LEAST, least)).nonzero()[0], ~np.isnan(moves)
    inside = around.members[near]
    count = np.maximum(inside @ read, 1.0)
    most = EVEN * ABOVE / SHARE * (inside @ np.where(read, moves, 0.0)) / np.sqrt(count)
    close = (sizes[near] + most >= least).nonzero()[0]
    if not len(close):
        return found
    near, most = near[close], most[close]
    found[:, near] = jump(state.past[:, near])
    for way, jumps in zip((1.0, -1.0), found, strict=True):
        which = near[(jumps[near] >= LEAST) & (jumps[near] + most >= least)]
        if len(which):
            stayed = _stayed(way * state.moved)
            even = around.even(np.broadcast_to(stayed, (len(which), len(stayed))), which)
            jumps[which] = np.maximum(jumps[which] + EVEN * even, 0.0)
    return found


def _with_even(around: Neighbourhoods, found: Array, moved: Array) -> Array:
    """J with M (2, T, K) from J without it, from what sensors moved in the rows since the jump (STAY + 1, T, N)."""
    for way, jumps in zip((1.0, -1.0), found, strict=True):
        rows, which = np.nonzero(jumps >= LEAST)
        for part in np.array_split(np.arange(len(rows)), len(rows) // PIECE + 1):
            places = around.places[which[part]]
            near = _stayed(way * moved[:, rows[part][:, None], np.minimum(places, around.n - 1)])
            jumps[rows[part], which[part]] += EVEN * _even(np.where(places < around.n, near, np.nan))
    return np.maximum(found, 0.0)


def _stayed(course: Array) -> Array:
    """How far sensors moved in the first row of a course (STAY + 1, ..., N) and stayed, NaN = not known."""
    return np.cumsum(_zeroed(course, 1), axis=0).min(axis=0)


def _zeroed(rows: Array, start: int) -> Array:
    """Rows in which what is missing from row `start` on is 0."""
    return np.concatenate([rows[:start], np.nan_to_num(rows[start:], nan=0.0)])


def jump(past: Array) -> Array:
    """J without M of rises and of drops (2, ..., K), 0 where there is none, from the last LAG rows of X (LAG, ..., K).

    X may be missing but in the row of the jump, the one before and the one after.

    >>> jump(np.array([[0.0], [0.0], [0.0], [-6.0], [-1.0], [0.0], [2.0]])).round(2).tolist()
    [[0.0], [3.37]]
    """
    before = (np.nan_to_num(past[0]) + np.nan_to_num(past[1]) + past[2]) / (2.0 * math.sqrt(3.0))
    since = np.cumsum(_zeroed(past[3:], 2), axis=0)
    since /= np.sqrt(1.0 + GROWTH * np.arange(STAY + 1)).reshape(-1, *(1,) * before.ndim)
    found = np.empty((2, *before.shape))
    np.subtract(since.min(axis=0), np.maximum(before, 0.0), out=found[0])
    np.subtract(np.minimum(before, 0.0), since.max(axis=0), out=found[1])
    found[0][(past[:3] < -OTHER_WAY).any(axis=0)] = found[1][(past[:3] > OTHER_WAY).any(axis=0)] = 0.0
    return np.fmax(found, 0.0, out=found)


def usual_jumps(errors: Array, edges: Edges | None, cadence: float | None) -> UsualJumps | None:
    """What errors (m, N) of calibration rows say, NaN = missing; None without a neighbourhood, or with few rows."""
    around = Neighbourhoods(edges, errors.shape[1])
    rows = int(min(DAY / (cadence or 300.0), len(errors) / BLOCKS))
    if not len(around) or rows < 2 * LAG:
        return None
    sensors = _mean_square(errors)
    mixed = _mixed(sensors, _course(sensors, errors))
    counted = np.concatenate([np.full((1, errors.shape[1]), np.nan), errors[1:]])
    counted[1:][np.isnan(errors[:-1])] = np.nan
    z = counted / np.sqrt(mixed)
    precision = _precision(z) if z.shape[1] <= DENSE else None
    sums = around.sums(z, around.weights(precision))
    sets = _mean_square(sums)
    found = jump(_lagged(sums / np.sqrt(sets), LAG))
    moved = _lagged((counted / _size(sensors, mixed))[LAG - STAY - 1 :], STAY + 1)
    most = _with_even(around, found, moved).max(axis=-1)
    largest = most[:, most.shape[1] % rows :].reshape(2, -1, rows).max(axis=-1)
    return UsualJumps(sensors, sets, largest, rows, FORM, precision)


def _lagged(rows: Array, lag: int) -> Array:
    """The rows (lag, T - lag + 1, n) up to each one that has so many."""
    return np.lib.stride_tricks.sliding_window_view(rows, lag, axis=0).transpose(2, 0, 1)


def _precision(z: Array) -> Array:
    """(R + RIDGE I)^-1 of cut errors (m, N), R their correlations, NaN = missing."""
    read = ~np.isnan(z)
    cut = np.where(read, _cut(z), 0.0)
    squares = cut.T @ cut / np.maximum(read.T.astype(float) @ read, 1.0)
    size = np.sqrt(np.maximum(np.diag(squares), 1e-12))
    R = squares / np.outer(size, size)
    np.fill_diagonal(R, 1.0)
    values, vectors = np.linalg.eigh(R)  # of pairs read at different times, so not always positive
    return np.asarray((vectors / (np.maximum(values, 0.0) + RIDGE)) @ vectors.T)


def _size(usual: Array, mixed: Array) -> Array:
    """What M measures errors by: the recent size, or the usual one where that is larger."""
    return np.sqrt(np.maximum(usual, mixed))


def _mixed(usual: Array, recent: Array) -> Array:
    """A mean square between the usual and the recent one."""
    return USUAL * usual + (1.0 - USUAL) * recent


def _cut(z: Array) -> Array:
    """Errors cut at CUT; NaN stays."""
    return np.minimum(np.maximum(z, -CUT), CUT)


def _moved(recent: Array, row: Array, whole: bool = False) -> Array:
    """Mean squares after one more row; what is missing leaves them. `whole`: nothing is."""
    step = np.minimum(row * row, FAR * FAR * recent) - recent
    if not whole:
        step[np.isnan(step)] = 0.0
    return recent + MEMORY * step


def _course(usual: Array, rows: Array) -> Array:
    """Mean squares before each of the rows (m, n), from the usual ones."""
    recent, course = usual, np.empty(rows.shape)
    for t, row in enumerate(rows):
        course[t] = recent
        recent = _moved(recent, row)
    return course


def _mean_square(rows: Array) -> Array:
    """Mean squares of columns, those far off cut once; 1 where there is nothing."""
    rough, read = np.ones(rows.shape[1]), ~np.isnan(rows).all(axis=0)
    rough[read] = np.nanmedian(np.abs(rows[:, read]), axis=0)
    cut = np.minimum(np.abs(rows), 10.0 * np.where(rough > 0.0, rough, 1.0))
    count = np.maximum(np.count_nonzero(~np.isnan(rows), axis=0), 1)
    return np.where(read, np.maximum(np.nansum(cut * cut, axis=0) / count, 1e-4), 1.0)
