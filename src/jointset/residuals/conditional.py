"""Shapes that depend on the moment: the hour of the day, or the past moments most like this one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.covariance import Covariance
from jointset.contracts import Array, Pilot
from jointset.errors import InputError, require
from jointset.laws import DenseLaw
from jointset.residuals.piecewise import Piece, PiecewiseLaw
from jointset.residuals.shrinkage import all_positive_definite, mean_variance, second_moment, to_diagonal
from jointset.storage import storable

DAY = 86_400
SAME = 2.0**-40  # differences of squared distances below this part of them are rounding


@storable
class Clock(NamedTuple):
    """Time of the next row, in seconds since the epoch (UTC)."""

    next: int


@storable
@dataclass(frozen=True)
class TimeOfDay:
    """One covariance for each of `bins` equal parts of the day (UTC), shrunk to its diagonal by `shrink`.

    A bin with fewer than two residuals a sensor gets the covariance of all of them. Needs time stamps; rows that come
    without (a live stream) are taken to follow one another at the cadence of the pilot block.
    """

    bins: int = 24
    shrink: float = 0.0
    covariances: Array | None = None  # (K, N, N), set by fit with the next three
    choice: Array | None = None  # (bins,), which of them a bin has
    cadence: int = 0
    first: int = 0

    def __post_init__(self) -> None:
        require(self.bins >= 1, f"bins must be 1 or more, got {self.bins}")

    def fit(self, pilot: Pilot) -> TimeOfDay:
        """A covariance a bin."""
        E = pilot.residuals
        if pilot.times is None or pilot.cadence is None:
            raise InputError(f"{pilot.name} needs time stamps: give readings with a time column")
        which = self._bins(pilot.times)
        large = np.flatnonzero(np.bincount(which, minlength=self.bins) >= 2 * E.shape[1])
        choice = np.full(self.bins, len(large))  # the covariance of all comes last
        choice[large] = np.arange(len(large))
        parts = [*(E[which == b] for b in large), E]
        found = [to_diagonal(second_moment(part), self.shrink) for part in parts]
        found = all_positive_definite(found, mean_variance(E), pilot.name)
        last = int(pilot.times[-1])
        first = last + pilot.cadence
        return replace(self, covariances=np.stack(found), choice=choice, cadence=pilot.cadence, first=first)

    def _bins(self, times: Array) -> Array:
        return (np.asarray(times) % DAY) * self.bins // DAY

    @cached_property
    def emitted(self) -> tuple[Covariance, ...]:
        """The covariances, each factorised once."""
        return tuple(Covariance(S, lasting=True) for S in np.asarray(self.covariances))

    def start(self) -> Clock:
        """The step after the pilot block; `at` sets another time."""
        return Clock(self.first)

    def at(self, state: Clock, time: int) -> Clock:
        """The state with the time of the next row."""
        return Clock(int(time))

    def run(self, residuals: Array, centers: Array, times: Array | None, state: Clock) -> tuple[PiecewiseLaw, Clock]:
        """Laws of all rows, a piece for every covariance met."""
        if times is None:
            times = state.next + self.cadence * np.arange(len(residuals))
        which = np.asarray(self.choice)[self._bins(times)]
        pieces = tuple(Piece(np.flatnonzero(which == b), self.emitted[b]) for b in np.unique(which))
        after = Clock(int(times[-1]) + self.cadence) if len(times) else state
        return PiecewiseLaw(centers, pieces, np.ones(centers.shape[1])), after


@storable
@dataclass(frozen=True)
class Local:
    """Covariance of the residuals at the k pilot moments whose predicted means are nearest to the present one.

    It is shrunk to its diagonal by `shrink`, without which k < N residuals would give a flat set. Of a long pilot
    block the last `rows` moments are searched.
    """

    dense: ClassVar[bool] = True  # a matrix a step is formed

    k: int = 50
    shrink: float = 0.05
    rows: int = 5000
    means: Array | None = None  # (n, N), set by fit with the residuals
    residuals: Array | None = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        require(self.k >= 1, f"k must be 1 or more, got {self.k}")
        require(0.0 < self.shrink <= 1.0, f"shrink must lie in (0, 1], got {self.shrink}")

    def fit(self, pilot: Pilot) -> Local:
        """Keep the pilot's means and residuals."""
        E = pilot.residuals
        require(len(E) >= self.k, f"{pilot.name} needs at least k = {self.k} rows, found {len(E)}")
        floor = 1e-6 * float(np.mean(E**2))  # a neighbourhood in which a sensor does not move at all
        return replace(self, means=pilot.means[-self.rows :].copy(), residuals=E[-self.rows :].copy(), floor=floor)

    def start(self) -> tuple[()]:
        """There is nothing to remember."""
        return ()

    def run(
        self, residuals: Array, centers: Array, times: Array | None, state: tuple[()]
    ) -> tuple[DenseLaw, tuple[()]]:
        """Laws of all rows."""
        n = centers.shape[1]
        out = np.empty((len(centers), n, n))
        size = max(1, 2_000_000 // (self.k * n))
        for t in range(0, len(centers), size):
            block = slice(t, t + size)
            near = np.asarray(self.residuals)[self._nearest(centers[block])]  # (B, k, N)
            out[block] = lowrank.transpose(near) @ near
        out /= self.k
        out = to_diagonal(out, self.shrink)
        out[:, np.arange(n), np.arange(n)] += self.floor
        return DenseLaw(centers, Covariance(out)), state

    @cached_property
    def _searched(self) -> tuple[Array, Array]:
        means = np.asarray(self.means)
        return np.ascontiguousarray(means.T), 0.5 * np.einsum("ni,ni->n", means, means)

    def _nearest(self, centers: Array) -> Array:
        """Pilot rows (B, k) nearest to each centre: |a - b|^2 / 2 = |b|^2 / 2 - a'b + a constant.

        Rounded, so that pilot rows with one mean are as near whatever block of centres they are held against.
        """
        means, half_squares = self._searched
        gaps = half_squares - centers @ means
        if self.k == gaps.shape[1]:
            return np.tile(np.arange(self.k), (len(gaps), 1))
        unit = SAME * (np.median(half_squares) + 0.5 * np.einsum("ni,ni->n", centers, centers))
        gaps = np.rint(gaps / np.maximum(unit, np.finfo(float).tiny)[:, None])
        return np.argpartition(gaps, self.k - 1, axis=1)[:, : self.k]
