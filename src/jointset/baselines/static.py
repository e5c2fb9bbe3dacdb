"""Static covariance: the graph autoregression as mean and one covariance of its residuals for all steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointset.baselines.gpvar import GPVAR, LAGS
from jointset.contracts import Array
from jointset.covariance import Covariance
from jointset.errors import InputError, require
from jointset.laws import DenseLaw
from jointset.panel import Panel
from jointset.storage import storable

NOT_FITTED = "the static filter is not fitted: call fit(panel) first"


@storable
class StaticState(NamedTuple):
    """The last reading and the one before (2, N), newest first; gaps hold what was predicted there."""

    history: Array


@storable
@dataclass(frozen=True)
class StaticFilter:
    """Reference row: the mean follows the data, the shape never does (covariance of the training residuals)."""

    backbone: GPVAR = field(default_factory=GPVAR)
    mean: Array | None = None  # training mean (N,), set by fit: what the filter knows before any reading
    covariance: Array | None = None  # (N, N), set by fit

    def fit(self, panel: Panel) -> StaticFilter:
        """Backbone first, then S = E'E / (n - 1) from its residuals E on the rows without gaps."""
        n = panel.n_sensors
        backbone = self.backbone.fit(panel)
        residuals = panel.values[LAGS:] - backbone.predict(panel.values[1:-1], panel.values[:-2])
        residuals = residuals[~np.isnan(residuals).any(axis=1)]
        require(
            len(residuals) > n,
            f"a covariance of {n} sensors needs more than {n} training rows without gaps, found {len(residuals)}",
        )
        covariance = residuals.T @ residuals / (len(residuals) - 1)
        return replace(self, backbone=backbone, mean=np.nanmean(panel.values, axis=0), covariance=covariance)

    @cached_property
    def emitted(self) -> Covariance:
        """The one covariance, factorised once."""
        if self.covariance is None:
            raise InputError(NOT_FITTED)
        return Covariance(self.covariance)

    def start(self) -> StaticState:
        """Both lags at the training mean."""
        if self.mean is None:
            raise InputError(NOT_FITTED)
        return StaticState(np.stack([self.mean] * LAGS))

    def law(self, state: StaticState) -> DenseLaw:
        """Law of the next reading."""
        return DenseLaw(self.backbone.predict(*state.history), self.emitted)

    def step(self, state: StaticState, y: Array) -> StaticState:
        """State after one reading (N,); a missing one is replaced by its prediction."""
        y = np.asarray(y, dtype=float)
        if np.isnan(y).any():
            y = np.where(np.isnan(y), self.backbone.predict(*state.history), y)
        return StaticState(np.stack([y, state.history[0]]))

    def run(self, values: Array, state: StaticState) -> tuple[DenseLaw, StaticState]:
        """Laws of all rows (T, N) and the state after the last one."""
        filled = np.concatenate([state.history[::-1], np.asarray(values, dtype=float)])
        for t in LAGS + np.flatnonzero(np.isnan(filled[LAGS:]).any(axis=1)):  # gaps only; earlier rows are complete
            predicted = self.backbone.predict(filled[t - 1], filled[t - 2])
            filled[t] = np.where(np.isnan(filled[t]), predicted, filled[t])
        means = self.backbone.predict(filled[1:-1], filled[:-2])
        return DenseLaw(means, self.emitted), StaticState(filled[-1:-3:-1].copy())
