"""The two shapes of the published rows: an ellipsoidal annulus, and a box with its own interval for every sensor.

Both keep the sizes of `jointset.regions` and add `score` and `radius`, the pair that an outcome reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointset.algebra.partial import (
    UNCALIBRATED,
    GapScale,
    independent_count,
    largest_quantile,
    measured_distance,
    placed_distance,
)
from jointset.algebra.shares import distance_shares, maximum_shares
from jointset.algebra.volumes import box_log_volume, unit_ball_log_volume
from jointset.contracts import Array, Index, Law, OwnSet, Reading
from jointset.distances import mahalanobis_score
from jointset.laws import LowRankLaw
from jointset.regions import Sizes
from jointset.support.cached import cached_property


@dataclass(frozen=True, repr=False)
class Annulus(Sizes):
    """{y : lower <= ((y - m)' S^-1 (y - m))^1/2 <= upper}: radii on the root scale, (...) or one for all steps.

    With `lower` > 0 the set has a hole around its own centre. `contains` and `log_volume` leave the hole out;
    `log_volume_filled` is the ellipsoid of `upper` alone. The hole does not change the projections on the sensors. A
    reading with gaps is held against `upper` alone: it says too little on the others to lie in the hole.
    """

    law: Law
    lower: Array | float
    upper: Array | float
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

    def lift(self, y: Array) -> Array:
        """See `OwnSet`."""
        read = measured_distance(np.ones(np.shape(y)[:-1]), np.isnan(y))
        return np.sqrt(np.where(read[..., 1] > 0, placed_distance(read, self.gaps), 1.0))

    def reach(self, y: Array) -> Array:
        """See `Sizes`."""
        return 1.0 / self.lift(y)[..., None]

    def growth(self, y: Array) -> Array:
        """The least factor by which the filled set must be scaled to hold a reading (...); inf if it is a point."""
        upper = np.broadcast_to(self.upper, self.law.mean.shape[:-1])
        return np.divide(self.score(y), upper, out=np.full(upper.shape, np.inf), where=upper > 0)[()]

    def scalable(self, least: Array, correlations: Array | None, level: float) -> Annulus:
        """The set with an outer radius of 0.001 or more, so that it can be scaled."""
        return replace(self, upper=np.maximum(self.upper, 1e-3))

    def rescale(self, shift: Array, scale: Array) -> Annulus:
        """The set of shift + scale * Y."""
        return replace(self, law=self.law.rescale(shift, scale))

    def contains(self, y: Reading) -> Array:
        """Whether the reading lies between the two radii."""
        y = self.ordered(y)
        score = self.score(y)
        beyond_hole = (self.lower <= score) | np.isnan(y).any(-1)
        return beyond_hole & (score <= self.upper)

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance when one sensor is left out (..., N)."""
        return self.law.contributions(y)

    def shares(self, y: Array) -> Array:
        """Shares (N,) in the distance, of one step."""
        return distance_shares(self.law, y)

    def as_normal(self) -> Law:
        """The law."""
        return self.law

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

    def __getitem__(self, index: Index) -> Annulus:
        chosen = replace(self, law=self.law[index], lower=_at(self.lower, index), upper=_at(self.upper, index))
        return self._named_like(chosen)


@dataclass(frozen=True, repr=False)
class IntervalBox(Sizes):
    """{y : lower_i <= y_i <= upper_i for all i}, ends (..., N) in the units of the data; `closed=False` is strict.

    A reading with gaps is inside when every sensor that was read is: the fewer were read, the more often.
    """

    lower: Array
    upper: Array
    closed: bool = True
    correlations: Array | None = None  # squared, of the residuals (N, N), and the coverage asked for: see `growth`
    level: float = 0.9

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
        """The least factor by which the box must be scaled to hold a reading (...): its score.

        Rows with gaps are put on the scale of complete ones where the correlations are known.
        """
        return self.score(y) * self.lift(y)

    def lift(self, y: Array) -> Array:
        """See `OwnSet`."""
        missing = np.isnan(np.asarray(y, dtype=float))
        if self.correlations is None or not missing.any():
            return np.ones(missing.shape[:-1])
        seen = (~missing).astype(float)
        read, n = seen.sum(-1), seen.shape[-1]
        some = read**2 / np.maximum((seen * (seen @ self.correlations)).sum(-1), 1.0)
        every = n**2 / max(float(self.correlations.sum()), 1.0)
        counts = independent_count(read, some, self.level), independent_count(n, np.asarray(every), self.level)
        at_some, at_every = (largest_quantile(count, self.level) for count in counts)
        return np.where(missing.any(-1), np.maximum(at_every / at_some, 1.0), 1.0)

    def scalable(self, least: Array, correlations: Array | None, level: float) -> IntervalBox:
        """The box with half-widths (N,) of at least so much, so that it can be scaled, and the squared correlations."""
        ends = self.lower, self.upper
        if not (self.half_width >= least).all():
            wide = np.maximum(self.half_width, least)
            ends = self.center - wide, self.center + wide
        return IntervalBox(*ends, self.closed, correlations, level)

    def rescale(self, shift: Array, scale: Array) -> IntervalBox:
        """The box of shift + scale * Y."""
        return replace(self, lower=shift + scale * self.lower, upper=shift + scale * self.upper)

    def contains(self, y: Reading) -> Array:
        """Whether every observed sensor lies in its interval."""
        y = self.ordered(y)
        seen = ~np.isnan(y)
        above, below = (y >= self.lower, y <= self.upper) if self.closed else (y > self.lower, y < self.upper)
        return np.asarray(((above & below) | ~seen).all(-1) & seen.any(-1))[()]

    def contributions(self, y: Array) -> Array:
        """Distance of every sensor from its middle, in half-widths (..., N); 0 where missing."""
        gap = np.abs(np.asarray(y, dtype=float) - self.center)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(gap == 0, 0.0, gap / self.half_width)
        return np.where(np.isnan(gap), 0.0, ratio)

    def shares(self, y: Array) -> Array:
        """Shares (N,) in the largest distance, of one step: all to the sensor that has it."""
        return maximum_shares(self.contributions(y))

    def as_normal(self) -> LowRankLaw:
        """Independent sensors that leave the box as often as it is meant to be left."""
        n = self.lower.shape[-1]
        sd = self.half_width / largest_quantile(n, self.level)
        usual = np.where(np.isfinite(sd), sd, 0.0).max(initial=0.0) or 1.0
        sd = np.clip(sd, 1e-6 * usual, 1e6 * usual)  # an interval may have no length, or no end
        return LowRankLaw(self.center, sd**2, np.zeros((*sd.shape, 0)))

    @property
    def log_volume(self) -> Array:
        """(1/N) sum_i log 2 h_i."""
        return box_log_volume(self.half_width)

    @property
    def log_volume_filled(self) -> Array:
        """The volume: a box has no hole."""
        return self.log_volume

    def __getitem__(self, index: Index) -> IntervalBox:
        return self._named_like(replace(self, lower=self.lower[index], upper=self.upper[index]))


@dataclass(frozen=True, repr=False)
class ScaledSet(Sizes):
    """An own set scaled about its centre by a factor (...); half-widths and N-th root of the volume scale with it."""

    own: OwnSet
    factor: Array | float
    gaps: GapScale = UNCALIBRATED

    @property
    def center(self) -> Array:  # type: ignore[override]
        """That of the own set."""
        return self.own.center

    @property
    def radius(self) -> Array:
        """The factor."""
        return np.asarray(self.factor)[()]

    @cached_property
    def half_width(self) -> Array:  # type: ignore[override]
        """The own ones times the factor."""
        return np.maximum(self.factor, 0.0)[..., None] * self.own.half_width

    def score(self, y: Array) -> Array:
        """The least factor that holds the reading (...); NaN where nothing is observed."""
        return self.gaps.levelled(self.own.growth(y), y)

    def contains(self, y: Reading) -> Array:
        """Whether the reading lies inside, that is score <= factor."""
        return self.score(self.ordered(y)) <= self.factor

    def reach(self, y: Array) -> Array:
        """See `Sizes`."""
        factor = self.gaps.factor(y)
        return 1.0 / (self.own.lift(y) * (1.0 if factor is None else factor))[..., None]

    def contributions(self, y: Array) -> Array:
        """Those of the own set."""
        return self.own.contributions(y)

    @property
    def log_volume(self) -> Array:
        """That of the own set, filled, + log factor."""
        with np.errstate(divide="ignore"):
            return self.own.log_volume_filled + np.log(np.maximum(self.factor, 0.0))

    def __getitem__(self, index: Index) -> ScaledSet:
        return self._named_like(ScaledSet(self.own[index], _at(self.factor, index), self.gaps.at(index)))


def _at(radius: Array | float, index: Index) -> Array | float:
    return radius if np.ndim(radius) == 0 else np.asarray(radius)[index]
