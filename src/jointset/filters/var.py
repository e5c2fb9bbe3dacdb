"""The instant expert: a vector autoregression with the calendar, a scale that follows the moment, moving correlations.

Mean, scale and correlations are regressions and moving averages: nothing is trained for longer than seconds. The mean
is fitted twice, the second time with rows that were outliers for their moment counting less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jointset.backbones.var import DENSE, VARBackbone
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.laws import AnyLaw
from jointset.panel import Panel
from jointset.residuals.correlations import FactorCorrelations, MovingCorrelations
from jointset.residuals.scale_regression import ScaleRegression, outlier_weights
from jointset.storage import storable

BLOCK = 4_000_000  # numbers that the regressors of a block of rows may hold
REGRESSORS = 30  # of a scale, at most


@storable
class VARState(NamedTuple):
    """The last readings (lags, N), gaps filled; moving averages of squares; correlations; time of the next row."""

    history: Array
    memory: Array
    correlations: Array
    next: int


@storable
@dataclass(frozen=True)
class VARFilter:
    """A vector autoregression whose residuals have scales that depend on the moment and correlations that move.

    Parameters
    ----------
    correlations
        `MovingCorrelations` (half-life and shrinkage chosen on the last fifth of the training rows), or
        `FactorCorrelations`; None: the second for more sensors than a dense covariance is worth, else the first.

    >>> from jointset import generate_grssf
    >>> fitted = VARFilter().fit(generate_grssf("B", n=10, length=600).panel)
    >>> fitted.law(fitted.start()).mean.shape
    (10,)
    """

    correlations: MovingCorrelations | FactorCorrelations | None = None
    backbone: VARBackbone = VARBackbone(clock=True, curved=True)  # noqa: RUF009 - a frozen value
    scale: ScaleRegression = ScaleRegression()  # noqa: RUF009 - a frozen value
    cadence: int = 0
    first: int = 0
    name: str = "var"

    def fit(self, panel: Panel, progress: Callable[[int, int, float], None] | None = None) -> VARFilter:
        """Mean, scales and correlations from one panel; `progress` is told how many of the five parts are done."""
        told = progress or (lambda part, parts, loss: None)
        backbone = self.backbone.fit_weighted(panel)
        told(1, 5, np.nan)
        z = self._parts(panel, backbone)[1]
        told(2, 5, np.nan)
        backbone = self.backbone.fit_weighted(panel, outlier_weights(z))
        told(3, 5, np.nan)
        scale, z = self._parts(panel, backbone)
        told(4, 5, np.nan)
        correlations = self.correlations
        if correlations is None:
            correlations = MovingCorrelations() if panel.n_sensors <= DENSE else FactorCorrelations()
        cadence = panel.cadence or 0
        first = 0 if panel.timestamps is None else int(panel.timestamps[-1]) + cadence
        made = replace(self, backbone=backbone, scale=scale, correlations=correlations.fit(z[backbone.lags :]))
        return replace(made, cadence=cadence, first=first)

    def _parts(self, panel: Panel, backbone: VARBackbone) -> tuple[ScaleRegression, Array]:
        """Scales fitted to the residuals of a mean, and standardised residuals (T, N), NaN in the first rows."""
        means = backbone.predict(panel.values, times=panel.timestamps)
        residuals = panel.values - means
        residuals[: backbone.lags] = np.nan
        read = (~np.isnan(residuals)).sum(axis=0)
        require(
            bool((read > 1).all()),
            f"{self.name}: {panel.sensors[int(read.argmin())]!r} has {read.min()} readings after the first "
            f"{backbone.lags} rows: give more rows, or leave it out",
        )
        scale = self.scale.fit(residuals, means, panel)
        memory, size = scale.start(), max(1, BLOCK // (REGRESSORS * panel.n_sensors))
        for start in range(0, len(residuals), size):
            block = slice(start, start + size)
            past, memory = scale.memories(residuals[block], memory)
            times = None if panel.timestamps is None else panel.timestamps[block]
            residuals[block] /= scale.scales(past, means[block], times)
        return scale, residuals

    def start(self) -> VARState:
        """A history at the training mean, everything else as the training rows left it or usually is."""
        if not self.backbone.fitted:
            raise InputError("the var filter is not fitted: call fit(panel) first")
        return VARState(self.backbone.start(), self.scale.start(), self._fitted.start(), self.first)

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return bool(self.backbone.calendar or self.scale.calendar)

    def expect(self, state: VARState, when: int) -> VARState:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        return state if state.next == when else state._replace(next=int(when))

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that the law of a row and what it is made of hold."""
        n = values.shape[1]
        return np.full(len(values), n * (n + REGRESSORS if n <= DENSE else 2 * REGRESSORS))

    @property
    def _fitted(self) -> MovingCorrelations | FactorCorrelations:
        assert self.correlations is not None
        return self.correlations

    def law(self, state: VARState) -> AnyLaw:
        """Law of the next reading."""
        mean, scale = self._next(state)
        return self._fitted.law(mean[0], scale[0], state.correlations)

    def step(self, state: VARState, y: Array) -> VARState:
        """State after one reading (N,), NaN = missing."""
        row = np.asarray(y, dtype=float)[None]
        mean, scale = self._next(state)
        residual = row - mean
        memory = self.scale.after(residual, state.memory)
        correlations = self._fitted.after(residual / scale, state.correlations)
        return VARState(self.backbone.after(state.history, row[0]), memory, correlations, state.next + self.cadence)

    def _next(self, state: VARState) -> tuple[Array, Array]:
        """Mean and scales (1, N) of the next row; those of the last state are kept, as `law` and `step` both ask."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] is not state:
            times = np.array([state.next])
            mean = self.backbone.predict_next(state.history, times)
            kept = state, (mean, self.scale.scales(state.memory[None], mean, times))
            object.__setattr__(self, "_kept", kept)
        found: tuple[Array, Array] = kept[1]
        return found

    def run(self, values: Array, state: VARState, times: Array | None = None) -> tuple[AnyLaw, VARState]:
        """Laws of all rows (T, N) and the state after the last one; rows without times follow at the usual interval."""
        if times is None:
            times = state.next + self.cadence * np.arange(len(values))
        means = self.backbone.predict(values, state.history, times)
        residuals = values - means
        past, memory = self.scale.memories(residuals, state.memory)
        scales = self.scale.scales(past, means, times)
        law, correlations = self._fitted.run(residuals / scales, means, scales, state.correlations)
        history = self.backbone.fill(values, state.history)[-self.backbone.lags :].copy()
        after = int(times[-1]) + self.cadence if len(values) else state.next
        return law, VARState(history, memory, correlations, after)
