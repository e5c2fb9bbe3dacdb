"""Conformal PID control: the radius itself is steered by its misses.

The forecast of the next score is that of theta (Assimakopoulos and Nikolopoulos 2000), kept up to date one score at a
time. As Hyndman and Billah (2003) show, it is simple exponential smoothing with half the slope b of a straight line as
drift: forecast = level + b/2 (1 - (1 - a)^n) / a after n scores. The smoothing a is the best of a fixed grid by squared
one-step errors, each with its own least-squares initial level l0: the error is linear in l0, e_t = u_t - d_t l0 with
d_t = (1 - a)^t, so three running sums per grid point give both. No history is kept and nothing is refitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores, first_radius
from jointset.calibration.sequence import Limited
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

SMOOTHINGS = np.geomspace(1e-3, 0.999, 60)


@storable
class ThetaState(NamedTuple):
    """Per grid point the level from l0 = 0, the decay d and the sums; then count, mean, covariance with time."""

    level: Array
    decay: Array
    uu: Array
    ud: Array
    dd: Array
    seen: int
    mean: float
    covariance: float


def start_theta() -> ThetaState:
    """State before any score."""
    zero = np.zeros(len(SMOOTHINGS))
    return ThetaState(zero, np.ones(len(SMOOTHINGS)), zero, zero, zero, 0, 0.0, 0.0)


def update_theta(state: ThetaState, score: float) -> ThetaState:
    """State after one score; an infinite one is left out."""
    if not math.isfinite(score):
        return state
    u, d, seen = score - state.level, state.decay, state.seen + 1
    mean = state.mean + (score - state.mean) / seen
    # Welford's update against time 1..n, whose mean before this score is n / 2.
    covariance = state.covariance + (seen - seen / 2) * (score - mean)
    return ThetaState(
        state.level + SMOOTHINGS * u,
        d * (1.0 - SMOOTHINGS),
        state.uu + u * u,
        state.ud + u * d,
        state.dd + d * d,
        seen,
        mean,
        covariance,
    )


def theta_forecast(state: ThetaState) -> float:
    """Forecast of the next score, 0 before the second.

    >>> state = start_theta()
    >>> for score in range(50):
    ...     state = update_theta(state, float(score))
    >>> round(theta_forecast(state), 1)
    49.5
    """
    if state.seen < 2:
        return 0.0
    best = int(np.argmin(state.uu - state.ud**2 / state.dd))
    a, n = SMOOTHINGS[best], state.seen
    slope = state.covariance / (n * (n * n - 1) / 12.0)
    level = state.level[best] + state.decay[best] * state.ud[best] / state.dd[best]
    return float(level + slope / 2 * (1.0 - state.decay[best]) / a)


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

    def _after(self, state: PIDState, score: float) -> PIDState:
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
