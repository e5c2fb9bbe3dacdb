"""The two shapes of the published rows: an ellipsoidal annulus, and a box with its own interval for every sensor.

Both keep the sizes of `jointset.regions` and add `score` and `radius`, the pair that an outcome reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.partial import UNCALIBRATED, GapScale
from jointset.regions import Sizes, mahalanobis_score, unit_ball_log_volume


@dataclass(frozen=True)
class Annulus(Sizes):
    """{y : lower <= ((y - m)' S^-1 (y - m))^1/2 <= upper}: radii on the root scale, (...) or one for all steps.

    With `lower` > 0 the set has a hole around its own centre. `contains` and `log_volume` leave the hole out;
    `log_volume_filled` is the ellipsoid of `upper` alone. The hole does not change the projections on the sensors. A
    reading with gaps is held against `upper` alone: it says too little on the others to lie in the hole.
    """

    law: Any
    lower: Any
    upper: Any
    gaps: GapScale = UNCALIBRATED

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Mean of the law."""
        return self.law.mean

    @property
    def radius(self) -> Array:
        """The outer radius."""
        return np.broadcast_to(self.upper, self.law.mean.shape[:-1])[()]

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """upper S_ii^1/2."""
        return np.maximum(self.upper, 0.0)[..., None] * np.sqrt(self.law.variance)

    def score(self, y: Array) -> Array:
        """Root Mahalanobis distance (...); rows with gaps are put on the scale of all sensors."""
        return np.sqrt(mahalanobis_score(self.law, y, self.gaps))

    def growth(self, y: Array) -> Array:
        """The least factor by which the filled set must be scaled to hold a reading (...)."""
        return self.score(y) / self.upper

    def at_least(self, half_width: Array) -> Annulus:
        """The set with an outer radius of 0.001 or more, so that it can be scaled."""
        return replace(self, upper=np.maximum(self.upper, 1e-3))

    def contains(self, y: Array) -> Array:
        """Whether the reading lies between the two radii."""
        score = self.score(y)
        beyond_hole = (self.lower <= score) | np.isnan(y).any(-1)
        return beyond_hole & (score <= self.upper)

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance when one sensor is left out (..., N)."""
        return self.law.contributions(y)

    @property
    def log_volume(self) -> Array:
        """(1/N) log of kappa_N |S|^1/2 (upper^N - lower^N), by logarithms: nothing overflows at any N."""
        n = self.law.mean.shape[-1]
        with np.errstate(divide="ignore", invalid="ignore"):  # equal radii have volume 0, zero radii too
            ratio = np.where(np.asarray(self.upper) > 0, np.maximum(self.lower, 0.0) / self.upper, 1.0)
            hole = np.log1p(-np.exp(n * np.log(np.minimum(ratio, 1.0))))
        return self.log_volume_filled + hole / n

    @property
    def log_volume_filled(self) -> Array:
        """(1/N) log of kappa_N |S|^1/2 upper^N, the hole filled."""
        n = self.law.mean.shape[-1]
        with np.errstate(divide="ignore"):
            log_radius = np.log(np.maximum(self.upper, 0.0))
        return unit_ball_log_volume(n) / n + log_radius + 0.5 * self.law.log_det / n

    def __getitem__(self, index: Any) -> Annulus:
        return replace(self, law=self.law[index], lower=_at(self.lower, index), upper=_at(self.upper, index))


@dataclass(frozen=True)
class IntervalBox(Sizes):
    """{y : lower_i <= y_i <= upper_i for all i}, ends (..., N) in the units of the data; `closed=False` is strict.

    A reading with gaps is inside when every sensor that was read is: the fewer were read, the more often.
    """

    lower: Array
    upper: Array
    closed: bool = True

    @property
    def center(self) -> Array:  # type: ignore[override]
        """Middle of every interval."""
        with np.errstate(invalid="ignore"):  # an unbounded interval has its middle at 0
            return np.nan_to_num(0.5 * (self.lower + self.upper), nan=0.0)

    @property
    def radius(self) -> Array:
        """1: the score is measured in half-widths."""
        return np.ones(self.lower.shape[:-1])[()]

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """Half the length of every interval."""
        return 0.5 * np.maximum(self.upper - self.lower, 0.0)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The ends."""
        return self.lower, self.upper

    def score(self, y: Array) -> Array:
        """Largest distance from the middle of an interval, in half-widths (...); NaN where nothing is observed."""
        ratio = self.contributions(y)
        unseen = np.isnan(np.asarray(y, dtype=float)).all(-1)
        return np.where(unseen, np.nan, ratio.max(-1))[()]

    def growth(self, y: Array) -> Array:
        """The least factor by which the box must be scaled to hold a reading (...): its score."""
        return self.score(y)

    def at_least(self, half_width: Array) -> IntervalBox:
        """The box with these half-widths (N,) or more, so that it can be scaled."""
        if (self.half_width >= half_width).all():
            return self
        wide = np.maximum(self.half_width, half_width)
        return IntervalBox(self.center - wide, self.center + wide, self.closed)

    def contains(self, y: Array) -> Array:
        """Whether every observed sensor lies in its interval."""
        y = np.asarray(y, dtype=float)
        seen = ~np.isnan(y)
        above, below = (y >= self.lower, y <= self.upper) if self.closed else (y > self.lower, y < self.upper)
        return np.asarray(((above & below) | ~seen).all(-1) & seen.any(-1))[()]

    def contributions(self, y: Array) -> Array:
        """Distance of every sensor from its middle, in half-widths (..., N); 0 where missing."""
        gap = np.abs(np.asarray(y, dtype=float) - self.center)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(gap == 0, 0.0, gap / self.half_width)
        return np.where(np.isnan(gap), 0.0, ratio)

    @property
    def log_volume(self) -> Array:
        """(1/N) sum_i log 2 h_i."""
        with np.errstate(divide="ignore"):
            return np.log(2.0 * self.half_width).mean(-1)

    @property
    def log_volume_filled(self) -> Array:
        """The volume: a box has no hole."""
        return self.log_volume

    def __getitem__(self, index: Any) -> IntervalBox:
        return IntervalBox(self.lower[index], self.upper[index], self.closed)


def _at(radius: Any, index: Any) -> Any:
    return radius if np.ndim(radius) == 0 else np.asarray(radius)[index]
