"""How large the next residual of every sensor will be: its scale from the clock, the level and what was seen lately.

The logarithm of the squared scale is linear in the logarithms of moving averages of squared residuals, over a few rows
to a few hundred, of the sensor and of the whole network; in the predicted mean and its square; and in the time of day
and of the week. The coefficients of each sensor maximise a Student-t likelihood (Newton's method, from the regression
of the logarithms of squares), so that a glitch is an outlier and not a scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jointset.algebra.pooling import some_rows
from jointset.backbones.calendar import NO_CALENDAR, Calendar, calendar_of
from jointset.contracts import Array
from jointset.panel import Panel
from jointset.storage import storable

HALF_LIVES = (3.0, 12.0, 48.0, 288.0)  # rows
WEIGHTS = (1.0 - 2.0 ** (-1.0 / np.array(HALF_LIVES)))[:, None]  # of one row in each of the moving averages
HARMONICS = (6, 2)  # of the day and of the week
FREEDOM = 5.0  # of the Student-t
FLOOR = 0.01  # smallest scale, in those of all residuals of a sensor
LARGEST = 20.0  # a residual counts as no more than so many of them
WIDEST = 4.0  # a regressor counts as no more than so many of its standard deviations
STILL = 0.3  # smallest standard deviation of the logarithm of a moving average
RIDGE = 1e-3
FEW = 30.0  # over the number of rows, added to the ridge
STEPS = 8  # of Newton's method
MEAN_LOG = 1.27  # minus the mean logarithm of a squared standard normal
AT_ONCE = 250  # sensors whose regressors are held at once
ROWS = (2_000, 8_000)  # rows that the coefficients are fitted on: at least, and at most


@storable
@dataclass(frozen=True)
class ScaleRegression:
    """Scales of the next residuals; all fields but the calendar are set by `fit`."""

    calendar: Calendar = NO_CALENDAR
    usual: Array | None = None  # root mean square of the residuals of every sensor (N,)
    center: Array | None = None  # of the regressors (p, N)
    spread: Array | None = None  # (p, N)
    weights: Array | None = None  # (p + 1, N), the constant first

    def fit(self, residuals: Array, means: Array, panel: Panel) -> ScaleRegression:
        """Coefficients from residuals (T, N), NaN where there is none, around the means of a panel's rows."""
        usual = np.sqrt(np.nanmean(residuals**2, axis=0))
        usual = np.maximum(usual, max(float(usual.max()) * 1e-9, np.finfo(float).tiny))
        made = replace(self, usual=usual, calendar=calendar_of(panel, *HARMONICS))
        n = len(usual)
        size = int(np.clip(ROWS[1] * 250 // n, *ROWS))
        kept = some_rows(len(residuals), size)
        memory, _ = made.memories(residuals, made.start(), kept)
        times = None if panel.timestamps is None else panel.timestamps[kept]
        parts = [
            replace(made, usual=usual[at])._fit(
                memory[:, :, [*at, n]], residuals[np.ix_(kept, at)], means[np.ix_(kept, at)], times
            )
            for at in np.array_split(np.arange(n), -(-n // AT_ONCE))
        ]
        fields = ("center", "spread", "weights")
        center, spread, weights = (np.hstack([getattr(part, name) for part in parts]) for name in fields)
        return replace(made, center=center, spread=spread, weights=weights)

    def _fit(self, memory: Array, residuals: Array, means: Array, times: Array | None) -> ScaleRegression:
        """Coefficients of some sensors from rows of their moving averages, residuals and means."""
        assert self.usual is not None
        X = self._regressors(memory, means, times)  # (T, p, N)
        spread = X.std(axis=0) + 1e-9
        moving = slice(0, 2 * len(HALF_LIVES))
        spread[moving] = np.maximum(spread[moving], STILL)  # what hardly moved here says nothing about where it goes
        made = replace(self, center=X.mean(axis=0), spread=spread)
        X, squares = made._standardised(X), residuals**2 + (FLOOR * self.usual) ** 2
        weights = [_likeliest(X[:, :, i], own) for i, own in enumerate(squares.T)]
        return replace(made, weights=np.stack(weights, axis=1))

    def start(self) -> Array:
        """Moving averages of squares (H, N + 1) before the first row, the network's last: as in all rows."""
        assert self.usual is not None
        return np.tile(np.append(self.usual**2, 1.0), (len(HALF_LIVES), 1))

    def memories(self, residuals: Array, memory: Array, kept: Array | None = None) -> tuple[Array, Array]:
        """Moving averages (T, H, N + 1) before every row of residuals (T, N), or those kept, and after the last one.

        Gaps move nothing.
        """
        squares = self._squares(residuals)
        gaps: Any = np.isnan(squares).any(axis=1).tolist()
        place = np.arange(len(squares)) if kept is None else np.full(len(squares), -1)
        if kept is not None:
            place[kept] = np.arange(len(kept))
        out = np.empty((place.max(initial=-1) + 1, *memory.shape))
        for t, (row, gap) in enumerate(zip(squares, gaps, strict=True)):
            if place[t] >= 0:
                out[place[t]] = memory
            memory = _moved(memory, row, gap)
        return out, memory

    def after(self, residual: Array, memory: Array) -> Array:
        """The same after one row (1, N)."""
        row = self._squares(residual)[0]
        return _moved(memory, row, bool(np.isnan(row).any()))

    def _squares(self, residuals: Array) -> Array:
        """Squares (T, N + 1) of residuals (T, N), none too large, and their mean over the network; NaN in gaps."""
        assert self.usual is not None
        out = np.empty((len(residuals), residuals.shape[1] + 1))
        own = np.minimum(residuals**2, (LARGEST * self.usual) ** 2, out=out[:, :-1])
        parts, missing = own / self.usual**2, np.isnan(own)
        if not missing.any():
            out[:, -1] = parts.sum(axis=1) / own.shape[1]
            return out
        count = np.count_nonzero(~missing, axis=1)
        out[:, -1] = np.where(missing, 0.0, parts).sum(axis=1) / np.maximum(count, 1)
        out[count == 0, -1] = np.nan
        return out

    def scales(self, memory: Array, means: Array, times: Array | None) -> Array:
        """Scales (T, N) of residuals, from the moving averages before them (T, H, N + 1) and the means (T, N)."""
        assert self.weights is not None
        X = self._standardised(self._regressors(memory, means, times))
        log_square = self.weights[0] + np.einsum("tpn,pn->tn", X, self.weights[1:])
        low, high = self._bounds
        return np.exp(0.5 * np.minimum(np.maximum(log_square, low), high))

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Logarithms of the smallest and the largest squared scales (N,)."""
        assert self.usual is not None
        return 2.0 * np.log(FLOOR * self.usual), 2.0 * np.log(LARGEST * self.usual)

    def _standardised(self, X: Array) -> Array:
        """Regressors (T, p, N), which are overwritten, in units of their spread around their center."""
        X -= self.center
        X /= self.spread
        return np.minimum(np.maximum(X, -WIDEST, out=X), WIDEST, out=X)

    def _regressors(self, memory: Array, means: Array, times: Array | None) -> Array:
        """Regressors (T, p, N)."""
        assert self.usual is not None
        clock, h = self.calendar.terms(times, len(means)), len(HALF_LIVES)
        X = np.empty((len(means), 2 * h + 2 + clock.shape[1], means.shape[1]))
        np.log(memory[:, :, :-1] + (FLOOR * self.usual) ** 2, out=X[:, :h])
        X[:, h : 2 * h] = np.log(memory[:, :, -1:] + FLOOR**2)
        X[:, 2 * h], X[:, 2 * h + 1], X[:, 2 * h + 2 :] = means, means**2, clock[:, :, None]
        return X


def _moved(memory: Array, row: Array, gaps: bool) -> Array:
    """Moving averages (H, N + 1) after one row of squares (N + 1,)."""
    return memory + WEIGHTS * ((np.where(np.isnan(row), memory, row) if gaps else row) - memory)


def _likeliest(X: Array, squares: Array) -> Array:
    """Coefficients (p + 1,) of log s^2 that make residuals with these squares likeliest, the constant first."""
    seen = ~np.isnan(squares)
    x, squares = np.hstack([np.ones((seen.sum(), 1)), X[seen]]), squares[seen]
    ridge = (RIDGE + FEW / len(x)) * np.eye(x.shape[1])
    ridge[0, 0] = 0.0
    weights = np.linalg.solve(x.T @ x / len(x) + ridge, x.T @ np.log(squares) / len(x))
    weights[0] += MEAN_LOG
    for _ in range(STEPS):
        ratio = squares / np.exp(x @ weights) / FREEDOM
        share = ratio / (1.0 + ratio)
        slope = x.T @ (0.5 - 0.5 * (FREEDOM + 1.0) * share) / len(x) + ridge @ weights
        bend = 0.5 * (FREEDOM + 1.0) * share * (1.0 - share) + 0.02  # kept away from 0
        step = np.linalg.solve((x * bend[:, None]).T @ x / len(x) + ridge, slope)
        weights = weights - step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
    return weights


def outlier_weights(standard: Array) -> Array:
    """Weights (T,) of rows of standardised residuals (T, N), as of a Student-t; 0 where nothing was read."""
    seen = ~np.isnan(standard)
    mean_square = np.where(seen, standard, 0.0) ** 2 @ np.ones(standard.shape[1]) / np.maximum(seen.sum(axis=1), 1)
    return np.where(seen.any(axis=1), 1.0 / (1.0 + mean_square / 3.0), 0.0)
