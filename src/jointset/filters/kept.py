"""A filter that goes on without some of its sensors: they are never read again, and its law is that of the rest.

Nothing of the filter changes, so that no weight has to be learned again: what it knew of the sensors that left stays
where it was, and tells of the others what it always did. The law of the rest is the marginal one, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, cast

import numpy as np

from jointset.abilities import Named, Restarting, expecting, follows_clock
from jointset.contracts import Array, Filter, Law, State
from jointset.panel import Panel
from jointset.storage import storable


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
