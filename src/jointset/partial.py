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
GRID, LEAST = 2.0, 24  # steps of the table of `independent_count`: counts by this factor, so many correlations
_COUNTS = GRID ** np.arange(15.0)  # 1 to 16,384


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

    Correlated sensors count as fewer: see `independent_count`.
    """
    n, k = missing.shape[-1], missing.shape[-1] - missing.sum(-1)
    effective = np.stack(law.effective_sensors(~missing))
    some, every = independent_count(np.stack([k, np.full_like(k, n)]), effective, gaps.level)
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


def independent_count(count: Array | float, effective: Array, level: float) -> Array:
    """How many independent normals have a largest |Z| with the same quantile as that of `count` correlated ones (...).

    `effective` is count^2 / sum of squared correlations. The correlations are taken to be all alike, with that sum:
    exact where they are, and within a few per cent of coverage for blocks, chains and factors (docs/fidelity.md).

    >>> [round(float(independent_count(20, n, 0.9)), 1) for n in (20.0, 1.5, 1.0)]
    [20.0, 4.8, 1.0]
    """
    count = np.maximum(count, 1.0)
    alike = (count / np.clip(effective, 1.0, count) - 1.0) / np.maximum(count - 1.0, 1e-9)  # squared correlation
    reach = np.clip(np.log(count) / np.log(GRID), 0.0, len(_COUNTS) - 1.001)
    place = np.clip((1.0 - np.sqrt(1.0 - np.sqrt(np.clip(alike, 0.0, 1.0)))) * LEAST, 0.0, LEAST)
    row, column = reach.astype(int), np.minimum(place.astype(int), LEAST - 1)
    down, right = reach - row, place - column
    shares = _independent_shares(level)
    upper = (1.0 - right) * shares[row, column] + right * shares[row, column + 1]
    lower = (1.0 - right) * shares[row + 1, column] + right * shares[row + 1, column + 1]
    return count ** ((1.0 - down) * upper + down * lower)


@lru_cache(maxsize=64)
def _independent_shares(level: float) -> Array:
    """log of the independent count over log of the count, by count (rows) and correlation (columns)."""
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    # |Z_i| = |sqrt(r) X + sqrt(1 - r) E_i|: independent given X, which is integrated over
    X = np.arange(0.05, 6.0, 0.1)
    weight = np.exp(-0.5 * X**2) / np.exp(-0.5 * X**2).sum()
    alike = (1.0 - (1.0 - np.arange(LEAST) / LEAST) ** 2)[:, None]
    low, high = np.zeros((len(_COUNTS), LEAST)), np.full((len(_COUNTS), LEAST), 9.0)
    for _ in range(24):
        middle = 0.5 * (low + high)
        ends = [ndtr((sign * middle[..., None] - np.sqrt(alike) * X) / np.sqrt(1.0 - alike)) for sign in (1, -1)]
        inside = ((ends[0] - ends[1]) ** _COUNTS[:, None, None]) @ weight
        low, high = np.where(inside < level, middle, low), np.where(inside < level, high, middle)
    same = np.log(level) / np.log1p(-2.0 * ndtr(-high))
    logs = np.log(_COUNTS)[:, None]
    shares = np.divide(np.log(same), logs, out=np.broadcast_to(1.0 - alike[:, 0], same.shape).copy(), where=logs > 0)
    return np.column_stack([shares, np.zeros(len(shares))])  # sensors that are one


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
