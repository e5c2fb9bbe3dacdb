"""Correlations that the inner filter left in its residuals, learned on the way.

With the law N(m, A A') of the inner filter, u = A^-1 (y - m) would have covariance I if the law were right. A running
covariance C of u, shrunk to the identity and held at trace N, makes A C A' the law instead. Rows far out weigh less, as
under a Student-t; what was not read counts by its expectation given what was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple

import numpy as np

from jointset.abilities import expecting, follows_clock
from jointset.algebra.covariance import Covariance
from jointset.algebra.law_tails import Tails, tails_of
from jointset.algebra.pooling import steady
from jointset.algebra.triangles import add_to_diagonal, cholesky, solve_lower
from jointset.contracts import Array, Filter, State
from jointset.errors import require
from jointset.filters.held_out import normal_law, normal_run
from jointset.filters.remembered import Remembered
from jointset.laws import AnyLaw, DenseLaw, matrix_of
from jointset.panel import Panel
from jointset.storage import storable

BLOCK = 1_000_000  # numbers that the laws of a block may hold
FREEDOM = 5.0  # degrees of freedom of the weights of far rows


@storable
class WhitenedState(NamedTuple, Generic[State]):
    """State of the inner filter, and the running covariance (N, N) of its whitened residuals."""

    inner: State
    moment: Array


@storable
@dataclass(frozen=True)
class WhitenedFilter(Remembered[WhitenedState[State], DenseLaw]):
    """A filter whose law has the correlations that the residuals of the inner one show.

    Parameters
    ----------
    inner
        Any filter whose sets have one radius; a matrix is formed at every step, so networks should be small.
    half_life
        Steps after which a residual counts half.
    shrink
        Share of the identity in the running covariance.
    moment
        Set by `fit`: the running covariance at the end of the training rows; None: the identity.
    tails
        Of the law; None: those of the inner one.
    """

    inner: Filter[State]
    half_life: float = 1000.0
    shrink: float = 0.05
    moment: Array | None = None
    tails: Tails | None = None

    def __post_init__(self) -> None:
        require(self.half_life > 0, f"the half-life must be positive, got {self.half_life:g}")
        require(0.0 <= self.shrink <= 1.0, f"shrink must lie in [0, 1], got {self.shrink:g}")

    def fit(self, panel: Panel, **options: Any) -> WhitenedFilter[State]:
        """The inner filter on the panel; correlations start from none."""
        return replace(self, inner=self.inner.fit(panel, **options), moment=None)

    def after(self, panel: Panel) -> WhitenedFilter[State]:
        """The same with the correlations that the rows of a panel show, around a filter that is fitted."""
        state = self.start()
        size = max(1, BLOCK // panel.n_sensors**2)
        for first in range(0, len(panel), size):
            times = None if panel.timestamps is None else panel.timestamps[first : first + size]
            state = self.run(panel.values[first : first + size], state, times)[1]
        return replace(self, moment=state.moment)

    def start(self) -> WhitenedState[State]:
        """The inner start, and the correlations known so far."""
        inner = self.inner.start()
        n = self.inner.law(inner).mean.shape[-1] if self.moment is None else len(self.moment)
        return WhitenedState(inner, np.eye(n) if self.moment is None else self.moment)

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return follows_clock(self.inner)

    def expect(self, state: WhitenedState[State], when: int) -> WhitenedState[State]:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        inner = expecting(self.inner, state.inner, when)
        return state if inner is state.inner else state._replace(inner=inner)

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the work on a row holds: its law, its root and its shape."""
        return np.full(len(values), 3 * values.shape[1] ** 2)

    def _law(self, state: WhitenedState[State]) -> DenseLaw:
        inner, root = self._root(state)
        whole = Covariance(root @ self._shape(state.moment) @ root.T)
        return DenseLaw._made(inner.mean, whole, self.tails or tails_of(inner))

    def _root(self, state: WhitenedState[State]) -> tuple[AnyLaw, Array]:
        """Law of the inner filter and its root; those of the last state are kept, as `law` and `step` both ask."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] is not state:
            law = normal_law(self.inner, state.inner)
            kept = self.__dict__["_kept"] = state, (law, cholesky(steady(matrix_of(law))))
        found: tuple[AnyLaw, Array] = kept[1]
        return found

    def step(self, state: WhitenedState[State], y: Array) -> WhitenedState[State]:
        """State after one reading (N,), NaN = missing."""
        law, root = self._root(state)
        moment = self._moved(state.moment, root, np.asarray(y, dtype=float) - law.mean)
        return WhitenedState(self.inner.step(state.inner, y), moment)

    def run(
        self, values: Array, state: WhitenedState[State], times: Array | None = None
    ) -> tuple[DenseLaw, WhitenedState[State]]:
        """Laws of all rows (T, N) and the state after the last one."""
        clock = () if times is None or not self.follows_clock else (times,)
        laws, after = normal_run(self.inner, values, state.inner, *clock)
        matrices = steady(matrix_of(laws))
        roots = np.broadcast_to(np.linalg.cholesky(matrices), (*values.shape, values.shape[-1]))
        residuals = np.asarray(values, dtype=float) - laws.mean
        shapes = np.empty(roots.shape)
        moment = state.moment
        for t, (root, e) in enumerate(zip(roots, residuals, strict=True)):
            shapes[t] = self._shape(moment)
            moment = self._moved(moment, root, e)
        whole = roots @ shapes @ roots.swapaxes(-1, -2)
        return DenseLaw(laws.mean, Covariance(whole), self.tails or tails_of(laws)), WhitenedState(after, moment)

    def _shape(self, moment: Array) -> Array:
        """The running covariance, shrunk, with trace N."""
        n = len(moment)
        shape = moment * ((1.0 - self.shrink) * n / moment.trace())
        add_to_diagonal(shape, self.shrink)
        return shape

    def _moved(self, moment: Array, root: Array, e: Array) -> Array:
        """The running covariance after one more residual (N,)."""
        missing = np.isnan(e)
        count = np.count_nonzero(missing)
        if count == len(e):
            return moment
        found = self._expected(moment, root, e, missing) if count else _outer(solve_lower(root, e))
        weight = (FREEDOM + len(e)) / (FREEDOM + found.trace())
        return moment + (1.0 - 0.5 ** (1.0 / self.half_life)) * (weight * found - moment)

    def _expected(self, moment: Array, root: Array, e: Array, missing: Array) -> Array:
        """Expectation of u u' (N, N) given what was read, under the law emitted for the row."""
        S = root @ self._shape(moment) @ root.T
        gain = np.linalg.solve(S[np.ix_(~missing, ~missing)], S[np.ix_(~missing, missing)]).T
        whole = np.where(missing, 0.0, e)
        whole[missing] = gain @ e[~missing]
        second = _outer(whole)
        second[np.ix_(missing, missing)] += S[np.ix_(missing, missing)] - gain @ S[np.ix_(~missing, missing)]
        return np.linalg.solve(root, np.linalg.solve(root, second).T)


def _outer(u: Array) -> Array:
    return u[:, None] * u
