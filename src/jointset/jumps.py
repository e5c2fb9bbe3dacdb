"""Jumps of neighbourhoods: readings near each other that move together from one row to the next, and stay.

A filter follows its readings: a neighbourhood that drops by a fifth is a large error in one row and a small one in
those that follow, which the score of a large network hardly shows. Let z be the errors of a row in standard deviations
of the law, each divided by its own recent size and cut at CUT, so that one wild sensor does not count as many; X the
sum of z over a neighbourhood, divided by its own recent size. At a row t,

    J_t = min(X_{t-1}, (X_{t-1} + X_t) / sqrt 2) - max(0, X_{t-4} + X_{t-3} + X_{t-2}) / (2 sqrt 3),

for rises, and the same of -X for drops: the jump, that it did not go back, and that it was no slow rise, such as every
rush hour has. The largest J of each day of calibration, over all neighbourhoods, says how large J is without a jump.
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
BLOCKS = 8  # largest J that are kept at least
DAY = 86_400


@storable
class UsualJumps(NamedTuple):
    """What calibration rows say: mean squares of errors (N,) and sums (K,), and the largest J of blocks of rows."""

    sensors: Array
    sets: Array
    largest: Array  # (2, B): of rises and of drops
    rows: int  # of a block


class JumpState(NamedTuple):
    """Recent mean squares of the errors (N,) and of the sums (K,), and the last sums (LAG, K), NaN = none."""

    sensors: Array
    sets: Array
    past: Array


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
        self.weight = 1.0 / self.roots

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


def start_jumps(usual: UsualJumps) -> JumpState:
    """Before the first row."""
    return JumpState(usual.sensors, usual.sets, np.full((LAG, len(usual.sets)), np.nan))


def follow(around: Neighbourhoods, usual: UsualJumps, state: JumpState, errors: Array) -> JumpState:
    """After the errors (N,) of one more row."""
    sums = around.sums(errors / np.sqrt(_mixed(usual.sensors, state.sensors, SENSOR_USUAL)))
    now = sums / np.sqrt(_mixed(usual.sets, state.sets, SET_USUAL))
    past = np.concatenate([state.past[1:], now[None]])
    sensors = _moved(state.sensors, errors, SENSOR_MEMORY)
    return JumpState(sensors, _moved(state.sets, sums, SET_MEMORY), past)


def jump(past: Array) -> Array:
    """J of rises and of drops (2, ..., K), 0 where there is none, from the last LAG sums (LAG, ..., K).

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
    return np.fmax(found, 0.0, out=found)


def usual_jumps(errors: Array, edges: Edges | None, cadence: float | None) -> UsualJumps | None:
    """What errors (m, N) of calibration rows say, NaN = missing; None without a neighbourhood, or with few rows."""
    around = Neighbourhoods(edges, errors.shape[1])
    rows = int(min(DAY / (cadence or 300.0), len(errors) / BLOCKS))
    if not len(around) or rows < 2 * LAG:
        return None
    sensors = _mean_square(errors)
    sums = around.sums(errors / np.sqrt(_mixed(sensors, _course(sensors, errors, SENSOR_MEMORY), SENSOR_USUAL)))
    sets = _mean_square(sums)
    sums = sums / np.sqrt(_mixed(sets, _course(sets, sums, SET_MEMORY), SET_USUAL))
    most = jump(np.stack([sums[k : len(sums) - LAG + 1 + k] for k in range(LAG)])).max(axis=-1)
    return UsualJumps(sensors, sets, most[:, most.shape[1] % rows :].reshape(2, -1, rows).max(axis=-1), rows)


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
