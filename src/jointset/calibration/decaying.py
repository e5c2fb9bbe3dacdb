"""Quantile tracking with step sizes that decay: calm in the long run, still covering under drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jointset.calibration.quantiles import calibration_scores, first_radius, spread_of
from jointset.calibration.sequence import Stepwise
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class DecayingState(NamedTuple):
    """The radius, the unit of its steps, and the scores seen since calibration."""

    tracked: float
    unit: float
    steps: int


@storable
@dataclass(frozen=True)
class Decaying(Stepwise[DecayingState]):
    """q_{t+1} = q_t + lr u t^-(1/2 + epsilon) (miss_t - alpha) (Angelopoulos, Barber and Bates 2024).

    `epsilon=-0.5` keeps the step fixed. Calibration scores make the first radius the split-conformal one and the unit u
    their standard deviation; without any, `start(np.empty(0))`, q starts at 0 and u is 1, as published. The radius is
    never infinite, and negative (the empty set) where the scores ask for it.

    >>> import numpy as np
    >>> rule = Decaying(alpha=0.5, epsilon=-0.5, lr=0.1)
    >>> rule.run(rule.start(np.empty(0)), np.array([1.0, 1.0, 0.0]))[0]
    array([0.  , 0.05, 0.1 ])
    """

    alpha: float = 0.1
    lr: float = 1.0
    epsilon: float = 0.1
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.lr >= 0.0, f"lr must be 0 or more, got {self.lr}")
        require(-0.5 <= self.epsilon <= 0.5, f"epsilon must lie in [-0.5, 0.5], got {self.epsilon}")

    def start(self, scores: Array) -> DecayingState:
        """State after the calibration scores (m,)."""
        values = calibration_scores(scores)
        return DecayingState(first_radius(values, self.alpha), spread_of(values), 0)

    def radius(self, state: DecayingState) -> float:
        """The tracked quantile."""
        return state.tracked

    def _after(self, state: DecayingState, score: float) -> DecayingState:
        steps = state.steps + 1
        step = self.lr * state.unit * steps ** -(0.5 + self.epsilon)
        return DecayingState(state.tracked + step * ((score > state.tracked) - self.alpha), state.unit, steps)
