"""Noise levels of the graph Kalman filter from training rows, on the modes: no law of N x N numbers is formed.

The gains depend on q / nu only. So one pass of N scalar recursions gives the innovations of a pair (rho, q / nu); their
mean square sets the level of both noises, and the likelihood of later rows is a sum over independent modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.algebra.law_tails import LOG_2PI
from jointset.algebra.recursion import first_order
from jointset.contracts import Array
from jointset.errors import require
from jointset.filters.riccati import steady_state

RHO_GRID = (0.5, 0.7, 0.85, 0.95)
NOISE_GRID = (0.03, 0.1, 0.3, 1.0)
GRID = tuple((rho, frac) for rho in RHO_GRID for frac in NOISE_GRID)


@dataclass(frozen=True)
class TrainingRows:
    """Readings (T, N), NaN = missing; the same, gaps filled, on the modes (N, T); and the way from modes to sensors."""

    values: Array
    modes: Array
    to_sensors: Callable[[Array], Array]

    def __len__(self) -> int:
        return len(self.values)


class Level(NamedTuple):
    """Noise variances q and nu, fitted to rows, of a filter with coefficients f (N,), and its innovations."""

    q: float
    nu: float
    f: Array
    innovations: Array  # (N, T), on the modes

    def nll(self, rows: slice) -> float:
        """Mean negative log-likelihood of the filled readings of these rows."""
        e = self.innovations[:, rows]
        variance = steady_state(self.f, self.q, self.nu).prior + self.nu
        distance = (np.einsum("it,it->i", e, e) / variance).sum() / e.shape[1]
        return float(0.5 * (distance + np.log(variance).sum() + len(variance) * LOG_2PI))


def training_rows(
    values: Array, to_modes: Callable[[Array], Array], to_sensors: Callable[[Array], Array]
) -> TrainingRows:
    """The rows as `noise_level` needs them."""
    return TrainingRows(values, np.ascontiguousarray(to_modes(forward_filled(values)).T), to_sensors)


def noise_level(rows: TrainingRows, f: Array, rho: float, frac: float, stop: int | None = None) -> Level:
    """Q = (1 - rho^2) v I and R = frac v I, v the mean sensor variance of the first `stop` rows.

    Both are rescaled so that the predicted innovation trace is the one realised on their readings, first fifth aside.
    """
    values = rows.values[:stop]
    variance = float(np.nanmean(np.nanvar(values, axis=0)))
    require(variance > 0, "the training rows do not vary: there is nothing to fit")
    q, nu = (1.0 - rho**2) * variance, frac * variance
    rest = steady_state(f, q, nu)
    predicted = np.zeros(rows.modes.shape)
    predicted[:, 1:] = first_order(rest.closed_loop, (f * rest.gain)[:, None] * rows.modes[:, :-1])
    innovations = np.subtract(rows.modes, predicted, out=predicted)
    settled = slice(len(values) // 5, len(values))
    scale = _mean_square(rows, innovations, settled) / float(np.mean(rest.prior + nu))
    return Level(scale * q, scale * nu, f, innovations)


def _mean_square(rows: TrainingRows, innovations: Array, which: slice) -> float:
    """Mean squared innovation over the readings there are: the modes serve complete rows, others need the sensors."""
    values, e = rows.values[which], innovations[:, which]
    missing = np.isnan(values)
    gaps = missing.any(axis=1)
    total = float(np.sum(e[:, ~gaps] ** 2)) if gaps.any() else float(np.vdot(e, e))
    if gaps.any():
        total += float(np.sum(rows.to_sensors(e[:, gaps].T)[~missing[gaps]] ** 2))
    return total / float(missing.size - missing.sum())


def forward_filled(values: Array) -> Array:
    """Last observation carried forward; the sensor's mean before its first one."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    last = np.where(missing, 0, np.arange(len(values))[:, None])
    np.maximum.accumulate(last, axis=0, out=last)
    filled = np.take_along_axis(values, last, axis=0)
    before = np.isnan(filled)
    return np.where(before, np.nanmean(values, axis=0), filled) if before.any() else filled
