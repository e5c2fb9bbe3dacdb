"""Scores of rows with gaps, put on the scale of complete rows.

The score of k of N sensors is smaller than that of all, so a row with gaps would look calmer than it is, in calibration
and in an alarm. At the coverage that is asked for, both scores have a quantile under a normal law, q_k and q_N: the
score is multiplied by q_N / q_k. A factor commutes with the scale of the law, so rows with gaps are covered as often
as complete ones also where the law is too wide or too narrow by any factor, and the mean has score 0 whatever is
missing. Once the radius r of complete rows at that coverage is known, the rest of the scale follows from it: a score
x = r t goes to the r h(t) whose rank among complete normal rows is that of t among rows with the same gaps, h(1) = 1.

Coverage given one pattern of gaps needs assumptions; these are normality up to scale, and gaps that do not depend on
the readings.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array, Law
from jointset.storage import storable

FARTHEST = 1e-280  # tails below it have no ranks any more


@storable
class GapScale(NamedTuple):
    """The coverage that is asked for, and the radius of the calibration scores at it; NaN before calibration."""

    level: float = 0.9
    radius: float = math.nan


UNCALIBRATED = GapScale()


def full_distance(distance: Array, missing: Array, gaps: GapScale) -> Array:
    """Squared Mahalanobis distances (...) of rows that lack sensors (..., N), on the scale of rows with all N."""
    n, count = missing.shape[-1], missing.sum(-1)
    score = distance * _distance_ratios(n, gaps.level)[count]
    some = (count > 0) & (count < n)
    if not some.any() or not 0.0 < gaps.radius < math.inf:
        return score
    from scipy.special import gammaincc, gammainccinv  # here, so that importing jointset stays fast

    k, t = (n - count[some]) / 2.0, score[some] / gaps.radius
    tail = gammaincc(k, 0.5 * t * chi_square_quantile(2.0 * k, gaps.level))
    ranked = 2.0 * gammainccinv(0.5 * n, tail) / chi_square_quantile(n, gaps.level)
    out = np.array(score)
    out[some] = gaps.radius * np.where(tail > FARTHEST, ranked, t)
    return out[()]


def full_maximum(largest: Array, missing: Array, law: Law, gaps: GapScale) -> Array:
    """Largest |residual| / sd (...) of rows that lack sensors (..., N), on the scale of rows with all N.

    Correlated sensors count as fewer: as many independent ones as their correlations under the law amount to.
    """
    some, every = (np.maximum(count, 1.0) for count in law.effective_sensors(~missing))
    at_some, at_every = largest_quantile(some, gaps.level), largest_quantile(every, gaps.level)
    partial = missing.any(-1) & (every > some)
    score = np.where(partial, largest * at_every / at_some, largest)
    if not 0.0 < gaps.radius < math.inf:
        return score
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    t = np.where(partial, score / gaps.radius, 0.0)
    outside = 2.0 * ndtr(-t * at_some)  # P(|Z| > x), and by powers of 1 less that, of the largest of `every`
    with np.errstate(divide="ignore"):
        same = some / every * np.log1p(-outside)
    ranked = largest_quantile(1.0, np.exp(same), -np.expm1(same)) / at_every
    return np.where(partial, gaps.radius * np.where(outside > FARTHEST, ranked, t), largest)


@lru_cache(maxsize=64)
def _distance_ratios(n: int, level: float) -> Array:
    """Chi-square quantile of n degrees of freedom over that of n - j, for j = 0 .. n missing sensors (n + 1,)."""
    quantiles = chi_square_quantile(np.arange(n, 0, -1.0), level)
    return np.append(quantiles[0] / quantiles, np.nan)


def chi_square_quantile(freedom: Array | float, level: float) -> Array:
    """Quantile of the chi-square law with this many degrees of freedom, which need not be whole."""
    from scipy.special import gammainccinv  # here, so that importing jointset stays fast

    return 2.0 * gammainccinv(np.asarray(freedom) / 2.0, 1.0 - level)


def largest_quantile(count: Array | float, level: Array | float, tail: Array | None = None) -> Array:
    """Quantile of the largest |Z| of `count` independent standard normals, a number that need not be whole.

    `tail` is 1 - level where that is known better.

    >>> round(float(largest_quantile(1, 0.9)), 3)
    1.645
    """
    from scipy.special import ndtri  # here, so that importing jointset stays fast

    outside = -np.expm1(np.log(level) / np.asarray(count)) if tail is None else tail
    return -ndtri(0.5 * outside)
