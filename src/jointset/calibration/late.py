"""Radii of sets for h steps ahead: scores of windows that overlap, and outcomes that are known h steps late.

Windows of h steps that begin one after the other share h - 1 steps: m of their scores say about as much as m / h
independent ones. So the radius at level a is the order statistic of rank (m + h)(1 - a), the split-conformal rank for
h = 1. An adaptive level follows the outcomes of the sets as they were announced, in the order in which these become
known (ACI with late feedback): alpha_{t+1} = alpha_t + gamma (alpha - miss_{t-h+1}). Misses add up as in ACI, so that
over T steps their share differs from alpha by how far the level has moved, over T gamma. That the level need not move
far, the scores are the last m, those of calibration ageing out first; and below the level of the largest score the
radius goes on along the tail of `jointset.calibration.tails`, so that there is always a larger one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jointset.calibration.pool import ScorePool, slide, start_pool
from jointset.calibration.quantiles import GUARD
from jointset.calibration.tails import EDGE, LONGEST, tail_index
from jointset.contracts import Array
from jointset.errors import require_alpha
from jointset.storage import storable

MOST = 5_000  # scores that an adaptive rule keeps


@storable
@dataclass(frozen=True)
class LateACI:
    """Levels that follow late outcomes; with `gamma` 0 nothing moves: the split rule for overlapping windows.

    >>> import numpy as np
    >>> rule = LateACI(0.1, 0.005)
    >>> rule.moved(0.1, missed=True), rule.radius(rule.start(np.arange(200.0)), 0.1, 12)
    (0.0955, 190.0)
    """

    alpha: float = 0.1
    gamma: float = 0.005

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def start(self, scores: Array) -> ScorePool:
        """The pool after calibration scores (m,) in the order of time, which it knows also where none will leave."""
        return start_pool(scores, "rolling", min(len(scores), MOST) if self.gamma else len(scores))

    def radius(self, pool: ScorePool, level: float, late: int) -> float:
        """Radius at a level, of windows whose outcome is known `late` steps after they begin."""
        scores, m = pool.scores, len(pool.scores)
        edge = max(EDGE, late / (m + late)) + GUARD
        place = math.floor((m + late) * (1.0 - GUARD - (max(level, edge) if self.gamma else level)))  # counted from 0
        if place >= m and not self.gamma:
            return math.inf
        found = float(scores[min(max(place, 0), m - 1)])
        if level >= edge or not self.gamma:
            return found
        return found * math.exp(min(tail_index(scores) * (1.0 - level / edge), LONGEST))

    def moved(self, level: float, missed: bool) -> float:
        """The level after one more outcome."""
        return min(level + self.gamma * (self.alpha - missed), 1.0 - 1e-4)

    def grown(self, pool: ScorePool, score: float) -> ScorePool:
        """The pool after one more score."""
        return slide(pool, score, len(pool.recent))


def windows_needed(alpha: float, late: int) -> int:
    """Fewest scores with a finite radius: the least m with (m + late)(1 - alpha) <= m.

    >>> windows_needed(0.1, 1), windows_needed(0.1, 12)
    (9, 108)
    """
    m = math.ceil(late * (1.0 - alpha) / alpha - 1e-9)
    while math.floor((m + late) * (1.0 - GUARD - alpha)) >= m:
        m += 1
    return m
