"""A vector autoregression over all sensors: every reading from the last two rows of the whole network.

The model is of the change, y_t - y_{t-1} = A_1 y_{t-1} + A_2 y_{t-2} + c, with a ridge on A: the stronger the ridge,
the nearer the mean is to the last reading. The ridge is chosen from a grid on the last fifth of the training rows, then
all of them are fitted. With many sensors each looks at itself and its nearest neighbours on the graph only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointset.backbones.interface import Backbone, seed_list, training_mean
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.storage import storable

LAGS = 2
RIDGES = tuple(10.0**power for power in range(-6, 3))  # of the mean square of a regressor, times the rows
DENSE = 300  # sensors up to which each looks at all others
NEIGHBOURS = 20


@storable
@dataclass(frozen=True)
class VARBackbone(Backbone):
    """Ridge vector autoregression of order 2 on the changes of all sensors.

    Deterministic: all seeds give the same model, and a validation block is not used. A gap takes the last reading as a
    regressor, and no part as a target.

    >>> from jointset import generate_grssf
    >>> VARBackbone().fit(generate_grssf("A", n=10, length=500).panel).weights.shape
    (20, 10)
    """

    ridge: float | None = None  # None: chosen on training rows
    weights: Array | None = None  # (2 N, N), set by fit, as are the constant and the mean
    constant: Array | None = None
    mean: Array | None = None

    @property
    def lags(self) -> int:
        """Two."""
        return LAGS

    def fit_seeds(self, panel: Panel, seeds: int | Sequence[int], validation: Panel | None = None) -> list[VARBackbone]:
        """The one fitted model, for every seed."""
        mean = training_mean(panel)
        require(len(panel) > 5 * LAGS, f"a vector autoregression needs more than {5 * LAGS} rows, got {len(panel)}")
        rows = replace(self, mean=mean).fill(panel.values)[LAGS:] - mean
        X, change = np.hstack([rows[1:-1], rows[:-2]]), rows[2:] - rows[1:-1]
        change = np.where(panel.mask[2:], change, np.nan)
        near = _neighbours(panel)
        ridge = _best_ridge(X, change, near) if self.ridge is None else self.ridge
        weights, offset = _regression(X, change, near, ridge)
        found = replace(self, ridge=self.ridge, weights=weights, constant=offset, mean=mean)
        return [found] * len(seed_list(seeds))

    def _means(self, filled: Array) -> Array:
        assert self.weights is not None and self.constant is not None and self.mean is not None
        last, before = filled[1:], filled[:-1]
        return last + np.hstack([last - self.mean, before - self.mean]) @ self.weights + self.constant


def _neighbours(panel: Panel) -> Array | None:
    """Sensors each sensor looks at (N, k), itself first; None where it looks at all."""
    n = panel.n_sensors
    if n <= DENSE:
        return None
    closeness = np.zeros((n, n)) if panel.adjacency is None else np.array(panel.adjacency, dtype=float)
    np.fill_diagonal(closeness, np.inf)
    return np.argsort(-closeness, axis=1, kind="stable")[:, :NEIGHBOURS]


def _best_ridge(X: Array, change: Array, near: Array | None) -> float:
    """The ridge of the grid with the smallest squared error on the last fifth of the rows."""
    cut = len(X) - max(len(X) // 5, 1)

    def error(ridge: float) -> float:
        weights, offset = _regression(X[:cut], change[:cut], near, ridge)
        return float(np.nanmean((change[cut:] - X[cut:] @ weights - offset) ** 2))

    return min(RIDGES, key=error)


def _regression(X: Array, change: Array, near: Array | None, ridge: float) -> tuple[Array, Array]:
    """Weights (2 N, N) and constants (N,) of all sensors; a sensor with gaps is fitted on the rows that have it."""
    n = change.shape[1]
    weights, offset = np.zeros((2 * n, n)), np.zeros(n)
    gaps = np.isnan(change).any(axis=0)
    if near is None and not gaps.all():
        weights[:, ~gaps], offset[~gaps] = _ridge(X, change[:, ~gaps], ridge)
    for i in np.arange(n) if near is not None else np.flatnonzero(gaps):
        columns = np.arange(2 * n) if near is None else np.concatenate([near[i], near[i] + n])
        seen = ~np.isnan(change[:, i])
        found, constant = _ridge(X[np.ix_(seen, columns)], change[seen, i : i + 1], ridge)
        weights[columns, i], offset[i] = found[:, 0], constant[0]
    return weights, offset


def _ridge(X: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """Ridge regression (p, k) with a constant (k,) that is not shrunk; the ridge is in units of the regressors."""
    center, target = X.mean(axis=0), Y.mean(axis=0)
    X = X - center
    gram = X.T @ X
    gram[np.diag_indices_from(gram)] += ridge * max(float(gram.trace()) / len(gram), np.finfo(float).tiny)
    weights = np.linalg.solve(gram, X.T @ (Y - target))
    return weights, target - center @ weights
