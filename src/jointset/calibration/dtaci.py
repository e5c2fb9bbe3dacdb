"""Dynamically-tuned adaptive conformal inference (DtACI): the levels of several step sizes, mixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.pool import ScorePool, inside, require_pool, slide, start_pool
from jointset.calibration.quantiles import GUARD, score_quantile
from jointset.calibration.sequence import CLIP, Clip, Limited, at_edge, require_clip
from jointset.calibration.tails import tail_edge, tail_level, tail_radius
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

FARTHEST = -1.0  # level of a score that no tail reaches: its loss must be finite


@storable
class DtACIState(NamedTuple):
    """Levels and weights of the experts (K,), the pool, the last expected losses, and counts."""

    levels: Array
    weights: Array
    pool: ScorePool
    losses: Array
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class DtACI(Limited[DtACIState]):
    """Radius at the mean level of ACI experts under exponential weights (Gibbs and Candes 2022, deterministic form).

    beta_t is the largest level whose set would have held the score. Expert i misses when alpha_i > beta_t and loses
    alpha (beta_t - alpha_i) - min(0, beta_t - alpha_i); its weight is multiplied by exp(-eta loss), then a share sigma
    of all weight is spread evenly. `eta_lookback` = n sets eta^2 to (log(2 K n) + 1) over the sum of squares of the
    last n expected losses, once n are known.

    The authors' own form is `pool="rolling", lookback=100, quantile="linear", clip=None`: other quantiles than
    "conformal" find beta_t by bisection of [0, 1] to `tolerance`. `clip`, `pool`, `lookback`, `tail` are those of
    `ACI`; `tail` is for the conformal quantile.

    >>> rule = DtACI(alpha=0.5)
    >>> state = rule.start(np.arange(1.0, 10.0))
    >>> radii, state = rule.run(state, np.full(20, 8.5))
    >>> radii[[0, -1]], round(rule.level(state), 3)
    (array([5., 9.]), 0.223)
    """

    alpha: float = 0.1
    gammas: tuple[float, ...] = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
    sigma: float = 0.001
    eta: float = 2.72
    eta_lookback: int | None = None
    clip: Clip = CLIP
    pool: str = "frozen"
    lookback: int = 0
    quantile: str = "conformal"
    tolerance: float = 1e-3
    tail: bool = False

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(len(self.gammas) > 0, "gammas must name at least one step size")
        require(min(self.gammas) >= 0.0, f"gammas must be 0 or more, got {self.gammas}")
        require(0.0 <= self.sigma <= 1.0, f"sigma must lie in [0, 1], got {self.sigma}")
        require(self.eta >= 0.0, f"eta must be 0 or more, got {self.eta}")
        require(self.eta_lookback is None or self.eta_lookback > 0, "eta_lookback must be None or 1 and more steps")
        require(0.0 < self.tolerance < 1.0, f"tolerance must lie between 0 and 1, got {self.tolerance}")
        require_clip(self.clip, self.alpha)
        require_pool(self.pool, self.lookback, self.quantile)
        require(not self.tail or self.quantile == "conformal", "a tail goes with the conformal quantile")

    def start(self, scores: Array) -> DtACIState:
        """State after the calibration scores (m,)."""
        experts = len(self.gammas)
        pool = start_pool(scores, self.pool, self.lookback)
        return DtACIState(
            np.full(experts, self.alpha), np.full(experts, 1.0 / experts), pool, np.empty(0), steps=0, limited=0
        )

    def level(self, state: DtACIState) -> float:
        """Mean level of the experts: the miss rate asked for at the next step."""
        return float(state.weights @ state.levels)

    def radius(self, state: DtACIState) -> float:
        """Radius at the mean level."""
        radius = self._wanted(state.pool.scores, self.level(state))
        return radius if self.clip is None else inside(state.pool, radius, past=self.tail)

    def _after(self, state: DtACIState, score: float) -> DtACIState:
        level = self.level(state)
        wanted, beyond = self._wanted(state.pool.scores, level), level < tail_edge(len(state.pool.scores))
        limited = math.isinf(wanted) or (self.tail and beyond) or at_edge(level, self.clip)
        gap = self._beta(state.pool, score) - state.levels
        loss = self.alpha * gap - np.minimum(0.0, gap)
        levels = state.levels + np.array(self.gammas) * (self.alpha - (gap < 0.0))
        return DtACIState(
            levels if self.clip is None else np.clip(levels, -math.inf if self.tail else self.clip[0], self.clip[1]),
            self._reweight(state, loss),
            slide(state.pool, score, self.lookback),
            np.append(state.losses, state.weights @ loss)[-self.eta_lookback :] if self.eta_lookback else state.losses,
            state.steps + 1,
            state.limited + limited,
        )

    def _wanted(self, scores: Array, level: float) -> float:
        """Radius at a level, without bounds."""
        return tail_radius(scores, level) if self.tail else score_quantile(scores, level, self.quantile)

    def _reweight(self, state: DtACIState, loss: Array) -> Array:
        weights = state.weights * np.exp(-self._eta(state) * loss)
        weights = weights / weights.sum()
        return (1.0 - self.sigma) * weights + self.sigma / len(weights)

    def _eta(self, state: DtACIState) -> float:
        if self.eta_lookback is None or len(state.losses) < self.eta_lookback:
            return self.eta
        squares = float(state.losses @ state.losses)
        room = math.log(2 * len(self.gammas) * self.eta_lookback) + 1.0
        return math.sqrt(room / squares) if squares > 0.0 else self.eta

    def _beta(self, pool: ScorePool, score: float) -> float:
        """Largest level at which the score is inside."""
        if self.quantile != "conformal":
            return self._bisect(pool, score)
        below = int(pool.scores.searchsorted(score))
        if self.tail:
            return max(self._tail_beta(pool.scores, score, below), FARTHEST)
        if self.clip is not None and below == len(pool.scores) > 0:
            return 0.0  # a clipped radius never passes the largest score: outside at every level above zero
        # The score is inside while the index of the radius, (m + 1)(1 - level), is at least the scores below it.
        return 1.0 - GUARD - below / (len(pool.scores) + 1)

    def _tail_beta(self, scores: Array, score: float, below: int) -> float:
        """The same where levels go on below 0."""
        level = 1.0 - GUARD - below / (len(scores) + 1)
        return level if level >= tail_edge(len(scores)) else min(tail_level(scores, score), tail_edge(len(scores)))

    def _bisect(self, pool: ScorePool, score: float) -> float:
        low, high = 0.0, 1.0
        while high - low > self.tolerance:
            middle = (low + high) / 2
            if score <= score_quantile(pool.scores, middle, self.quantile):
                low = middle
            else:
                high = middle
        return (low + high) / 2
