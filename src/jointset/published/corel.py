"""Relational quantile regression: one interval a sensor, from its own past residuals and those of related sensors.

The alpha / 2 and 1 - alpha / 2 quantiles of the next residual of a sensor are linear in its last residual and in moving
averages of absolute residuals, its own and those of the sensors whose past goes most with its present: relations are
found from the residuals, no graph is needed. Each sensor is at level alpha, so the box covers all sensors at once far
less often than 1 - alpha. `bonferroni=True` takes alpha / N a sensor instead.

Reference: Cini et al., "Relational conformal prediction for correlated time series", ICML 2025, where a graph network
over learned relations stands in the place of the linear one here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np

from jointset.contracts import Array
from jointset.errors import require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import IntervalRule, RowOptions, published
from jointset.storage import storable
from jointset.support.how_far import each

HALF_LIVES = (1.0, 24.0)  # rows, of the moving averages
RELATIONS = 3  # other sensors that a sensor listens to, at most
ROUNDS = 60  # of the quantile regression
BEND = 1e-3  # width of the bend of the pinball loss, in residual sd
RIDGE = 1e-4


@storable
class CoRelState(NamedTuple):
    """The last residual (N,) and moving averages of absolute ones (H, N), in units (N,); relations; coefficients.

    relations (N, k): positions of the sensors listened to · weights (2, N, p): of the lower and of the upper quantile.
    """

    unit: Array
    last: Array
    averages: Array
    relations: Array
    weights: Array


@storable
@dataclass(frozen=True)
class CoRelRule(IntervalRule):
    """Settings of the regression and its sets."""

    alpha: float = 0.1
    bonferroni: bool = False

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    @property
    def needed(self) -> int:
        """As many residuals as show the outer quantiles."""
        return int(np.ceil(5.0 / self.alpha))

    def start(self, residuals: Array) -> CoRelState:
        """Relations and coefficients from the calibration residuals (m, N)."""
        unit = np.sqrt(np.mean(residuals**2, axis=0))
        unit = np.maximum(unit, max(float(unit.max()) * 1e-9, np.finfo(float).tiny))
        z, n = residuals / unit, residuals.shape[1]
        before = np.ones((len(HALF_LIVES), n)) * np.abs(z).mean(axis=0)
        averages = moving(np.abs(z), before)
        relations = related(np.abs(z))
        X = regressors(np.vstack([np.zeros(n), z[:-1]]), averages[:-1], relations)
        tail = 0.5 * self.each(n)
        ends = [[quantile_regression(X[:, i], z[:, i], q) for q in (tail, 1.0 - tail)] for i in each(range(n))]
        weights = np.stack(ends, axis=1)
        return CoRelState(unit, z[-1], averages[-1], relations, weights)

    def radii(self, state: CoRelState, residuals: Array) -> tuple[tuple[Array, ...], CoRelState]:
        """Lower and upper ends (T + 1, N) relative to the mean."""
        z = residuals / state.unit
        averages, last = moving(np.abs(z), state.averages), np.vstack([state.last, z])
        ends = np.einsum("tnp,qnp->qtn", regressors(last, averages, state.relations), state.weights) * state.unit
        return (ends.min(axis=0), ends.max(axis=0)), state._replace(last=last[-1], averages=averages[-1])


def moving(sizes: Array, before: Array) -> Array:
    """Moving averages (T + 1, H, N) of sizes (T, N): before each row, and after the last."""
    weight = (1.0 - 2.0 ** (-1.0 / np.array(HALF_LIVES)))[:, None]
    out = np.empty((len(sizes) + 1, *before.shape))
    out[0] = before
    for t, row in enumerate(sizes):
        out[t + 1] = out[t] + weight * (row - out[t])
    return out


def related(sizes: Array) -> Array:
    """For every sensor those (N, k) whose size one row before goes most with its own, itself left out."""
    now, past = sizes[1:] - sizes[1:].mean(axis=0), sizes[:-1] - sizes[:-1].mean(axis=0)
    spread = np.linalg.norm(now, axis=0)[:, None] * np.linalg.norm(past, axis=0)
    together = np.divide(now.T @ past, spread, out=np.zeros(spread.shape), where=spread > 0)
    np.fill_diagonal(together, -np.inf)
    return np.argsort(-together, axis=1, kind="stable")[:, : min(RELATIONS, len(together) - 1)]


def regressors(last: Array, averages: Array, relations: Array) -> Array:
    """Regressors (T, N, p): a constant, the last residual, averages of a sensor's own sizes and of its relations'."""
    rows, n = last.shape
    own = averages.swapaxes(1, 2)  # (T, N, H)
    others = own[:, relations].reshape(rows, n, -1)
    return np.concatenate([np.ones((rows, n, 1)), last[..., None], own, others], axis=-1)


def quantile_regression(X: Array, y: Array, q: float) -> Array:
    """Coefficients (p,) that minimise the mean pinball loss at q, by majorisation (Hunter and Lange 2000).

    >>> y = np.arange(101.0)
    >>> round(float(quantile_regression(np.ones((101, 1)), y / 100.0, 0.9)[0]), 2)
    0.9
    """
    ridge = RIDGE * np.eye(X.shape[1])
    found = np.linalg.solve(X.T @ X / len(X) + ridge, X.T @ y / len(X))
    for _ in range(ROUNDS):
        w = 1.0 / (BEND + np.abs(y - X @ found))
        found = np.linalg.solve((X * w[:, None]).T @ X / len(X) + ridge, X.T @ (w * y + 2.0 * q - 1.0) / len(X))
    return found


def CoRel(
    *,
    alpha: float = 0.1,
    bonferroni: bool = False,
    seed: int = 0,
    **row: Unpack[RowOptions],
) -> JointPredictor:
    """Relational quantile regression after CoRel (Cini et al.), linear; nothing is drawn, whatever the seed.

    >>> CoRel(bonferroni=True).filter.rule.needed
    50
    """
    rule = CoRelRule(alpha, bonferroni)
    return published(rule, "corel", **row)
