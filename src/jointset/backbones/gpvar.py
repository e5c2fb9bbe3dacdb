"""GPVAR, the graph polynomial vector autoregression: five numbers shared by all sensors predict the next mean.

y_t = sum_{k<2, l<2} theta_kl S^k y_{t-1-l} + c, with S the normalised graph shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointset.backbones.interface import Backbone, seed_list, training_mean
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.graph import without_edges
from jointset.inputs.shifts import Shift, kept_shift, operator
from jointset.panel import Panel
from jointset.storage import storable

LAGS = 2
ORDER = 2


@storable
@dataclass(frozen=True)
class GraphRegression:
    """The coefficients: ridge regression of every reading on its two lags and their graph averages."""

    ridge: float = 1e-2
    shift: Shift | None = None  # S (N, N), set by fit
    theta: Array | None = None  # (ORDER * LAGS + 1,), the constant last, set by fit

    def fit(self, panel: Panel) -> GraphRegression:
        """Least squares over all sensors and steps at once; rows next to a gap are left out."""
        n = panel.n_sensors
        shift = kept_shift(without_edges(n) if panel.adjacency is None else panel.adjacency)
        values = panel.values
        require(len(values) > LAGS, f"the mean backbone looks back {LAGS} rows and was given {len(values)}: give more")
        terms = _features(values[1:-1], values[:-2], operator(shift))
        X = np.stack([*terms, np.ones((len(values) - LAGS, n))], axis=-1)
        X, y = X.reshape(-1, X.shape[-1]), values[LAGS:].reshape(-1)
        known = ~(np.isnan(X).any(axis=1) | np.isnan(y))
        X, y = X[known], y[known]
        theta = np.linalg.solve(X.T @ X + self.ridge * np.eye(X.shape[1]), X.T @ y)
        return GraphRegression(self.ridge, shift, theta)

    @cached_property
    def _operator(self) -> Any:
        assert self.shift is not None
        return operator(self.shift)

    def predict(self, last: Array, before: Array) -> Array:
        """Mean of the next reading from the last one and the one before, each (..., N)."""
        if self.shift is None or self.theta is None:
            raise InputError("the mean backbone is not fitted: call fit(panel) first")
        terms = _features(last, before, self._operator)
        return sum((t * x for t, x in zip(self.theta, terms, strict=False)), start=np.full(last.shape, self.theta[-1]))


@storable
@dataclass(frozen=True)
class GPVAR(Backbone):
    """y_t = sum_{k<2, l<2} theta_kl S^k y_{t-1-l} + c, ridge regression.

    Deterministic: all seeds give the same model, and a validation block is not used. Without a graph S is the
    identity. Five parameters for any number of sensors.
    """

    ridge: float = 1e-2
    model: GraphRegression | None = None  # set by fit, as is the mean
    mean: Array | None = None

    @property
    def lags(self) -> int:
        """Two."""
        return LAGS

    def fit_seeds(self, panel: Panel, seeds: int | Sequence[int], validation: Panel | None = None) -> list[GPVAR]:
        """The one fitted model, for every seed."""
        fitted = replace(self, model=GraphRegression(self.ridge).fit(panel), mean=training_mean(panel))
        return [fitted] * len(seed_list(seeds))

    def _means(self, filled: Array) -> Array:
        assert self.model is not None
        return self.model.predict(filled[1:], filled[:-1])


GPVARBackbone = GPVAR  # its name beside the other backbones


def _features(last: Array, before: Array, shift: Any) -> list[Array]:
    return [x for lag in (last, before) for x in (lag, lag @ shift)]
