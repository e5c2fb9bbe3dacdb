"""What every mean backbone promises: the mean of the next reading from a short history of readings.

A backbone is a frozen dataclass. `fit` gives a fitted copy; `predict` gives the means of whole rows and `next_mean` the
mean after one history, and both agree to rounding. Row t is predicted from the `lags` rows before it and nothing else.

Two rules fill what is not there. Before the first row the history is the training mean of every sensor, so that
rows 0 .. lags - 1 are predicted from it and from the rows before them. A missing reading (NaN) is replaced by the last
reading of that sensor before it, and by its training mean where there is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.filters.kalman_tuning import forward_filled
from jointset.panel import Panel


class Backbone(ABC):
    """One-step means of a network; subclasses give `lags`, `mean` and `_means`, and know how to fit."""

    mean: Array | None  # training mean (N,), set by fit

    @property
    @abstractmethod
    def lags(self) -> int:
        """Number of past rows a mean depends on."""

    def fit(self, panel: Panel, validation: Panel | None = None) -> Self:
        """A fitted copy; `validation` is a later block that says when to stop, where training needs to know."""
        return self.fit_seeds(panel, [0], validation)[0]

    @abstractmethod
    def fit_seeds(self, panel: Panel, seeds: int | Sequence[int], validation: Panel | None = None) -> list[Self]:
        """Independent fitted copies for several seeds (0 .. k - 1 for a number k)."""

    @abstractmethod
    def _means(self, filled: Array) -> Array:
        """Means (M - lags + 1, N) after every `lags` consecutive rows of complete readings (M, N)."""

    @property
    def fitted(self) -> bool:
        """Whether `fit` made this copy."""
        return self.mean is not None

    def start(self) -> Array:
        """History (lags, N) before the first row: the training mean."""
        return np.tile(self._known_mean(), (self.lags, 1))

    def fill(self, values: Array, history: Array | None = None) -> Array:
        """Complete rows (lags + T, N): the history (by default `start()`), then the values with their gaps filled."""
        mean = self._known_mean()
        history = self.start() if history is None else np.asarray(history, dtype=float)
        values = np.asarray(values, dtype=float)
        n, lags = len(mean), self.lags
        if values.ndim != 2 or values.shape[1] != n:
            raise InputError(
                f"values have shape {values.shape}: this backbone was fitted on {n} sensors and needs (T, {n})"
            )
        if history.shape != (lags, n):
            raise InputError(f"history has shape {history.shape}, expected ({lags}, {n}): the last {lags} rows")
        rows = np.concatenate([history, values])
        return forward_filled(np.concatenate([mean[None], rows]))[1:] if np.isnan(rows).any() else rows

    def predict(self, values: Array, history: Array | None = None, times: Array | None = None) -> Array:
        """Means (T, N) of the rows of values (T, N), each from the rows before it; `history` precedes the first.

        `times` (T,) of the rows are for a mean that follows the clock; others leave them alone.
        """
        filled = self.fill(values, history)
        return self._means(filled[:-1]) if len(filled) > self.lags else filled[:0]

    def next_mean(self, history: Array) -> Array:
        """Mean (N,) of the reading after a history (lags, N), oldest row first."""
        return self._means(self.fill(np.empty((0, len(self._known_mean()))), history))[0]

    def _known_mean(self) -> Array:
        if self.mean is None:
            raise InputError("the mean backbone is not fitted: call fit(panel) first")
        return self.mean


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """The seeds 0 .. k - 1 of a number k, or the given ones."""
    return list(range(seeds)) if isinstance(seeds, int) else list(seeds)


def training_mean(panel: Panel) -> Array:
    """Mean reading of every sensor (N,), refused where a sensor has no reading at all."""
    silent = [panel.sensors[i] for i in np.flatnonzero(~panel.mask.any(axis=0))]
    require(not silent, f"no reading of {some(silent)} in the training rows: leave them out with --drop-dead or --drop")
    return np.nanmean(panel.values, axis=0)


def known_range(values: Array) -> Array:
    """Lowest and highest reading of every sensor in rows (T, N), each half of their distance further out, and the mean.

    What lies beyond was never learned from, and a weight that is harmless within can be a disaster there: a plant that
    trips would move the means of all others. A sensor without any reading has no bounds. Rows are low, mean, high.
    """
    seen = ~np.isnan(values)
    count = seen.sum(axis=0)
    low, high = values.min(axis=0, where=seen, initial=np.inf), values.max(axis=0, where=seen, initial=-np.inf)
    mean = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    with np.errstate(invalid="ignore"):
        room = 0.5 * (high - low)
        return np.where(count > 0, [low - room, mean, high + room], [[-np.inf], [0.0], [np.inf]])


def within(values: Array, known: Array | None) -> Array:
    """Readings (..., N) as regressors: those beyond the known range (3, N) cut to its end, far beyond at the mean."""
    if known is None:
        return values
    return np.where(far_beyond(values, known), known[1], np.minimum(np.maximum(values, known[0]), known[2]))


def far_beyond(values: Array, known: Array) -> Array:
    """Which readings (..., N) lie farther beyond the known range (3, N) than it is wide: nothing at all is known there.

    At an end of its range such a sensor would be drawn back for ever.
    """
    low, _, high = known
    return np.asarray((values < 2.0 * low - high) | (values > 2.0 * high - low))
