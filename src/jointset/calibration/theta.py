"""The theta forecast of the next score, kept up to date one score at a time.

Assimakopoulos and Nikolopoulos (2000); as Hyndman and Billah (2003) show, it is simple exponential smoothing with half
the slope b of a straight line as drift: forecast = level + b/2 (1 - (1 - a)^n) / a after n scores. The smoothing a is
the best of a fixed grid by squared one-step errors, each with its own least-squares initial level l0: the error is
linear in l0, e_t = u_t - d_t l0 with d_t = (1 - a)^t, so three running sums per grid point give both. No history is
kept and nothing is refitted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
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
