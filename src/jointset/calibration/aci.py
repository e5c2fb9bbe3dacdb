"""Adaptive conformal inference (ACI): the miss rate asked for follows the misses seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.pool import ScorePool, inside, require_pool, slide, start_pool
from jointset.calibration.quantiles import GUARD, score_quantile
from jointset.calibration.sequence import CLIP, Clip, Limited, Stepping, at_edge, require_clip
from jointset.calibration.tails import tail_edge, tail_radius
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class ACIState(NamedTuple):
    """The level alpha_t, the pool of scores, and counts.

    `errors / weight` is the average of past misses, the newest weighing most (momentum). `limited` counts the steps
    whose radius was infinite or had to be clipped.
    """

    level: float
    pool: ScorePool
    errors: float
    weight: float
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class ACI(Limited[ACIState]):
    """alpha_{t+1} = alpha_t + gamma (alpha - miss_t), miss_t = 1{score_t > radius_t} (Gibbs and Candes 2021).

    The radius is the split-conformal one at level alpha_t. With `clip=None` alpha_t <= 0 gives the whole space
    (radius inf), alpha_t >= 1 the empty set (-inf), and for every sequence of T scores
    |mean miss - alpha| <= (max(alpha, 1 - alpha) + gamma) / (T gamma). With an interval `clip` alpha_t stays in it and
    the radius among the scores of the pool, so that every set has a size; `infinite_share` says how often that bit.

    `pool`, `lookback` choose the scores (see `jointset.calibration.pool`) and `quantile` how a radius is read off
    them. `momentum` in (0, 1) replaces miss_t by the average of past misses with weights momentum^age. The authors'
    own form is `pool="rolling", lookback=99, quantile="linear", clip=None`, with or without `momentum=0.95`.

    `tail` lets the level fall below `clip`, and below 0, where the radius comes from the fitted tail of
    `jointset.calibration.tails`: it may pass every score of the pool and is never infinite. `infinite_share` counts
    these steps.

    >>> rule = ACI(alpha=0.5, gamma=0.25)
    >>> state = rule.start(np.arange(1.0, 10.0))
    >>> radii, state = rule.run(state, np.array([9.0, 9.0, 1.0]))
    >>> radii, state.level
    (array([5., 7., 8.]), 0.375)
    """

    alpha: float = 0.1
    gamma: float = 0.005
    clip: Clip = CLIP
    pool: str = "frozen"
    lookback: int = 0
    quantile: str = "conformal"
    momentum: float = 0.0
    tail: bool = False

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.gamma >= 0.0, f"gamma must be 0 or more, got {self.gamma}")
        require(0.0 <= self.momentum < 1.0, f"momentum must lie in [0, 1), got {self.momentum}")
        require_clip(self.clip, self.alpha)
        require_pool(self.pool, self.lookback, self.quantile)

    def start(self, scores: Array) -> ACIState:
        """State after the calibration scores (m,)."""
        return ACIState(self.alpha, start_pool(scores, self.pool, self.lookback), 0.0, 0.0, 0, 0)

    def radius(self, state: ACIState) -> float:
        """Radius at the present level."""
        return self._limited(state.pool, self._wanted(state))

    def _after(self, state: ACIState, score: float) -> ACIState:
        wanted = self._wanted(state)
        radius = self._limited(state.pool, wanted)
        errors = self.momentum * state.errors + (score > radius)
        weight = self.momentum * state.weight + 1.0
        level = state.level + self.gamma * (self.alpha - errors / weight)
        if self.clip is not None:
            level = min(level if self.tail else max(level, self.clip[0]), self.clip[1])
        beyond = self.tail and state.level < tail_edge(len(state.pool.scores))
        limited = state.limited + (math.isinf(wanted) or beyond or at_edge(state.level, self.clip))
        return ACIState(level, slide(state.pool, score, self.lookback), errors, weight, state.steps + 1, limited)

    def strides(self, state: ACIState) -> Stepping[ACIState] | None:
        """See `Striding`: the plain rule on a frozen pool."""
        scores = state.pool.scores
        if not self._plain or not len(scores):
            return None
        padded, size, top = _padded(scores).tolist(), len(scores) + 1, 1.0 - GUARD
        (low, high), (first, last) = (self.clip, (1, size - 1)) if self.clip else ((-math.inf, math.inf), (0, size))
        hit, miss = self.gamma * self.alpha, self.gamma * (self.alpha - 1.0)
        level, errors, steps, limited = state.level, state.errors, state.steps, state.limited

        def step(score: float) -> float:
            nonlocal level, errors, steps, limited
            wanted = size * (top - level)
            place = int(wanted) + 1 if wanted >= 0.0 else 0
            radius: float = padded[place if first <= place <= last else first if place < first else last]
            if score != score:
                return radius
            steps += 1
            if not (low < level < high and 0 < place < size):
                limited += 1
            errors = score > radius
            if errors:
                level += miss
                if level < low:
                    level = low
            else:
                level += hit
                if level > high:
                    level = high
            return radius

        def after() -> ACIState:
            weight = 1.0 if steps > state.steps else state.weight
            return ACIState(level, state.pool, float(errors), weight, steps, limited)

        return step, after

    @property
    def _plain(self) -> bool:
        """Whether all that moves is the level."""
        return not (self.lookback or self.momentum or self.tail) and self.quantile == "conformal"

    def _wanted(self, state: ACIState) -> float:
        """Radius at the present level, without bounds."""
        scores, level = state.pool.scores, state.level
        if self.tail and level < tail_edge(len(scores)):
            return tail_radius(scores, level)
        return score_quantile(scores, level, self.quantile)

    def _limited(self, pool: ScorePool, radius: float) -> float:
        """The radius as it is emitted: among the scores of the pool where levels are clipped."""
        return radius if self.clip is None else inside(pool, radius, past=self.tail)


def _padded(pool: Array) -> Array:
    """The pool (m,) between the radii of the empty set and of the whole space."""
    return np.concatenate(((-math.inf,), pool, (math.inf,)))
