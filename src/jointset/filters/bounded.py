"""A filter that never sees a reading far outside its training rows; there the last reading stands.

Around an expert of a pool. A reading far beyond the known range (`far_beyond`) is the mean to the filter, and how far
it is from there is added to the mean of the next law: a sensor that has tripped is where it was last, give or take what
the filter says of one at its usual level. Else a filter that draws every sensor back to that level errs in every row,
and the sets of all others, which share a radius with it, grow without need. Elsewhere nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import numpy as np

from jointset.abilities import Sized, message_start
from jointset.backbones.interface import far_beyond, known_range
from jointset.contracts import Array, Filter, State
from jointset.filters.held_out import normal_law, normal_run
from jointset.filters.kalman_tuning import forward_filled
from jointset.filters.remembered import Remembered
from jointset.filters.telling import Told, fitted
from jointset.laws import AnyLaw
from jointset.panel import Panel
from jointset.storage import storable


@storable
class BoundedState(NamedTuple, Generic[State]):
    """The state of the filter, and how far from the mean every sensor was that is far out (N,), 0 for others."""

    inner: State
    beyond: Array


@storable
@dataclass(frozen=True)
class BoundedFilter(Remembered[BoundedState[State], AnyLaw]):
    """A filter, of sets with one radius and without a clock, to which what is far beyond its range (3, N) is usual.

    >>> from jointset import GraphLGSSM, generate_grssf
    >>> bounded = BoundedFilter(GraphLGSSM()).fit(generate_grssf("A", n=10, length=600).panel)
    >>> far = bounded.step(bounded.start(), np.full(10, 1e6))
    >>> bool((bounded.law(far).mean > 9e5).all())
    True
    """

    inner: Filter[State]
    known: Array | None = None  # set by fit

    def fit(self, panel: Panel, progress: Told | None = None) -> BoundedFilter[State]:
        """The filter fitted, and the range of these rows."""
        inner = self.inner.fit(panel) if progress is None else fitted(self.inner, panel, progress)
        return replace(self, inner=inner, known=known_range(panel.values))

    @property
    def name(self) -> str:
        """That of the filter."""
        return message_start(self.inner).removesuffix(": ")

    def start(self) -> BoundedState[State]:
        """The filter's own start, nothing beyond."""
        return BoundedState(self.inner.start(), np.zeros(np.asarray(self.known).shape[1]))

    def law_sizes(self, values: Array) -> Array:
        """Those of the filter."""
        n = values.shape[1]
        return self.inner.law_sizes(values) if isinstance(self.inner, Sized) else np.full(len(values), n * n)

    def _law(self, state: BoundedState[State]) -> AnyLaw:
        return _moved(normal_law(self.inner, state.inner), state.beyond)

    def step(self, state: BoundedState[State], y: Array) -> BoundedState[State]:
        """State after one reading (N,), NaN = missing: it is as far out as it was."""
        y = np.asarray(y, dtype=float)
        inside = self._seen(y)
        return BoundedState(self.inner.step(state.inner, inside), np.where(np.isnan(y), state.beyond, y - inside))

    def run(self, values: Array, state: BoundedState[State]) -> tuple[AnyLaw, BoundedState[State]]:
        """Laws of all rows (T, N) and the state after the last one."""
        values = np.asarray(values, dtype=float)
        inside = self._seen(values)
        beyond = forward_filled(np.concatenate([state.beyond[None], values - inside]))
        laws, inner = normal_run(self.inner, inside, state.inner)
        return _moved(laws, beyond[:-1]), BoundedState(inner, beyond[-1].copy())

    def _seen(self, values: Array) -> Array:
        """Readings (..., N) as the filter sees them."""
        known = np.asarray(self.known)
        return np.where(far_beyond(values, known), known[1], values)


def _moved(law: AnyLaw, by: Array) -> AnyLaw:
    """A law around another mean; itself where nothing moves."""
    return law.rescale(by, np.ones(by.shape[-1])) if by.any() else law
