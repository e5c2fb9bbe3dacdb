"""Neighbourhoods that jumped, while they stay where they jumped to (`jointset.inputs.jumps` says what a jump is).

A filter takes the new level for the usual one within rows. How far a neighbourhood is off is therefore the sum of its
errors since, which forgets at the rate LEAK: a jump back takes it to nothing at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.inputs.jumps import (
    LAG,
    STAY,
    JumpState,
    Neighbourhoods,
    UsualJumps,
    follow,
    jumps_of,
    start_jumps,
)
from jointset.live.evidence import JUMPS, gumbel_level

LEAK = 1 / 24  # share of what it is off that a neighbourhood forgets in a row
BACK = 1 / 3  # of the jump: less than that is no longer off
WIDE = 0.5  # share of the sensors beyond which a jump is the whole network's
FAR = 20.0  # errors beyond it name no neighbourhood by themselves
PART = 0.25  # of the most moved: sensors below it are not named
WAYS = (1.0, -1.0)  # rises, drops
SCALE = 0.4  # of a Gumbel law through largest J, at least: that of independent errors; eight maxima may lie too close


class Displaced(NamedTuple):
    """A neighbourhood that is off: its row among all, the way it went, how far, and its sensors, most off first."""

    which: int
    way: float
    jump: float
    off: float
    sensors: tuple[int, ...]
    wide: bool
    back: int = 0  # rows since it is no longer off


class Local(NamedTuple):
    """What is remembered of neighbourhoods: their last rows, and which are off."""

    sums: JumpState
    off: tuple[Displaced, ...] = ()


class Jumps:
    """Watches the neighbourhoods of a graph; `days` lie between false jumps of either way, in the mean."""

    def __init__(self, around: Neighbourhoods, usual: UsualJumps, rows_a_day: float, days: float) -> None:
        self.around, self.usual = around, usual
        self.weights = around.weights(usual.precision, usual.sets)
        blocks = days * rows_a_day / usual.rows / JUMPS
        self.limits = np.array([gumbel_level(largest, blocks, SCALE) for largest in usual.largest])
        self.lowest = float(self.limits.min())

    def start(self) -> Local:
        """Before the first row."""
        return Local(start_jumps(self.usual))

    def step(self, local: Local, errors: Array) -> Local:
        """After the errors (N,) of one more row."""
        sums = follow(self.around, self.weights, self.usual, local.sums, errors)
        off = tuple(one for one in (_carried(one, sums.past[-1]) for one in local.off) if one.back < LAG)
        found = jumps_of(self.around, sums, self.lowest)
        if np.count_nonzero(found >= self.lowest):  # as hardly ever
            moved = np.clip(np.nan_to_num(sums.moved, nan=0.0).sum(axis=0), -FAR, FAR)
            for way, jumps, limit in zip(WAYS, found, self.limits, strict=True):
                hits = np.flatnonzero(jumps >= limit)
                off = (*off, *self._new(hits, jumps, way, sums.past, moved, off))
        return Local(sums, off)

    def _new(
        self, hits: Array, jumps: Array, way: float, past: Array, moved: Array, off: tuple[Displaced, ...]
    ) -> list[Displaced]:
        """Those hit that share no sensor with one off already; those that share some are one, the most moved."""
        found: list[Displaced] = []
        left = hits[np.argsort(-jumps[hits], kind="stable")].tolist()
        known = {i for one in off for i in one.sensors}
        while left:
            near, group, left = [left[0]], {*self.members(left[0])}, left[1:]
            while joined := [k for k in left if not group.isdisjoint(self.members(k))]:
                near, left = near + joined, [k for k in left if k not in joined]
                group.update(i for k in joined for i in self.members(k))
            if group.isdisjoint(known):
                best = near[int((self.around.members[near] @ (way * moved) * self.around.weight[near]).argmax())]
                order = sorted(group, key=lambda i: (-way * moved[i], i))
                places = tuple(i for i in order if way * moved[i] >= PART * way * moved[order[0]])
                jump = float(way * np.nansum(past[-1 - STAY :, best]))
                found.append(Displaced(best, way, jump, jump, places, len(places) > WIDE * len(moved)))
        return found

    def members(self, which: int) -> list[int]:
        """Places of the sensors of a neighbourhood, its centre first."""
        centre = self.around.centres[which]
        return [centre, *(i for i in np.flatnonzero(self.around.members[which]).tolist() if i != centre)]


def _carried(one: Displaced, now: Array) -> Displaced:
    """After one more row of sums (K,); without a reading there is only forgetting."""
    step = one.way * float(now[one.which])
    off = (1.0 - LEAK) * one.off + (step if step == step else 0.0)
    return one._replace(off=off, back=one.back + 1 if one.back or off < BACK * one.jump else 0)


def local_tree(local: Local) -> Any:
    """As JSON has it; what is missing is null."""
    sums = [[None if x != x else x for x in array.ravel().tolist()] for array in local.sums]
    return [sums, [list(one) for one in local.off]]


def local_of(tree: Any) -> Local | None:
    """What `local_tree` was made from; None of what an older form of jumps remembered."""
    if len(tree) != 2:
        return None
    sensors, past, moved, read = (np.array(one, dtype=float) for one in tree[0])
    sums = JumpState(sensors, past.reshape(LAG, -1), moved.reshape(STAY + 1, -1), read)
    return Local(sums, tuple(Displaced._make([*one[:4], tuple(one[4]), *one[5:]]) for one in tree[1]))
