"""The band of one sensor by itself: mean ± c_i sd_i of the law, c_i the conformal quantile of its own residuals.

The projection of a joint set on one sensor is far wider than a band that holds the readings of that sensor alone: the
set must hold all others with it. A reading well inside the projection can be unusual for its sensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jointset.abilities import Spread
from jointset.calibration.quantiles import rank, score_quantile
from jointset.contracts import Array, Forecast
from jointset.score_abilities import Leaning, OfOneLaw


def studentised(law: Forecast, y: Array) -> Array | None:
    """Residual / sd of every sensor (..., N), NaN where missing; None where a law has no variances."""
    return (y - law.mean) / np.sqrt(law.variance) if isinstance(law, Spread) else None


def own_quantiles(ratios: Array, alpha: float) -> Array:
    """c_i (N,) from the ratios (m, N) of calibration rows, NaN = missing; infinite where a sensor has too few.

    >>> own_quantiles(np.array([[1.0], [-2.0], [3.0], [np.nan], [4.0]]), 0.4)
    array([3.])
    """
    ratios = np.abs(ratios)
    m, k = len(ratios), rank(len(ratios), alpha)
    if k <= m and not np.isnan(ratios).any():
        return np.partition(ratios, k - 1, axis=0)[k - 1]
    return np.array([score_quantile(np.sort(column[~np.isnan(column)]), alpha) for column in ratios.T])


def own_ends(law: Forecast, quantiles: Array | None) -> tuple[Array, Array] | None:
    """Ends of the bands mean ± c_i sd_i (N,); None where there are no c_i."""
    if quantiles is None or not isinstance(law, Spread):
        return None
    reach = quantiles * np.sqrt(law.variance)
    return law.mean - reach, law.mean + reach


def own_rule(score: object, quantiles: Array | None) -> dict[str, Any] | None:
    """How the band of a sensor alone follows from that of a set: its half-width times c_i / radius^power.

    None where there are no c_i, or a set whose half-widths are no multiple of the law's standard deviations.
    """
    leans = isinstance(score, Leaning) and score.lean is not None
    if not isinstance(score, OfOneLaw) or quantiles is None or leans:
        return None
    return {
        "quantiles": [float(f"{c:.6g}") if np.isfinite(c) else None for c in quantiles.tolist()],
        "power": score.power,
    }
