"""Conformal PID control: the radius itself is steered by its misses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores, first_radius
from jointset.calibration.sequence import Limited
from jointset.calibration.theta import ThetaState, start_theta, theta_forecast, update_theta
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class PIDState(NamedTuple):
    """Tracked quantile, what integrator and scorecaster add to it, the last finite scores, and counts."""

    tracked: float
    offset: float
    window: Array
    scorecaster: ThetaState | None
    misses: int
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class PID(Limited[PIDState]):
    """radius_t = q_t + integrator_t + scorecast_t (Angelopoulos, Candes and Tibshirani 2023).

    P: q_{t+1} = q_t + lr s_t (miss_t - alpha), s_t the range of the last `burnin` scores (1 if not `scaled`).
    I: K_I tan(x_t log(t + 1) / (C_sat (t + 1))), x_t the misses beyond t alpha, infinite where the tangent's argument
    leaves (-pi/2, pi/2); K_I = 0 turns it off and wants the units of the scores. D: `scorecaster="theta"` adds a
    forecast of the score once more than `burnin` scores are known. As in the authors' code both I and D know the
    scores up to the last but one.

    Calibration scores make the first radius the split-conformal one and the range theirs; without any,
    `start(np.empty(0))`, q starts at 0 as published.

    >>> rule = PID(alpha=0.5, lr=0.1, K_I=0)
    >>> state = rule.start(np.arange(1.0, 10.0))
    >>> rule.run(state, np.array([9.0, 9.0, 1.0]))[0]
    array([5. , 5.4, 5.8])
    """

    alpha: float = 0.1
    lr: float = 0.1
    K_I: float = 10.0
    C_sat: float = 5.0
    burnin: int = 100
    scaled: bool = True
    scorecaster: str | None = None

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.lr >= 0.0, f"lr must be 0 or more, got {self.lr}")
        require(self.K_I >= 0.0, f"K_I must be 0 or more, got {self.K_I}")
        require(self.C_sat > 0.0, f"C_sat must be positive, got {self.C_sat}")
        require(self.burnin >= 1, f"burnin must be 1 score or more, got {self.burnin}")
        require(self.scorecaster in (None, "theta"), f"scorecaster must be None or 'theta', got {self.scorecaster!r}")

    def start(self, scores: Array) -> PIDState:
        """State after the calibration scores (m,)."""
        values = calibration_scores(scores)
        finite = values[np.isfinite(values)]
        caster = None if self.scorecaster is None else reduce(update_theta, finite.tolist(), start_theta())
        cast = self._cast(caster)
        return PIDState(first_radius(values, self.alpha) - cast, cast, finite[-self.burnin :].copy(), caster, 0, 0, 0)

    def radius(self, state: PIDState) -> float:
        """Tracked quantile with integrator and scorecast; negative is an empty set."""
        return state.tracked + state.offset

    def update(self, state: PIDState, score: float) -> PIDState:
        """State after one score; NaN leaves it as it is."""
        if math.isnan(score):
            return state
        radius = self.radius(state)
        miss = score > radius
        return PIDState(
            state.tracked + self._step(state.window) * (miss - self.alpha),
            self._integrator(state) + self._cast(state.scorecaster),
            np.append(state.window, score)[-self.burnin :] if math.isfinite(score) else state.window,
            None if state.scorecaster is None else update_theta(state.scorecaster, score),
            state.misses + miss,
            state.steps + 1,
            state.limited + math.isinf(radius),
        )

    def _step(self, window: Array) -> float:
        return self.lr * float(window.max() - window.min()) if self.scaled and len(window) else self.lr

    def _integrator(self, state: PIDState) -> float:
        if self.K_I == 0.0:
            return 0.0
        count = state.steps + 1
        excess = state.misses - state.steps * self.alpha
        angle = excess * math.log(count) / (self.C_sat * count)
        return self.K_I * math.tan(angle) if abs(angle) < math.pi / 2 else math.copysign(math.inf, angle)

    def _cast(self, caster: ThetaState | None) -> float:
        return theta_forecast(caster) if caster is not None and caster.seen > self.burnin else 0.0
