"""What laws of all kinds do with sensors and rows: subsets of sensors, rows with gaps, one sensor given the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array
from jointset.errors import require

NUMBERS = 4_000_000  # that the blocks of rows with gaps may hold


def sensor_indices(sensors: Sequence[int] | Array, n: int) -> Array:
    """Positions of a subset given as indices or as a boolean mask of length n."""
    chosen = np.asarray(sensors)
    if chosen.dtype == bool:
        require(chosen.shape == (n,), f"a sensor mask needs length {n}, got shape {chosen.shape}")
        return np.flatnonzero(chosen)
    chosen = chosen.astype(int)
    require(
        chosen.ndim == 1 and bool(np.all((chosen >= 0) & (chosen < n))),
        f"sensor indices must be a list of whole numbers from 0 to {n - 1}, got {sensors}",
    )
    return chosen


def others(sensors: Array, n: int) -> Array:
    """Positions that are not among `sensors`, ascending."""
    return np.setdiff1d(np.arange(n), sensors)


def given_others_of(y: Array, seen: Array, weights: Array, precision: Array) -> tuple[Array, Array]:
    """Mean and sd of each sensor given the others, from P e and the diagonal of P, P the precision of those seen."""
    mean, sd = np.full(len(y), np.nan), np.full(len(y), np.nan)
    mean[seen], sd[seen] = y[seen] - weights / precision, precision**-0.5
    return mean, sd


def contributions_of(e: Array, S: Covariance) -> Array:
    """Drop of the squared distance (..., N) of residuals when one sensor is left out."""
    solved, precision = S.precision_terms(e)
    return solved**2 / precision


def rows_at_once(function: Callable[[Array, Any], Array], e: Array, missing: Array, S: Covariance) -> Array:
    """A function of (residual, covariance) for rows (T, N) under one covariance: those with gaps in blocks, or each."""
    gaps = missing.any(-1)
    whole = np.asarray(function(e[~gaps], S))
    out = np.empty((len(e), *whole.shape[1:]))
    out[~gaps] = whole
    partial, size = np.flatnonzero(gaps), max(1, NUMBERS // e.shape[-1] ** 2)
    for rows in partial if S.by_row else [partial[k : k + size] for k in range(0, len(partial), size)]:
        out[rows] = function(e[rows], S.observed(missing[rows]))
    return out


def blank_where_unseen(number: Array, y: Array) -> Array:
    """NaN where a row has no reading at all."""
    unseen = np.isnan(y).all(-1)
    return np.where(unseen, np.nan, number)[()] if unseen.any() else number


def masked(e: Array, d: Array) -> tuple[Array, Array]:
    """Residuals and weights with missing entries at zero."""
    missing = np.isnan(e)
    return np.where(missing, 0.0, e), np.where(missing, 0.0, 1.0 / d)
