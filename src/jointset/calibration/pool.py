"""The pool of past scores from which an adaptive rule reads its radius.

One mechanism: sorted scores, of which the last `lookback` test scores can leave again.

| `pool` | `lookback` | scores in the pool |
|---|---|---|
| "frozen" | 0 | the calibration scores, for ever |
| "frozen" | n | the calibration scores and the last n test scores |
| "rolling" | n | the last n scores, calibration scores ageing out first |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.calibration.quantiles import QUANTILES, calibration_scores
from jointset.contracts import Array
from jointset.errors import require
from jointset.storage import storable

POOLS = ("frozen", "rolling")


@storable
class ScorePool(NamedTuple):
    """All scores in ascending order (m,), and in order of arrival those that will leave (at most lookback)."""

    scores: Array
    recent: Array


def require_pool(pool: str, lookback: int, quantile: str = "conformal") -> None:
    """Refuse unknown names and a window that cannot be filled."""
    require(pool in POOLS, f"pool must be one of {', '.join(POOLS)}, got {pool!r}")
    require(lookback >= 0, f"lookback must be 0 or more scores, got {lookback}")
    require(pool == "frozen" or lookback > 0, "a rolling pool needs lookback >= 1: the number of scores it holds")
    require(quantile in QUANTILES, f"quantile must be one of {', '.join(QUANTILES)}, got {quantile!r}")


def start_pool(scores: Array, pool: str, lookback: int) -> ScorePool:
    """Pool after the calibration scores.

    >>> start_pool(np.array([3.0, 1.0, 2.0]), "rolling", 2).scores
    array([1., 2.])
    """
    values = calibration_scores(scores)
    recent = values[-lookback:] if pool == "rolling" else values[:0]
    return ScorePool(np.sort(recent if pool == "rolling" else values), recent.copy())


def slide(pool: ScorePool, score: float, lookback: int) -> ScorePool:
    """Pool after one more score; the oldest of more than `lookback` recent ones leaves."""
    if lookback == 0:
        return pool
    scores, recent = pool
    if len(recent) == lookback:
        place = int(scores.searchsorted(recent[0]))
        scores = np.concatenate((scores[:place], scores[place + 1 :]))
        recent = recent[1:]
    place = int(scores.searchsorted(score))
    return ScorePool(np.concatenate((scores[:place], (score,), scores[place:])), np.append(recent, score))


def inside(pool: ScorePool, radius: float, *, past: bool = False) -> float:
    """The radius moved into the range of the pool, or only up to it (`past`); an empty pool leaves it infinite."""
    scores = pool.scores
    if not len(scores):
        return radius
    return float(max(radius, scores[0]) if past else min(max(radius, scores[0]), scores[-1]))
