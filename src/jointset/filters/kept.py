"""A filter that goes on without some of its sensors, or with new ones, and has no weight to learn again.

Those that left are never read again. Nothing of the filter changes: what it knew of them stays where it was, and tells
of the others what it always did. The law of the rest is the marginal one, exactly.

New ones are taken in by filters whose weights serve every sensor alike: the graph grows, the state of the rest stays.
The Kalman filter has two numbers for all sensors, the node-wise learned filter one set of weights. A new sensor starts
from what is known of any: in the first with a variance far above the usual one, in the second in the state in
which the filter was trained to begin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, cast

import numpy as np

from jointset.abilities import Named, Restarting, expecting, follows_clock
from jointset.contracts import Array, Filter, Law, State
from jointset.errors import InputError
from jointset.filters.gnf import GNF, GNFState
from jointset.filters.kalman import GraphLGSSM, KalmanState
from jointset.graph import normalized_shift
from jointset.panel import Panel
from jointset.storage import storable

WIDE = 9.0  # variance of the hidden state of a new sensor, in variances at rest


@storable
@dataclass(frozen=True)
class KeptFilter(Generic[State]):
    """The filter of `total` sensors of which those at `places` (k,) are left."""

    inner: Filter[State]
    places: Array
    total: int

    def fit(self, panel: Panel, **options: Any) -> Any:
        """The filter fitted afresh on the sensors that are left."""
        return self.inner.fit(panel, **options)

    def start(self) -> State:
        """That of the filter."""
        return self.inner.start()

    def law(self, state: State) -> Law:
        """Law of the next reading (k,)."""
        return cast("Law", self.inner.law(state)).select(self.places)

    def step(self, state: State, y: Array) -> State:
        """State after one reading (k,), NaN = missing."""
        return self.inner.step(state, self._whole(np.asarray(y, dtype=float)))

    def run(self, values: Array, state: State, times: Array | None = None) -> tuple[Law, State]:
        """Laws of all rows (T, k) and the state after the last one."""
        clock = () if times is None else (times,)
        laws, after = self.inner.run(self._whole(np.asarray(values, dtype=float)), state, *clock)
        return cast("Law", laws).select(self.places), after

    def _whole(self, values: Array) -> Array:
        """Readings (..., total) with those of the sensors that left missing."""
        out = np.full((*values.shape[:-1], self.total), np.nan)
        out[..., self.places] = values
        return out

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of a row holds: those of a whole matrix."""
        return np.full(len(values), float(self.total**2))

    @property
    def name(self) -> str:
        """That of the filter, for messages."""
        return self.inner.name if isinstance(self.inner, Named) else ""

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return follows_clock(self.inner)

    def expect(self, state: State, when: int) -> State:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        return expecting(self.inner, state, when)

    def restart(self, state: State) -> State:
        """The state with an empty history, where the filter has one."""
        after: State = self.inner.restart(state) if isinstance(self.inner, Restarting) else state
        return after


def kept(filter_: Filter[State], places: Array, total: int) -> KeptFilter[State]:
    """The filter of `total` sensors on those at these places."""
    if isinstance(filter_, KeptFilter):
        return KeptFilter(filter_.inner, filter_.places[places], filter_.total)
    return KeptFilter(filter_, places, total)


def grown(filter_: Filter[Any], state: object, adjacency: Array) -> tuple[Filter[Any], object]:
    """The filter on a graph (M, M) whose first N sensors are those it has, and its state with the new ones in it."""
    if isinstance(filter_, GraphLGSSM) and isinstance(state, KalmanState):
        return _grown_kalman(filter_, state, adjacency)
    if isinstance(filter_, GNF) and filter_.node and isinstance(state, GNFState):
        shift = normalized_shift(adjacency) if filter_.graph else None
        larger = replace(filter_, sensors=len(adjacency), shift=shift)
        hidden = np.concatenate([state.hidden, larger.start().hidden[len(state.hidden) :]])
        return larger, GNFState(hidden)
    name = getattr(filter_, "name", "") or type(filter_).__name__
    raise InputError(
        f"{name} learns every sensor by itself and cannot take in a new one: fit it again on rows that have it; "
        "kalman, kalman-tuned and gnf-node, whose weights serve all sensors alike, can"
    )


def _grown_kalman(filter_: GraphLGSSM, state: KalmanState, adjacency: Array) -> tuple[GraphLGSSM, KalmanState]:
    n, m = len(state.mean), len(adjacency)
    wide = WIDE * filter_.sigma_q**2 / (1.0 - filter_.rho**2)
    P = np.diag(np.full(m, wide))
    P[:n, :n] = filter_.law(state).covariance.matrix - filter_.sigma_r**2 * np.eye(n)
    mean = np.concatenate([state.mean, np.zeros(m - n)])
    return replace(filter_, adjacency=adjacency), KalmanState(mean, P)
