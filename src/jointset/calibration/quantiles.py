"""Order statistics: which of m sorted scores is the radius at miss rate alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_alpha

# Neither 0.1 nor 1 - 0.1 is exact in binary, so (m + 1)(1 - alpha) can come out as 90.00000000000001 where 90 is
# meant, and its ceiling one too high. Asking for 1e-12 less coverage takes every such case back to the right rank.
# For the same reason a level within 1e-12 of 0 or 1, the rounded sum of many steps, counts as 0 or 1.
GUARD = 1e-12

QUANTILES = ("conformal", "linear", "higher")

DEPTH = 20.0  # logarithms below the large calibration scores from which a score is as good as 0


def rank(m: int, alpha: float) -> int:
    """k = ceil((m + 1)(1 - alpha)), the rank of the split-conformal radius among m scores.

    k > m says that m scores are too few (infinite radius), k < 1 that alpha is 1 or more (empty set).

    >>> rank(99, 0.1), rank(8, 0.1), rank(8, 1.0)
    (90, 9, 0)
    """
    return math.floor((m + 1) * (1.0 - GUARD - alpha)) + 1


def minimum_scores(alpha: float) -> int:
    """Smallest number of calibration scores with a finite radius: the least m with (m + 1) alpha >= 1.

    >>> minimum_scores(0.1), minimum_scores(0.05)
    (9, 19)
    """
    require_alpha(alpha)
    m = max(math.ceil(1.0 / alpha) - 2, 0)  # at most one below the answer, whatever the rounding of 1 / alpha
    while rank(m, alpha) > m:
        m += 1
    return m


def score_quantile(scores: Sequence[float] | Array, alpha: float, rule: str = "conformal") -> float:
    """Radius at miss rate alpha from sorted scores: +inf is the whole space, -inf the empty set.

    `rule` is "conformal" (the k-th smallest score), "linear" (type 7, between two scores) or "higher" (the upper of
    those two). The last two are the empirical quantiles of published code, which have no m + 1.

    >>> score_quantile([1.0, 2.0, 3.0, 4.0], 0.4), score_quantile([1.0, 2.0, 3.0, 4.0], 0.4, "linear")
    (3.0, 2.8)
    >>> score_quantile([1.0, 2.0, 3.0, 4.0], 0.1), score_quantile([1.0, 2.0, 3.0, 4.0], 1.2)
    (inf, -inf)
    """
    last = len(scores) - 1
    if last < 0:
        return math.inf
    position = _position(last + 1, alpha, rule)
    if alpha <= GUARD or position > last:
        return math.inf
    if alpha > 1.0 - GUARD or position < 0:
        return -math.inf
    below = int(position)
    share = position - below
    low = float(scores[below])
    if share == 0.0:
        return low
    high = float(scores[below + 1])
    return low if low == high else low + share * (high - low)  # two infinite scores must not give NaN


def order_statistic(ordered: Array, p: float) -> float:
    """The order statistic of level p of sorted values, the last where there are too few."""
    return float(ordered[min(max(rank(len(ordered), 1.0 - p), 1), len(ordered)) - 1])


def least_telling(logs: Array, alpha: float, nothing: float) -> float:
    """The logarithm below which a score says nothing, being nothing beside the large ones; `nothing` stands for 0.

    >>> least_telling(np.array([-600.0, 1.0, 2.0]), 0.1, -600.0)
    -18.0
    """
    some = logs[logs > nothing]
    return order_statistic(np.sort(some), 1.0 - alpha / 2.0) - DEPTH if len(some) else nothing


def _position(m: int, alpha: float, rule: str) -> float:
    """Place in the sorted scores, counted from 0; a fraction lies between two of them."""
    if rule == "conformal":
        return rank(m, alpha) - 1
    if rule == "linear":
        return (m - 1) * (1.0 - alpha)
    return math.ceil((m - 1) * (1.0 - alpha))


def calibration_scores(scores: Array) -> Array:
    """The scores as a float vector (m,), refused when any is NaN."""
    values = np.asarray(scores, dtype=float)
    require(values.ndim == 1, f"calibration scores must be one number a step, got an array of shape {values.shape}")
    missing = int(np.isnan(values).sum())
    require(
        missing == 0,
        f"{missing} of {len(values)} calibration scores are NaN: drop the steps at which nothing was observed",
    )
    return values


def first_radius(scores: Array, alpha: float) -> float:
    """Where a tracked radius starts: the split-conformal one, or the largest finite score, 0 without any.

    An infinite one would never move.
    """
    radius = score_quantile(np.sort(scores), alpha) if len(scores) else math.inf
    return radius if math.isfinite(radius) else float(scores[np.isfinite(scores)].max(initial=0.0))


def spread_of(scores: Array) -> float:
    """Standard deviation of the finite scores, 1 where there is none above 0: the unit of a step."""
    finite = scores[np.isfinite(scores)]
    return float(finite.std()) or 1.0 if len(finite) else 1.0
