"""The mean-channel swap: the covariance of one filter around the mean of any backbone.

The stress test of the paper's multi-backbone appendix: the filter keeps its parameters and picks the shape of the set,
the backbone puts its centre elsewhere, and `JointPredictor` calibrates the size anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array, Filter, Forecast, MeanModel
from jointset.panel import Panel
from jointset.storage import storable


@storable
class SwappedState(NamedTuple):
    """The filter's state, and the last readings (lags, N), oldest first, gaps filled."""

    filter: object
    history: Array


@storable
@dataclass(frozen=True)
class SwappedMean:
    """A filter whose law has the backbone's mean and the given filter's covariance.

    Parameters
    ----------
    filter, backbone
        Any filter and any mean backbone.
    frozen
        Both are fitted already, on readings in the units of the panel that `fit` will be given: `fit` leaves them as
        they are. So one trained filter serves several backbones. (`JointPredictor` gives its filter z-scores unless
        `standardize=False`.)
    """

    filter: Filter[Any]
    backbone: MeanModel
    frozen: bool = False

    def fit(self, panel: Panel) -> SwappedMean:
        """A copy with both parts fitted on the panel, or as they are when frozen."""
        if self.frozen:
            return self
        return replace(self, filter=self.filter.fit(panel), backbone=self.backbone.fit(panel))

    def start(self) -> SwappedState:
        """The filter's own start, and a history at the training mean."""
        return SwappedState(self.filter.start(), self.backbone.start())

    def law(self, state: SwappedState) -> Forecast:
        """Law of the next reading."""
        law: Any = self.filter.law(state.filter)  # a dataclass, as all laws are
        return replace(law, mean=self.backbone.next_mean(state.history))

    def step(self, state: SwappedState, y: Array) -> SwappedState:
        """State after one reading (N,), NaN = missing."""
        filled = self.backbone.fill(np.asarray(y, dtype=float)[None], state.history)
        return SwappedState(self.filter.step(state.filter, y), filled[1:])

    def run(self, values: Array, state: SwappedState) -> tuple[Forecast, SwappedState]:
        """Laws of all rows (T, N) and the state after the last one."""
        laws: Any
        laws, after = self.filter.run(values, state.filter)
        means = self.backbone.predict(values, state.history)
        history = self.backbone.fill(values, state.history)[-self.backbone.lags :]
        return replace(laws, mean=means), SwappedState(after, history.copy())
