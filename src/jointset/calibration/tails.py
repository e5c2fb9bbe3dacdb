"""Radii past every score of a pool: a log-linear tail fitted to its largest scores.

Above the order statistic u of level `edge` the scores are taken as Pareto: the radius at miss rate a < edge is
u (edge / a)^h with h the mean log excess of the largest tenth over their smallest (Hill). A generalised Pareto tail may
end at a finite score, beyond which no radius could grow; this one has no end, and no shape to choose.

An adaptive rule takes its level below `edge`, and below 0, step by step. There edge / a = exp(1 - level / edge), which
meets the pool's own order statistics with the same slope and never ends: one miss more is one factor more.
"""

from __future__ import annotations

import math

import numpy as np

from jointset.calibration.quantiles import GUARD, score_quantile
from jointset.contracts import Array

EDGE = 0.005  # the tail takes over here, or at the pool's last order statistic where that comes first
TOP = 0.1  # share of the scores that the tail is fitted to
FEWEST = 10
LONGEST = 100.0  # most that the logarithm of a radius may grow: its square must still be a number


def tail_edge(m: int) -> float:
    """Level below which m scores are too few and the fitted tail takes over."""
    return max(EDGE, 1.0 / (m + 1)) + GUARD


def tail_index(scores: Array) -> float:
    """h of sorted scores: mean log excess of the largest tenth over the next one; small where all are alike.

    >>> round(tail_index(np.exp(0.5 * -np.log(1 - np.arange(1000) / 1000))), 1)
    0.5
    """
    finite = scores[np.searchsorted(scores, 0.0, "right") : np.searchsorted(scores, math.inf)]
    k = min(max(math.ceil(TOP * len(finite)), FEWEST), len(finite) - 1)
    return max(float(np.log(finite[-k:] / finite[-k - 1]).mean()), 1e-3) if k > 0 else 1.0


def tail_radius(scores: Array, level: float) -> float:
    """Radius of an adaptive rule at any level, also at 0 and below; infinite only for pools without a finite score.

    >>> pool = np.arange(1.0, 100.0)
    >>> tail_radius(pool, 0.1), tail_radius(pool, 0.0) > 99, tail_radius(pool, -0.5) < np.inf
    (90.0, True, True)
    """
    edge = tail_edge(len(scores))
    if level >= edge or not len(scores):
        return score_quantile(scores, level)
    return _beyond(scores, edge, 1.0 - level / edge)


def tail_level(scores: Array, score: float) -> float:
    """Largest level at which `tail_radius` holds a score above its order statistic at the edge."""
    edge = tail_edge(len(scores))
    top = _beyond(scores, edge, 0.0)
    if not top > 0.0 or math.isinf(score):
        return -math.inf
    return edge * (1.0 - math.log(score / top) / tail_index(scores))


def tail_quantile(scores: Array, alpha: float) -> float:
    """Split-conformal radius at alpha, by the fitted tail where there are too few scores for it."""
    radius = score_quantile(scores, alpha)
    if math.isfinite(radius) or not len(scores):
        return radius
    edge = 1.0 / (len(scores) + 1) + GUARD
    return _beyond(scores, edge, math.log(edge / alpha))


def _beyond(scores: Array, edge: float, excess: float) -> float:
    """u exp(h excess), u the order statistic at the edge or the largest finite score."""
    finite = scores[: np.searchsorted(scores, math.inf)]
    if not len(finite):
        return math.inf
    top = min(score_quantile(scores, edge), float(finite[-1]))
    return top * math.exp(min(tail_index(scores) * excess, LONGEST))
