"""A vector autoregression over all sensors: every reading from the last two rows of the whole network.

The model is of the change, y_t - y_{t-1} = A_1 y_{t-1} + A_2 y_{t-2} + c, with a ridge on A: the stronger the ridge,
the nearer the mean is to the last reading. The ridge is chosen from a grid on the last fifth of the training rows, then
all of them are fitted. With many sensors, or few rows for so many regressors, each looks at itself and its nearest
neighbours only: those on the graph, or the most correlated ones where there is none.

As a regressor a reading beyond the range of the training rows is cut to its end, and one far beyond counts as the mean
(`known_range`, `within`): what is learned of a plant at full load says nothing of one that has tripped.

With `clock` the time of day and of the week and the change at the same time of the day before are regressors too, and
with `curved` a bounded function of the last reading: what is far from the mean returns at another rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointset.backbones.calendar import DAY, NO_CALENDAR, Calendar, calendar_of
from jointset.backbones.interface import Backbone, known_range, seed_list, training_mean, within
from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.graph import BLOCK, Adjacency, dense
from jointset.panel import Panel
from jointset.storage import storable

LAGS = 2
RIDGES = tuple(10.0**power for power in range(-6, 3))  # of the mean square of a regressor, times the rows
DENSE = 300  # sensors up to which each looks at all others
NEIGHBOURS = 20
ROWS_EACH = 10  # rows a regressor with fewer of which it looks at so many only
HARMONICS = (12, 6)  # of the day and of the week
DAYS = 10  # of training that the change of the day before needs
TRIED = 50  # sensors that choose the ridge where each has regressors of its own
SEARCHED = 2000  # rows that find the most correlated sensors


@storable
@dataclass(frozen=True)
class VARBackbone(Backbone):
    """Ridge vector autoregression of order 2 on the changes of all sensors.

    Deterministic: all seeds give the same model, and a validation block is not used. A gap takes the last reading as a
    regressor, and no part as a target. One that is fitted with `clock` on rows with time stamps needs the times of the
    rows it predicts.

    >>> from jointset import generate_grssf
    >>> VARBackbone().fit(generate_grssf("A", n=10, length=500).panel).weights.shape
    (20, 10)
    """

    ridge: float | None = None  # None: chosen on training rows
    clock: bool = False
    curved: bool = False
    weights: Array | None = None  # (p, N), set by fit, as are all that follow
    constant: Array | None = None
    mean: Array | None = None
    spread: Array | None = None  # sd (N,), where curved
    near: Array | None = None  # sensors each sensor looks at (N, k), itself first; None: all
    calendar: Calendar = NO_CALENDAR
    day: int = 0  # rows of a day, where the change of the day before is a regressor
    known: Array | None = None  # range (3, N) beyond which regressors say nothing; None in models of older versions

    @property
    def lags(self) -> int:
        """Two, or a day and one row more."""
        return max(LAGS, self.day + 1 if self.day else 0)

    @property
    def follows_clock(self) -> bool:
        """Whether a mean depends on the time of the reading."""
        return bool(self.calendar)

    def fit_seeds(self, panel: Panel, seeds: int | Sequence[int], validation: Panel | None = None) -> list[VARBackbone]:
        """The one fitted model, for every seed."""
        return [self.fit_weighted(panel)] * len(seed_list(seeds))

    def fit_weighted(self, panel: Panel, weights: Array | None = None) -> VARBackbone:
        """A fitted copy; rows count by their weights (T,), all alike where there are none."""
        mean = training_mean(panel)
        require(len(panel) > 5 * LAGS, f"a vector autoregression needs more than {5 * LAGS} rows, got {len(panel)}")
        made = replace(self, mean=mean, known=known_range(panel.values))
        if self.curved:
            made = replace(made, spread=np.maximum(np.nanstd(panel.values, axis=0), np.finfo(float).tiny))
        if self.clock:
            made = replace(made, calendar=calendar_of(panel, *HARMONICS), day=_rows_of_a_day(panel))
        made = replace(made, near=neighbours(panel, LAGS + self.curved + (made.day > 0)))
        rows = made.fill(panel.values)[made.lags :]
        times = None if panel.timestamps is None else panel.timestamps[made.lags :]
        X = made._regressors(rows[:-1], times)
        change = rows[made.lags :] - rows[made.lags - 1 : -1]
        change = np.where(panel.mask[made.lags :], change, np.nan)
        w = np.ones(len(X)) if weights is None else weights[made.lags :]
        columns = made._columns
        ridge = _best_ridge(X, change, columns, w) if self.ridge is None else self.ridge
        coefficients, offset = _regressions(X, change, columns, w, (ridge,))[0]
        return replace(made, weights=coefficients, constant=offset)

    def _regressors(self, filled: Array, times: Array | None) -> Array:
        """Regressors (T, p) of the row after every `lags` consecutive complete rows; times (T,) of those rows."""
        assert self.mean is not None
        newest, rows_out, mean = self.lags - 1, len(filled) - self.lags + 1, self.mean
        filled = within(filled, self.known)

        def ago(age: int) -> Array:
            return filled[newest - age : newest - age + rows_out] - mean

        last = ago(0)
        parts = [last, ago(1)]
        if self.spread is not None:
            parts.append(np.tanh(last / self.spread))
        if self.day:
            parts.append(ago(self.day - 1) - ago(self.day))
        return np.concatenate([*parts, self.calendar.terms(times, rows_out)], axis=1)

    @cached_property
    def _columns(self) -> Array | None:
        """Columns of the regressors that each sensor looks at (N, q); None where it looks at all of them."""
        if self.near is None:
            return None
        n, blocks = len(self.near), LAGS + (self.spread is not None) + bool(self.day)
        own = np.arange(n)[:, None]
        parts = [self.near, self.near + n, *(own + block * n for block in range(LAGS, blocks))]
        shared = blocks * n + np.arange(2 * (self.calendar.day + self.calendar.week))
        return np.hstack([*parts, np.broadcast_to(shared, (n, len(shared)))])

    def predict(self, values: Array, history: Array | None = None, times: Array | None = None) -> Array:
        """Means (T, N) of the rows of values (T, N), each from the rows before it; `history` precedes the first."""
        filled = self.fill(values, history)
        return self._expected(filled[:-1], times) if len(filled) > self.lags else filled[:0]

    def after(self, history: Array, row: Array) -> Array:
        """The history (lags, N) after one more row (N,), gaps filled: the last rows of `fill`."""
        out = np.empty(history.shape)
        out[:-1] = history[1:]
        out[-1] = np.where(np.isnan(row), history[-1], row)
        return out

    def predict_next(self, history: Array, times: Array | None) -> Array:
        """Mean (1, N) of the row after a complete history (lags, N), at times (1,)."""
        return self._expected(history, times)

    def _means(self, filled: Array) -> Array:
        return self._expected(filled, None)

    def _expected(self, filled: Array, times: Array | None) -> Array:
        if self.follows_clock and times is None:
            raise InputError("this mean was fitted with the clock: give the times of the rows")
        assert self.weights is not None and self.constant is not None
        X, last = self._regressors(filled, times), filled[self.lags - 1 :]
        columns = self._columns
        if columns is None:
            return last + X @ self.weights + self.constant
        change = np.stack([np.einsum("nq,qn->n", x[columns], self.weights) for x in X])
        return last + change + self.constant


def _rows_of_a_day(panel: Panel) -> int:
    """Rows of a day; 0 where they are too few, too many for the panel, or not all there."""
    cadence = panel.cadence
    if not cadence or DAY % cadence or not panel.is_regular:
        return 0
    rows = DAY // cadence
    return rows if rows >= 4 and len(panel) >= DAYS * rows else 0


def neighbours(panel: Panel, regressors: int = 0) -> Array | None:
    """Sensors each sensor looks at (N, k), itself first; None where it looks at all, with so many regressors each."""
    n = panel.n_sensors
    if n <= DENSE and (n <= NEIGHBOURS or len(panel) >= ROWS_EACH * regressors * n):
        return None
    rows = _correlations(panel) if panel.adjacency is None else _rows(panel.adjacency)
    return np.stack([_nearest(i, row) for i, row in enumerate(rows)])


def _nearest(own: int, closeness: Array) -> Array:
    """The sensors (k,) nearest to one, itself first; where it is close to fewer, the first of the others."""
    close = np.flatnonzero(closeness)
    close = close[close != own]
    near = np.concatenate([[own], close[np.argsort(-closeness[close], kind="stable")]])[:NEIGHBOURS]
    others = np.setdiff1d(np.arange(min(NEIGHBOURS, len(closeness))), near) if len(near) < NEIGHBOURS else close[:0]
    return np.concatenate([near, others])[:NEIGHBOURS]


def _rows(adjacency: Adjacency) -> Iterator[Array]:
    """Its rows, one after the other."""
    n = adjacency.shape[0]
    for first in range(0, n, BLOCK):
        yield from dense(adjacency[first : first + BLOCK])


def _correlations(panel: Panel) -> Iterator[Array]:
    """Rows of the absolute correlations (N, N) of the changes of the last rows; a gap is no change."""
    change = np.nan_to_num(np.diff(panel.values[-SEARCHED:], axis=0))
    change /= np.maximum(np.sqrt((change**2).mean(axis=0)), np.finfo(float).tiny)
    for first in range(0, change.shape[1], BLOCK):
        yield from np.abs(change[:, first : first + BLOCK].T @ change)


def _best_ridge(X: Array, change: Array, columns: Array | None, w: Array) -> float:
    """The ridge of the grid with the smallest squared error on the last fifth of the rows."""
    cut = len(X) - max(len(X) // 5, 1)
    if columns is not None:
        some = np.arange(0, change.shape[1], max(1, change.shape[1] // TRIED))
        columns, change = columns[some], change[:, some]

    def error(weights: Array, offset: Array) -> float:
        if columns is None:
            found = X[cut:] @ weights
        else:
            found = np.stack([X[cut:][:, own] @ weights[:, i] for i, own in enumerate(columns)], axis=1)
        return float(np.nanmean(w[cut:, None] * (change[cut:] - found - offset) ** 2))

    fitted = _regressions(X[:cut], change[:cut], columns, w[:cut], RIDGES)
    return RIDGES[int(np.argmin([error(*one) for one in fitted]))]


def _regressions(
    X: Array, change: Array, columns: Array | None, w: Array, ridges: Sequence[float]
) -> list[tuple[Array, Array]]:
    """For every ridge weights (p, N) and constants (N,) of all sensors, each from the rows that have it."""
    n, width = change.shape[1], X.shape[1] if columns is None else columns.shape[1]
    out = [(np.zeros((width, n)), np.zeros(n)) for _ in ridges]
    gaps = np.isnan(change).any(axis=0)
    sensors = [np.array([i]) for i in (np.flatnonzero(gaps) if columns is None else range(n))]
    if columns is None and not gaps.all():
        sensors.append(np.flatnonzero(~gaps))
    for some in sensors:
        own = X if columns is None else X[:, columns[some[0]]]
        seen = ~np.isnan(change[:, some[0]])
        found = ridge_regressions(own[seen], change[np.ix_(seen, some)], w[seen], ridges)
        for (weights, offset), one in zip(out, found, strict=True):
            weights[:, some], offset[some] = one
    return out


def ridge_regressions(X: Array, Y: Array, w: Array, ridges: Sequence[float]) -> Iterator[tuple[Array, Array]]:
    """Ridge regressions (p, k) with a constant (k,) that is not shrunk; a ridge is in units of each regressor."""
    share, root = w / w.sum(), np.sqrt(w)[:, None]
    center, target = share @ X, share @ Y
    X = (X - center) * root
    gram = X.T @ X
    unit = np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    related, cross = gram / np.outer(unit, unit), X.T @ ((Y - target) * root) / unit[:, None]
    for ridge in ridges:
        weights = np.linalg.solve(related + ridge * np.eye(len(related)), cross) / unit[:, None]
        yield weights, target - center @ weights
