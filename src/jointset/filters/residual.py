"""The filter behind every row with a backbone: a one-step mean, and a shape learnt from its residuals.

A **shape** says how residuals spread: `fit(pilot)` on the residuals of a pilot block, then `start() -> state` and
`run(residuals, means, times, state) -> (law, state)`, where the law of row t may use the residuals before t only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from jointset.abilities import Moved, ShapeOfTheHour
from jointset.contracts import Array, Forecast, MeanModel, Pieces, Pilot, Shape
from jointset.errors import InputError, require
from jointset.filters.remembered import Remembered
from jointset.panel import Panel
from jointset.residuals.incomplete import complete_residuals
from jointset.residuals.shapes import Constant
from jointset.storage import storable

NUMBERS = 16_000_000 / 4096  # that the law of a row holds, at most, where covariances change by updates


@storable
class ResidualState(NamedTuple):
    """The last readings (lags, N), oldest first, gaps filled; how many rows were seen; the state of the shape."""

    history: Array
    seen: int
    shape: object


def gpvar() -> MeanModel:
    """The default mean: the graph polynomial autoregression."""
    from jointset.backbones.gpvar import GPVAR

    return GPVAR()


@storable
@dataclass(frozen=True)
class ResidualFilter(Remembered[ResidualState, Any]):
    """Mean of a backbone, and a shape fitted on the residuals of a pilot block.

    Parameters
    ----------
    backbone
        Any of `jointset.backbones`; the graph polynomial autoregression by default.
    shape
        How the residuals spread: `Constant`, `EWMA`, `Rolling`, `TimeOfDay`, `Local`, or components.
    centred
        Take the mean pilot residual off the residuals and add it to the centre of the set.
    cold
        Predict the training mean until `lags` readings were seen, instead of filling the history with it.
    name
        Of the row, for messages.
    frozen
        The backbone is fitted already, in the units that `fit` will be given.
    offset
        Set by `fit`: mean pilot residual (N,), zero unless centred.
    """

    backbone: MeanModel = field(default_factory=gpvar)
    shape: Shape = field(default_factory=Constant)
    centred: bool = False
    cold: bool = False
    name: str = "static"
    frozen: bool = False
    offset: Array | None = None

    def fit(self, panel: Panel, pilot: Panel | None = None, skip: int | None = None) -> Self:
        """Backbone on the panel, shape on the residuals of the pilot block (by default the panel itself).

        The pilot's predictions start afresh, and its first `skip` rows are left out (by default as many as the
        backbone looks back at). Gaps in the residuals are filled (`jointset.residuals.incomplete`).
        """
        backbone = self.backbone if self.frozen else self.backbone.fit(panel)
        fitted = replace(self, backbone=backbone, offset=np.zeros(panel.n_sensors))
        block = panel if pilot is None else pilot
        means = fitted._means(block.values, fitted._fresh())
        residuals = block.values - means
        kept = ~np.isnan(residuals).all(axis=1)
        early = backbone.lags if skip is None else skip
        kept[:early] = False
        means = means[kept]
        rows = f"{self.name}: the {'training' if pilot is None else 'pilot'} rows after the first {early}"
        residuals = complete_residuals(residuals[kept], rows, panel.sensors)
        require(
            len(residuals) > 1,
            f"{self.name}: the covariance needs rows with readings, and of the {len(block)} rows given for it "
            f"{len(residuals)} are left after the first {early}: give it more rows",
        )
        offset = residuals.mean(axis=0) if self.centred else np.zeros(panel.n_sensors)
        times = None if block.timestamps is None else block.timestamps[kept]
        given = Pilot(residuals - offset, means + offset, times, panel.adjacency, block.cadence, self.name)
        return replace(fitted, offset=offset, shape=self.shape.fit(given))

    def start(self) -> ResidualState:
        """Nothing seen: a history at the training mean, the shape as the pilot block left it."""
        if self.offset is None:
            raise InputError(f"the {self.name} filter is not fitted: call fit(panel) first")
        return self._fresh()._replace(shape=self.shape.start())

    def _fresh(self) -> ResidualState:
        return ResidualState(self.backbone.start(), 0, None)

    def restart(self, state: ResidualState) -> ResidualState:
        """The state with an empty history: predictions start afresh, the shape goes on."""
        return self._fresh()._replace(shape=state.shape)

    @property
    def shares(self) -> tuple[float, ...] | None:
        """How the miss rate is shared by several radii; None where a set has one."""
        return getattr(self.shape, "shares", None)

    def pieces(self, boxes: bool) -> Pieces | None:
        """Directions of every covariance of the shape and its share of the miss rate; None where it moves.

        A box of one covariance has a direction a sensor.
        """
        found: Pieces | None = getattr(self.shape, "pieces", None)
        if boxes and found is not None and len(found) == 1:
            n = found[0][0]
            return [(1, 1.0 / n)] * n
        return found

    @property
    def follows_clock(self) -> bool:
        """Whether the law depends on the time of the reading."""
        return isinstance(self.shape, ShapeOfTheHour)

    def expect(self, state: ResidualState, when: int) -> ResidualState:
        """The state when the next reading is known to come at this time (epoch seconds)."""
        if not isinstance(self.shape, ShapeOfTheHour):
            return state
        return state._replace(shape=self.shape.at(state.shape, when))

    def law_sizes(self, values: Array) -> Array:
        """Numbers (T,) that a law a row holds: N x N where the shape forms a matrix a step, else fewer."""
        n = values.shape[1]
        if self.shares is not None:  # the law is that of all rows
            return np.zeros(len(values))
        return np.full(len(values), float(n**2) if getattr(self.shape, "dense", False) else min(float(n**2), NUMBERS))

    def _law(self, state: ResidualState) -> Forecast:
        """Law of the next reading."""
        if isinstance(self.shape, Moved):
            return self.shape.law(self._center(state), state.shape)
        unread = np.zeros((1, len(np.asarray(self.backbone.mean))))  # whatever it is, its own law does not see it
        return self._rows(unread, state, None)[0][0]

    def _center(self, state: ResidualState) -> Array:
        """Mean (N,) of the next reading."""
        known = not self.cold or state.seen >= self.backbone.lags
        mean = self.backbone.next_mean(state.history) if known else np.asarray(self.backbone.mean)
        return mean + np.asarray(self.offset)

    def step(self, state: ResidualState, y: Array) -> ResidualState:
        """State after one reading (N,), NaN = missing."""
        row = np.asarray(y, dtype=float)[None]
        if not isinstance(self.shape, Moved):
            return self._rows(row, state, None)[1]
        history, lags = self.backbone.fill(row, state.history)[1:], self.backbone.lags
        return ResidualState(
            history, min(state.seen + 1, lags), self.shape.after(row - self.law(state).mean, state.shape)
        )

    def run(self, values: Array, state: ResidualState, times: Array | None = None) -> tuple[Forecast, ResidualState]:
        """Laws of all rows (T, N) and the state after the last one; `times` (T,) where the shape follows the clock."""
        return self._rows(np.asarray(values, dtype=float), state, times)

    def _rows(self, values: Array, state: ResidualState, times: Array | None) -> tuple[Forecast, ResidualState]:
        filled, lags = self.backbone.fill(values, state.history), self.backbone.lags
        centers = self._means(filled[lags:], state) + self.offset
        law, shape = self.shape.run(values - centers, centers, times, state.shape)
        return law, ResidualState(filled[-lags:].copy(), min(state.seen + len(values), lags), shape)

    def _means(self, values: Array, state: ResidualState) -> Array:
        means = np.asarray(self.backbone.predict(values, state.history), dtype=float)
        if self.cold:
            means[: max(self.backbone.lags - state.seen, 0)] = self.backbone.mean
        return means
