"""Aggregated adaptive conformal inference (AgACI): several step sizes at once, weighted by how well they do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.boa import (
    BOAState,
    mix,
    pinball_regret,
    require_rates,
    start_boa,
    update_boa,
)
from jointset.calibration.pool import ScorePool, require_pool, slide, start_pool
from jointset.calibration.quantiles import score_quantile
from jointset.calibration.sequence import Limited
from jointset.calibration.tails import tail_edge, tail_radius
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class AgACIState(NamedTuple):
    """Levels of the experts, their common pool, the aggregation, the ceiling in use, and counts."""

    levels: tuple[float, ...]
    pool: ScorePool
    aggregation: BOAState
    ceiling: float
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class AgACI(Limited[AgACIState]):
    """Radii of ACI experts, one a gamma, mixed by BOA on the pinball loss at level 1 - alpha (Zaffran et al. 2022).

    Every expert follows its own radius, unclipped. To be mixed, the whole space becomes a set of radius `ceiling`
    (None: twice the largest finite calibration score) and the empty set one of radius 0; `infinite_share` counts the
    steps with any such expert. `rates` names the learning rates of `jointset.calibration.boa`; `pool`, `lookback`
    choose the scores as in `ACI`. With `tail` an expert below the last order statistic takes the radius of the fitted
    tail (`jointset.calibration.tails`) in place of the ceiling, and counts as such.

    >>> rule = AgACI(alpha=0.5, gammas=(0.01, 0.25))
    >>> state = rule.start(np.arange(1.0, 10.0))
    >>> radii, state = rule.run(state, np.full(20, 8.5))
    >>> rule.weights(state).round(2)
    array([0.08, 0.92])
    """

    alpha: float = 0.1
    gammas: tuple[float, ...] = (0.001, 0.005, 0.025)
    ceiling: float | None = None
    rates: str = "doubling"
    pool: str = "frozen"
    lookback: int = 0
    tail: bool = False

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(len(self.gammas) > 0, "gammas must name at least one step size")
        require(min(self.gammas) >= 0.0, f"gammas must be 0 or more, got {self.gammas}")
        require(
            self.ceiling is None or 0.0 < self.ceiling < math.inf,
            f"ceiling must be a positive finite radius or None, got {self.ceiling}",
        )
        require_rates(self.rates)
        require_pool(self.pool, self.lookback)

    def start(self, scores: Array) -> AgACIState:
        """State after the calibration scores (m,)."""
        pool = start_pool(scores, self.pool, self.lookback)
        experts = len(self.gammas)
        return AgACIState((self.alpha,) * experts, pool, start_boa(experts), self._ceiling(scores), 0, 0)

    def weights(self, state: AgACIState) -> Array:
        """Weights of the experts for the next step (K,)."""
        return state.aggregation.weights

    def radius(self, state: AgACIState) -> float:
        """Weighted mean of the experts' radii."""
        return mix(state.aggregation.weights, _finite(self._expert_radii(state), state.ceiling))

    def _after(self, state: AgACIState, score: float) -> AgACIState:
        radii = self._expert_radii(state)
        forecasts = _finite(radii, state.ceiling)
        radius = mix(state.aggregation.weights, forecasts)
        regret = pinball_regret(radius, forecasts, score, 1.0 - self.alpha)
        levels = (
            level + gamma * (self.alpha - (score > own))
            for level, gamma, own in zip(state.levels, self.gammas, radii, strict=True)
        )
        beyond = self.tail and min(state.levels) < tail_edge(len(state.pool.scores))
        return AgACIState(
            tuple(levels),
            slide(state.pool, score, self.lookback),
            update_boa(state.aggregation, regret, self.rates),
            state.ceiling,
            state.steps + 1,
            state.limited + (beyond or any(map(math.isinf, radii))),
        )

    def _expert_radii(self, state: AgACIState) -> list[float]:
        radius_at = tail_radius if self.tail else score_quantile
        return [radius_at(state.pool.scores, level) for level in state.levels]

    def _ceiling(self, scores: Array) -> float:
        if self.ceiling is not None:
            return self.ceiling
        finite = np.asarray(scores, dtype=float)
        finite = finite[np.isfinite(finite)]
        require(len(finite) > 0, "AgACI needs a finite calibration score, or a ceiling for infinite radii")
        return 2.0 * float(finite.max())


def _finite(radii: list[float], ceiling: float) -> Array:
    """Radii (K,) that can be mixed."""
    return np.array([radius if math.isfinite(radius) else max(math.copysign(ceiling, radius), 0.0) for radius in radii])
