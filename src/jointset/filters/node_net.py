"""NodeNet: learned members that emit heavy-tailed diagonal-plus-low-rank laws, pooled into one.

Some members know a sensor only by its readings, others give every sensor a vector of its own: the first carry over to
sensors that change, the second tell sensors of different kinds apart, and the pool of both is better than either.
Training needs torch; a fitted filter runs on NumPy alone, its networks in single precision as they were trained, its
laws in double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.law_blocks import concatenate
from jointset.algebra.law_tails import Tails
from jointset.algebra.pooling import matched
from jointset.backbones.calendar import NO_CALENDAR, Calendar, calendar_of
from jointset.backbones.interface import known_range, seed_list, within
from jointset.contracts import Array
from jointset.errors import require
from jointset.filters import node_net_cells as cells
from jointset.filters.node_net_cells import NodeNetWeights
from jointset.filters.recipes import Recipe
from jointset.inputs.shifts import Shift, quick_operator, shift_of
from jointset.laws import LowRankLaw
from jointset.panel import Panel
from jointset.storage import storable
from jointset.support.extras import require_extra

HARMONICS = 2  # of day and week
LARGE = 20_000  # readings of all windows of a step beyond which there are fewer windows
CACHE = 1_000_000  # gates of a block of rows
ABSURD = 1e6  # standard deviations beyond which a network sees no difference
Progress = Callable[[int, int, float], None]


@storable
class NodeNetState(NamedTuple):
    """After the last reading: both recurrent states (M, N, h), the last reading of every sensor and its change (N,).

    seen: 1 where the last row had a reading · next: time of the next row (epoch seconds), 0 without a clock.
    """

    first: Array
    second: Array
    last: Array
    change: Array
    seen: Array
    next: int


@storable
@dataclass(frozen=True)
class NodeNet:
    """Pool of networks shared by all sensors, with a Student-t likelihood.

    Parameters
    ----------
    identities
        A member each; whether its sensors have vectors of their own.
    rank, width
        Common factors of a member's law; size of a hidden state.
    steps, window, skip, batch, rate
        Optimiser steps; rows of a training window, how many of them only bring the state up, windows a step; the
        largest learning rate.
    outages, dropout
        Share of the sensors hidden from the network for a part of a training window, so that it learns what a gap is;
        share of the states hidden from what stands above them, None: the fewer rows, the more.
    apart
        Whether a pool gets the law of every member, to weigh it by itself, instead of one law for all.
    seed, device
        Of the training run.
    weights, shift, sensors, calendar, cadence, first_time, known
        Set by `fit`: what was learned, the graph shift, the number of sensors, of the clock its terms, the usual
        interval and the time after the last row (0 without one), and the range (3, N) beyond which inputs say nothing.
    """

    identities: tuple[bool, ...] = (False, True)
    rank: int = 4
    width: int = 32
    steps: int = 2800
    window: int = 72
    skip: int = 12
    batch: int = 8
    rate: float = 6e-3
    outages: float = 0.1
    dropout: float | None = None
    apart: bool = False
    seed: int = 0
    device: str = "cpu"
    weights: Any = None
    shift: Shift | None = None
    sensors: int = 0
    calendar: Calendar = NO_CALENDAR
    cadence: int = 0
    first_time: int = 0
    known: Array | None = None

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"the seed must be a whole number >= 0, got {self.seed}")
        require(self.steps >= 1, f"steps must be 1 or more, got {self.steps}")
        require(self.rank >= 0, f"rank must be 0 or more, got {self.rank}")
        require(self.width >= 1, f"width must be 1 or more, got {self.width}")
        require(len(self.identities) >= 1, "a pool needs at least one member")
        require(0 <= self.skip < self.window, f"skip must lie in 0 .. window - 1, got {self.skip} of {self.window}")
        require(0.0 <= self.outages <= 0.5, f"outages must lie in [0, 0.5], got {self.outages:g}")
        require(0.0 <= (self.dropout or 0.0) < 1.0, f"dropout must lie in [0, 1), got {self.dropout}")

    def fit(self, panel: Panel, *, progress: Progress | None = None, checkpoint: str | Path | None = None) -> NodeNet:
        """A trained copy."""
        return self.fit_seeds(panel, [self.seed], progress=progress, checkpoint=checkpoint)[0]

    def fit_seeds(
        self,
        panel: Panel,
        seeds: int | Sequence[int],
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
        keep_checkpoint: bool = False,
    ) -> list[NodeNet]:
        """Independent pools for several seeds (0 .. k - 1 for a number k), trained in one program."""
        seeds = seed_list(seeds)
        members, calendar = len(self.identities), calendar_of(panel, HARMONICS, HARMONICS)
        sensors, known = panel.n_sensors, known_range(panel.values)
        fitted = replace(self, shift=shift_of(panel), sensors=sensors, calendar=calendar, known=known)
        if panel.timestamps is not None and panel.cadence:
            fitted = replace(fitted, cadence=panel.cadence, first_time=int(panel.timestamps[-1]) + panel.cadence)
        require_extra("torch", "training the learned members")
        from jointset.filters.members import delete_checkpoints, fresh_entries, stacked, trained_members  # import torch

        trained = trained_members(fitted, panel, fresh_entries(fitted, seeds), progress, checkpoint)
        if not keep_checkpoint:
            delete_checkpoints(checkpoint, self.device)
        return [
            replace(fitted, seed=seed, weights=stacked(self.identities, seed, trained, k * members))
            for k, seed in enumerate(seeds)
        ]

    def schedule(self, rows: int, sensors: int) -> Recipe:
        """How it is trained on so many rows of so many sensors."""
        window = min(self.window, max(rows // 4, 2))
        return Recipe(
            steps=self.steps,
            batch=max(1, min(self.batch, LARGE // sensors)),
            window=window,
            skip=min(self.skip, window // 4),
            rate=self.rate,
            schedule="cosine",
            clip="norm",
            limit=1.0,
        )

    def split(self) -> list[NodeNet]:
        """Every member as a filter of its own."""
        parts = (NodeNetWeights(*(x[i : i + 1] for x in self.weights)) for i in range(len(self.weights.tail)))
        return [replace(self, identities=(bool(w.identity.any()),), weights=w) for w in parts]

    @property
    def degrees_of_freedom(self) -> Array:
        """Of every member's law (M,): the smaller, the heavier its tails."""
        return cells.degrees(self.weights)

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return bool(self.calendar)

    @cached_property
    def _mix(self) -> Any:
        """The shift as the networks use it; None without a graph."""
        return quick_operator(self.shift, np.float32)

    @cached_property
    def _single(self) -> NodeNetWeights:
        """The weights as the networks use them."""
        return NodeNetWeights(*(np.asarray(x, np.float32) for x in self.weights))

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """What the vectors of the sensors add."""
        return cells.own_inputs(self._single)

    def _spread(self, x: Array) -> Array:
        """Neighbours mixed: S x for data (M, Q, N, k)."""
        if self._mix is None:
            return x
        if isinstance(self._mix, np.ndarray):
            return self._mix @ x
        flat = x.transpose(2, 0, 1, 3)
        return (self._mix @ flat.reshape(len(flat), -1)).reshape(flat.shape).transpose(1, 2, 0, 3)

    def start(self) -> NodeNetState:
        """Nothing seen: all sensors at their training mean."""
        require(self.weights is not None, "the filter is not trained: call fit(panel) first")
        hidden = np.zeros((len(self.weights.tail), self.sensors, self.width), np.float32)
        zero = np.zeros(self.sensors)
        return NodeNetState(hidden, hidden, zero, zero, zero, self.first_time)

    def expect(self, state: NodeNetState, when: int) -> NodeNetState:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        return state if state.next == when else state._replace(next=int(when))

    @property
    def _members(self) -> int:
        return len(self.identities if self.weights is None else self.weights.tail)

    @property
    def parts(self) -> int:
        """How many laws it has for a pool."""
        return self._members if self.apart else 1

    def law(self, state: NodeNetState) -> LowRankLaw:
        """Law of the next reading: that of the members, moment by moment."""
        return matched(self._next_laws(state))

    def laws(self, state: NodeNetState) -> list[LowRankLaw]:
        """Laws of the next reading, of every member where they stand apart."""
        return self._next_laws(state) if self.apart else [self.law(state)]

    def _next_laws(self, state: NodeNetState) -> list[LowRankLaw]:
        of, read, clock = self.__dict__.get("_inputs", (None, None, None))
        if of is not state:
            read = self._read(state.last[None], state.change[None], state.seen[None])
            clock = self.calendar.terms(np.array([state.next]), 1)
        return [law[0] for law in self._laws(state.second[:, None], read, clock, state.last[None])]

    def step(self, state: NodeNetState, y: Array) -> NodeNetState:
        """State after one reading (N,); for a missing one the last value stands, marked as not read."""
        return self._advance(np.asarray(y, dtype=float)[None], state, None, laws=False)[1]

    def run(self, values: Array, state: NodeNetState, times: Array | None = None) -> tuple[LowRankLaw, NodeNetState]:
        """Laws of all rows (T, N) and the state after the last one."""
        laws, after = self._run(values, state, times)
        return matched(laws), after

    def run_laws(
        self, values: Array, state: NodeNetState, times: Array | None = None
    ) -> tuple[list[LowRankLaw], NodeNetState]:
        """The same, laws of every member where they stand apart."""
        laws, after = self._run(values, state, times)
        return (laws if self.apart else [matched(laws)]), after

    def _run(self, values: Array, state: NodeNetState, times: Array | None) -> tuple[list[LowRankLaw], NodeNetState]:
        """Laws of every member and the state after the last row, in blocks of rows whose gates stay in the cache."""
        values, size = np.asarray(values, dtype=float), max(1, CACHE // (3 * self.width * self.sensors * self._members))
        blocks = []
        for first in range(0, max(len(values), 1), size):
            own = slice(first, first + size)
            laws, state = self._advance(values[own], state, None if times is None else times[own], laws=True)
            blocks.append(laws)
        return [concatenate(part) for part in zip(*blocks, strict=True)], state

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the work on a row holds: the gates of all sensors."""
        return np.full(len(values), 3 * self.width * values.shape[1] * self._members)

    def _advance(
        self, values: Array, state: NodeNetState, times: Array | None, *, laws: bool
    ) -> tuple[list[LowRankLaw], NodeNetState]:
        """State after the rows, and laws of them where they are asked for."""
        if not len(values):
            return [LowRankLaw(values, values, np.empty((*values.shape, 0)))] * self._members, state
        T, w = len(values), self._single
        times = state.next + self.cadence * np.arange(T) if times is None else np.asarray(times)
        clock = self.calendar.terms(np.concatenate([times, times[-1:] + self.cadence]), T + 1)
        filled, seen = cells.filled(values, state.last)
        last = np.concatenate([state.last[None], filled[:-1]])
        changes = filled - last
        read = self._read(filled, changes, seen)
        begin, above = (np.asarray(h, np.float32) for h in (state.first, state.second))
        gates = cells.first_gates(read, clock[None, :-1].astype(np.float32), self._own[0], w)
        first = cells.states(gates, begin, w.first_weight)
        second = cells.states(cells.second_gates(first, self._spread, w), above, w.second_weight)
        parts = (part.copy() for part in (first[:, -1], second[:, -1], filled[-1], changes[-1], seen[-1]))
        after = NodeNetState._make((*parts, int(times[-1]) + self.cadence))
        if not laws:  # what the next law needs is known already
            self.__dict__["_inputs"] = after, read[:, -1:], clock[-1:]
            return [], after
        before = np.concatenate([above[:, None], second[:, :-1]], axis=1)
        earlier = self._read(state.last[None], state.change[None], state.seen[None])
        read = np.concatenate([earlier, read[:, :-1]], axis=1)
        return self._laws(before, read, clock[:-1], last), after

    def _read(self, filled: Array, changes: Array, seen: Array) -> Array:
        """What sensors give (1, T, N, READ), the same for all members."""
        if self.known is not None:
            far = np.abs(changes) > self.known[2] - self.known[0]
            filled, changes = within(filled, self.known), np.where(far, 0.0, changes)
        given = np.array([filled, changes, seen])
        given = np.minimum(np.maximum(given, -ABSURD, out=given), ABSURD, out=given).astype(np.float32)
        return cells.readings(given[:1], given[1:2], given[2:], self._spread)

    @cached_property
    def _spreads(self) -> Array:
        """Standard deviations of the members' laws (M,) in units of their scales: a variance is v / (v - 2) of them."""
        tail = self.degrees_of_freedom
        return np.sqrt(tail / (tail - 2.0))

    @cached_property
    def _tails(self) -> list[Tails]:
        """Of the members' laws, whose variances they leave as they are."""
        return [Tails(df, (df - 2.0) / df) for df in self.degrees_of_freedom.tolist()]

    def _laws(self, second: Array, read: Array, clock: Array, last: Array) -> list[LowRankLaw]:
        """The members' laws, given states (M, T, N, h) and the last readings (T, N)."""
        clock = clock[None].astype(np.float32)
        heads = cells.heads(np.asarray(second, np.float32), read, clock, self._own[1], self._single)
        correction, scale, factor = (x.astype(float) for x in heads)
        scale *= self._spreads[:, None, None]
        factor *= scale[..., None]
        return [LowRankLaw._made(*law) for law in zip(last + correction, scale**2, factor, self._tails, strict=True)]


def joined(nets: Sequence[NodeNet]) -> NodeNet:
    """Members of one kind that were split, one pass over the readings for all of them."""
    weights = NodeNetWeights(*(np.concatenate(x) for x in zip(*(net.weights for net in nets), strict=True)))
    kinds = tuple(kind for net in nets for kind in net.identities)
    return replace(nets[0], identities=kinds, weights=weights, apart=True)
