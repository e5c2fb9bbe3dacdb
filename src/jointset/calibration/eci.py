"""Error-quantified conformal inference (ECI): the radius moves by how far a score lay from it, not only which side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores, first_radius, spread_of
from jointset.calibration.sequence import Stepwise
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

FORMS = ("plain", "cutoff", "integral")


@storable
class ECIState(NamedTuple):
    """Tracked quantile, the shift of the next radius, the past terms and their weight, last finite scores, count."""

    tracked: float
    shift: float
    terms: float
    weight: float
    window: Array
    unit: float
    steps: int


@storable
@dataclass(frozen=True)
class ECI(Stepwise[ECIState]):
    """p_{t+1} = p_t + h_t (miss_t - alpha), radius_{t+1} = p_{t+1} + h_t I_t (Wu et al. 2025).

    h_t is lr times the range of the last `window` scores, 1 before any. With x_t = (score_t - radius_t) / u and S the
    logistic function, EQ(x) = x S(x) (1 - S(x)) and I_t is u times EQ(x_t) ("plain"); that where |x_t| is at least the
    range, else 0 ("cutoff"); or the average of past EQ with weights decay^age, the present one left out ("integral").
    As in the authors' code the term shifts one step; `accumulate` adds it to p as well.

    Calibration scores make the first radius the split-conformal one, the range theirs and u their standard deviation;
    without any, `start(np.empty(0))`, the radius starts at 0 and u is 1, as published. Negative is an empty set.

    >>> rule = ECI(alpha=0.5, lr=0.1)
    >>> rule.run(rule.start(np.empty(0)), np.array([1.0, 1.0, 0.0]))[0].round(4)
    array([0.    , 0.0697, 0.05  ])
    """

    alpha: float = 0.1
    lr: float = 0.1
    form: str = "plain"
    window: int = 100
    decay: float = 0.95
    accumulate: bool = False
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.lr >= 0.0, f"lr must be 0 or more, got {self.lr}")
        require(self.form in FORMS, f"form must be one of {', '.join(FORMS)}, got {self.form!r}")
        require(self.window >= 1, f"window must be 1 score or more, got {self.window}")
        require(0.0 < self.decay < 1.0, f"decay must lie strictly between 0 and 1, got {self.decay}")

    def start(self, scores: Array) -> ECIState:
        """State after the calibration scores (m,)."""
        values = calibration_scores(scores)
        recent = values[np.isfinite(values)][-self.window :].copy()
        return ECIState(first_radius(values, self.alpha), 0.0, 0.0, 0.0, recent, spread_of(values), 0)

    def radius(self, state: ECIState) -> float:
        """Tracked quantile with the shift of the last step."""
        return state.tracked + state.shift

    def _after(self, state: ECIState, score: float) -> ECIState:
        radius = state.tracked + state.shift
        span = _range(state.window)
        x = (score - radius) / state.unit
        term = state.unit * error_quantity(x)
        step = self.lr * span
        if self.form == "cutoff" and not state.steps and not len(state.window):
            step = 0.0  # as published, this form leaves the first step out
        shift = step * self._term(state, term, abs(score - radius) >= span)
        moved = state.tracked + step * ((score > radius) - self.alpha) + self.accumulate * shift
        return ECIState(
            moved,
            0.0 if self.accumulate else shift,
            self.decay * state.terms + term,
            self.decay * state.weight + 1.0,
            np.append(state.window, score)[-self.window :] if math.isfinite(score) else state.window,
            state.unit,
            state.steps + 1,
        )

    def _term(self, state: ECIState, term: float, far: bool) -> float:
        if self.form == "integral":
            return state.terms / state.weight if state.weight else 0.0
        return term if far or self.form == "plain" else 0.0


def error_quantity(x: float) -> float:
    """x S(x) (1 - S(x)), S the logistic function: largest near 1.5 and 0 far away, also at infinity.

    >>> round(error_quantity(1.0), 4), error_quantity(-1e9), error_quantity(float("inf"))
    (0.1966, -0.0, 0.0)
    """
    small = math.exp(-abs(x))
    return x * small / (1.0 + small) ** 2 if math.isfinite(x) else 0.0


def _range(window: Array) -> float:
    return float(window.max() - window.min()) if len(window) else 1.0
