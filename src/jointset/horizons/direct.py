"""The law of the next H rows for a filter that has none of its own, learned from past windows.

The mean of every step is a ridge regression on the filter's mean of the next row, the last two rows and the calendar.
The scale of its error follows the filter's own variance of the next row, the less the further ahead. What the errors
have in common, over sensors and over steps, is a covariance over the steps for each principal direction of the
next-step errors (`jointset.algebra.window_laws`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jointset.algebra.window_laws import WindowLaw, step_roots
from jointset.backbones.calendar import Calendar, calendar_of
from jointset.backbones.interface import known_range, within
from jointset.backbones.var import neighbours, ridge_regressions
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.storage import storable

RIDGES = tuple(10.0**power for power in range(-4, 3))  # of the mean square of a regressor, times the rows
HARMONICS = (12, 6)  # of the day and of the week
LEARNED = 0.7  # of the windows give the regressions that are judged, and the errors, on the others
FEWEST = 60  # windows, or so many times the steps:
TIMES = 5
NUMBERS = 20_000_000  # that the targets of all windows may hold
REACH = 6.0  # a log variance counts as at most so far from the usual one
STEEPEST = 1.2  # slope of a log squared error on the log variance
SMALL = 1e-4  # of a mean square, added to a square before its logarithm
LEAST = 1e-3  # share of every mode that is its own at every step


class Seen(NamedTuple):
    """Rows of a panel (T, N) with the filter's means and variances of each before it was read; None: it has none."""

    panel: Panel
    means: Array
    variances: Array | None

    @property
    def filled(self) -> Array:
        """The readings, the mean where there is none."""
        return fill_from(self.panel.values, self.means)


def fill_from(values: Array, means: Array) -> Array:
    """Readings with the filter's mean in the gaps."""
    return np.where(np.isnan(values), means, values)


@storable
@dataclass(frozen=True)
class DirectLaw:
    """What was learned of the next H rows.

    weights (p, H N), of the sensors in `near` (N, k) alone where there are very many · constant, level (H, N), the
    second the scale of the errors where the variance is as usual · slope (H,) of the log squared scale on the log
    variance, usual (N,) · basis (N, N) and roots (N, H, H) as in `WindowLaw`.
    """

    calendar: Calendar
    weights: Array
    constant: Array
    level: Array
    slope: Array
    usual: Array
    basis: Array
    roots: Array
    near: Array | None = None
    known: Array | None = None  # range (3, p) beyond which regressors say nothing; None in older models

    def law(self, means: Array, variances: Array | None, before: Array, times: Array | None) -> WindowLaw:
        """Laws of windows that begin with rows of these means (T, N); before (T, 2, N): the last two, last first."""
        H, n = self.level.shape
        X = within(regressors(means, before, self.calendar, times), self.known)
        if self.near is None:
            change = (X @ self.weights).reshape(-1, H, n)
        else:
            own = X[:, columns_near(self.near, X.shape[1])]
            change = np.einsum("tnq,qhn->thn", own, self.weights.reshape(-1, H, n))
        shift = self.slope[:, None] * _unusual(variances, self.usual)[:, None, :] if variances is not None else 0.0
        center = means[:, None, :] + change + self.constant
        return self._shape.around(center, self.level * np.exp(0.5 * shift) * np.ones(center.shape))

    @cached_property
    def _shape(self) -> WindowLaw:
        return WindowLaw(self.constant, self.level, self.basis, self.roots)


def regressors(means: Array, before: Array, calendar: Calendar, times: Array | None) -> Array:
    """Regressors (T, p) of windows."""
    return np.hstack([means, before[:, 0], before[:, 1], calendar.terms(times, len(means))])


def columns_near(near: Array, width: int) -> Array:
    """Columns of the regressors that each sensor looks at (N, q): three of every near one, and the calendar."""
    n = len(near)
    shared = np.broadcast_to(np.arange(3 * n, width), (n, width - 3 * n))
    return np.hstack([near, near + n, near + 2 * n, shared])


def learn_direct(seen: Seen, steps: int, skip: int) -> DirectLaw:
    """The law of the next rows from all windows in some rows, the first `skip` left out."""
    rows, n = seen.means.shape
    starts = np.arange(max(skip, 2), rows - steps + 1)
    starts = starts[:: max(1, -(-len(starts) * steps * n // NUMBERS))]
    needed = max(FEWEST, TIMES * steps)
    require(
        len(starts) >= needed,
        f"a horizon of {steps} steps is learned from windows of training rows: {len(starts)} are too few, "
        f"{needed} are needed; give more rows or a shorter horizon",
    )
    calendar, near = calendar_of(seen.panel, *HARMONICS), neighbours(seen.panel)
    filled, stamps = seen.filled, seen.panel.timestamps
    before = np.stack([filled[starts - 1], filled[starts - 2]], axis=1)
    X = regressors(seen.means[starts], before, calendar, None if stamps is None else stamps[starts])
    places = starts[:, None] + np.arange(steps)
    targets = (filled[places] - seen.means[starts][:, None]).reshape(len(starts), -1)
    columns = None if near is None else columns_near(near, X.shape[1])
    cut = int(LEARNED * len(starts))
    ridge, errors = _judged(X, targets, columns, cut, max(1, cut - steps))
    weights, constant = next(_regressions(X, targets, columns, (ridge,)))
    errors = errors.reshape(-1, steps, n)
    read = np.isfinite(seen.panel.values[places[cut:]])
    variances = None if seen.variances is None else seen.variances[starts[cut:]]
    slope, usual = _slopes(np.where(read, errors, np.nan), variances)
    moved = 0.0 if variances is None else slope[:, None] * _unusual(variances, usual)[:, None, :]
    units = errors * np.exp(-0.5 * moved)
    level = _root_mean_squares(np.where(read, units, np.nan))
    basis, covariances = _modes(units / level, len(errors) / steps)
    parts = level, slope, usual, basis, step_roots(covariances)
    return DirectLaw(calendar, weights, constant.reshape(steps, n), *parts, near, known_range(X))


def _regressions(X: Array, Y: Array, columns: Array | None, ridges: tuple[float, ...]) -> Iterator[tuple[Array, Array]]:
    """For every ridge weights and constants of all targets (T, H N), of all columns or of those of each sensor."""
    w = np.ones(len(X))
    if columns is None:
        yield from ridge_regressions(X, Y, w, ridges)
        return
    n = len(columns)
    each = [list(ridge_regressions(X[:, own], Y[:, i::n], w, ridges)) for i, own in enumerate(columns)]
    for k in range(len(ridges)):
        weights = np.stack([one[k][0] for one in each], axis=-1)  # (q, H, N)
        yield weights.reshape(len(weights), -1), np.stack([one[k][1] for one in each], axis=-1).reshape(-1)


def _judged(X: Array, Y: Array, columns: Array | None, cut: int, stop: int) -> tuple[float, Array]:
    """The ridge with the smallest error, target by target in units of its spread, on windows from `cut` on; errors."""
    unit = np.maximum(Y.std(axis=0), np.finfo(float).tiny)
    best: tuple[float, float, Array] = (np.inf, RIDGES[-1], Y[cut:])
    for ridge, (weights, constant) in zip(RIDGES, _regressions(X[:stop], Y[:stop], columns, RIDGES), strict=True):
        errors = Y[cut:] - _applied(X[cut:], weights, columns) - constant
        size = float(np.mean((errors / unit) ** 2))
        if size < best[0]:
            best = size, ridge, errors
    return best[1], best[2]


def _applied(X: Array, weights: Array, columns: Array | None) -> Array:
    if columns is None:
        return X @ weights
    n = len(columns)
    out = np.empty((len(X), weights.shape[1]))
    for i, own in enumerate(columns):
        out[:, i::n] = X[:, own] @ weights[:, i::n]
    return out


def _unusual(variances: Array, usual: Array) -> Array:
    """Log variances less the usual ones."""
    return np.clip(np.log(np.maximum(variances, np.finfo(float).tiny)) - usual, -REACH, REACH)


def _slopes(errors: Array, variances: Array | None) -> tuple[Array, Array]:
    """Slope (H,) of log squared errors (W, H, N) on log variances (W, N), one for all sensors; the usual log (N,)."""
    if variances is None:
        return np.zeros(errors.shape[1]), np.zeros(errors.shape[2])
    usual = np.log(np.maximum(variances, np.finfo(float).tiny)).mean(axis=0)
    x = _unusual(variances, usual)
    x = x - x.mean(axis=0)
    squares = errors**2
    logs = np.log(squares + SMALL * np.nanmean(squares, axis=0) + np.finfo(float).tiny)
    logs = np.nan_to_num(logs - np.nanmean(logs, axis=0))
    total = float((x**2).sum())
    moving = total > 1e-6 * x.size  # a variance that stands still says nothing
    slope = np.einsum("tn,thn->h", x, logs) / total if moving else np.zeros(errors.shape[1])
    return np.clip(slope, 0.0, STEEPEST), usual


def _root_mean_squares(errors: Array) -> Array:
    """Of every step and sensor (H, N), positive; where a sensor was never read, as of the others."""
    counts = np.isfinite(errors).sum(axis=0)
    mean = np.nansum(errors**2, axis=0) / np.maximum(counts, 1)
    usual = float(np.median(mean[counts > 0])) if (counts > 0).any() else 1.0
    mean = np.where(counts > 0, mean, usual)
    return np.sqrt(np.maximum(mean, max(1e-12 * float(mean.max()), np.finfo(float).tiny)))


def _modes(z: Array, independent: float) -> tuple[Array, Array]:
    """Principal directions (N, N) of the first step, and the covariance over the steps (N, H, H) of each.

    Variances are drawn to their mean by N of N + W windows, as those of few windows differ by chance. Correlations over
    the steps are drawn to those of all directions together, the more the fewer windows there are that do not overlap.
    The variance of a reading in units of its level is 1 on average at every step.
    """
    count, steps, n = z.shape
    basis = np.linalg.eigh(z[:, 0].T @ z[:, 0])[1]
    on_modes = z @ basis
    K = np.einsum("thi,tki->ihk", on_modes, on_modes, optimize=True) / len(z)
    sd = np.sqrt(np.maximum(np.einsum("ihh->ih", K), 1e-10))
    R = K / (sd[:, :, None] * sd[:, None, :])
    np.einsum("ihh->ih", R)[:] = 1.0  # also of a direction that no window has
    drawn = steps / (steps + independent)
    R = (1.0 - LEAST) * ((1.0 - drawn) * R + drawn * R.mean(axis=0)) + LEAST * np.eye(steps)
    shares = sd**2 / (sd**2).mean(axis=0)
    sd = np.sqrt((count * shares + n) / (count + n))
    return basis, R * (sd[:, :, None] * sd[:, None, :])
