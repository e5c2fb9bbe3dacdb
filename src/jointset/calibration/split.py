"""Split conformal calibration: one radius from the calibration scores, the same for ever."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores, score_quantile
from jointset.calibration.sequence import share
from jointset.calibration.tails import tail_quantile
from jointset.contracts import Array
from jointset.errors import require_alpha
from jointset.storage import storable


@storable
class SplitState(NamedTuple):
    """The radius, the number of scores seen since, and whether the radius comes from a fitted tail."""

    radius: float
    steps: int
    beyond: bool = False


@storable
@dataclass(frozen=True)
class Split:
    """The k-th smallest of m calibration scores, k = ceil((m + 1)(1 - alpha)).

    On exchangeable scores a new one is at most the radius with probability at least 1 - alpha (Vovk, Gammerman and
    Shafer 2005). With fewer than `minimum_scores(alpha)` scores the radius is infinite, or with `tail` that of the
    fitted tail (`jointset.calibration.tails`), which promises nothing and is told by `infinite_share`.

    >>> rule = Split(alpha=0.25)
    >>> state = rule.start(np.array([4.0, 1.0, 3.0, 2.0]))
    >>> rule.radius(state)
    4.0
    >>> rule.run(state, np.array([5.0, 0.5]))[0]
    array([4., 4.])
    """

    alpha: float = 0.1
    tail: bool = False

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def start(self, scores: Array) -> SplitState:
        """State after the calibration scores (m,)."""
        ordered = np.sort(calibration_scores(scores))
        radius = score_quantile(ordered, self.alpha)
        if self.tail and math.isinf(radius):
            return SplitState(tail_quantile(ordered, self.alpha), 0, beyond=True)
        return SplitState(radius, 0)

    def radius(self, state: SplitState) -> float:
        """The split-conformal radius."""
        return state.radius

    def update(self, state: SplitState, score: float) -> SplitState:
        """Count the score; NaN is no score."""
        return state if math.isnan(score) else state._replace(steps=state.steps + 1)

    def run(self, state: SplitState, scores: Array) -> tuple[Array, SplitState]:
        """Radii (T,) and the state after the last score."""
        values = np.asarray(scores, dtype=float)
        seen = int((~np.isnan(values)).sum())
        return np.full(len(values), state.radius), state._replace(steps=state.steps + seen)

    def infinite_share(self, state: SplitState) -> float:
        """Share of the steps so far with an infinite radius, or one from the fitted tail."""
        return share(state.steps * (state.beyond or math.isinf(state.radius)), state.steps)
