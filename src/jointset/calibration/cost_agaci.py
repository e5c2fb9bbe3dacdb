"""AgACI as the printed tables had it: exponential weights on the cost of an interval, radii mixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.boa import mix
from jointset.calibration.pool import ScorePool, slide, start_pool
from jointset.calibration.quantiles import rank
from jointset.calibration.sequence import CLIP, Limited, at_edge
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class CostState(NamedTuple):
    """Levels and log-weights of the experts (K,), their pool, and counts."""

    levels: Array
    log_weights: Array
    pool: ScorePool
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class CostAgACI(Limited[CostState]):
    """Experts are ACI with one gamma each; after a step the weight of each is multiplied by exp(-cost).

    cost = radius + (2 / alpha) (score - radius)+ less the smallest expert's: the interval score of a set of that
    radius. The radius is the weighted mean of the experts'. `lookback` test scores join the calibration scores.

    >>> rule = CostAgACI(alpha=0.5, gammas=(0.0, 0.25))
    >>> state = rule.start(np.arange(1.0, 10.0))
    >>> rule.run(state, np.full(3, 9.0))[0].round(3)
    array([5.   , 6.5  , 8.858])
    """

    alpha: float = 0.1
    gammas: tuple[float, ...] = (0.001, 0.005, 0.01, 0.02, 0.05)
    lookback: int = 400

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(len(self.gammas) > 0, "gammas must name at least one step size")

    def start(self, scores: Array) -> CostState:
        """State after the calibration scores (m,)."""
        experts = len(self.gammas)
        pool = start_pool(scores, "frozen", self.lookback)
        return CostState(np.full(experts, self.alpha), np.zeros(experts), pool, 0, 0)

    def radius(self, state: CostState) -> float:
        """Weighted mean of the experts' radii."""
        return mix(np.exp(state.log_weights), _radii(state))

    def _after(self, state: CostState, score: float) -> CostState:
        radii = _radii(state)
        cost = radii + (2.0 / self.alpha) * np.maximum(score - radii, 0.0)
        least = cost.min()
        weights = state.log_weights - (cost - least if np.isfinite(least) else 0.0)  # infinite for all alike
        levels = np.clip(state.levels + np.array(self.gammas) * (self.alpha - (score > radii)), *CLIP)
        limited = state.limited + any(at_edge(level, CLIP) for level in state.levels.tolist())
        return CostState(
            levels, weights - weights.max(), slide(state.pool, score, self.lookback), state.steps + 1, limited
        )


def _radii(state: CostState) -> Array:
    scores, m = state.pool.scores, len(state.pool.scores)
    ranks = [min(max(rank(m, level), 1), m) - 1 for level in state.levels.tolist()]  # inside the range of the pool
    return scores[ranks] if m else np.full(len(ranks), math.inf)
