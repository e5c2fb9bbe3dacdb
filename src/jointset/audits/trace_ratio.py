"""Trace ratio: the total variance a filter predicts against the squared errors it then makes (paper, Audit 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require


class TraceRatio(NamedTuple):
    """Mean variance a sensor and step, predicted and realised, and their ratio; 1 for a well-specified filter."""

    predicted: float  # tr(S) / N, mean over the steps
    realised: float  # |y - m|^2 / N, mean over the steps
    ratio: float  # predicted / realised, as the paper prints it
    inverse: float  # realised / predicted: by how much the squared radius has to make up for the law
    sensors: Array  # (N,) predicted / realised of each sensor


def trace_ratio(mean: Array, variance: Array, values: Array) -> TraceRatio:
    """Ratio over readings (T, N) with their predicted means and variances; missing readings are left out on both sides.

    >>> rng = np.random.default_rng(0)
    >>> y = 2.0 * rng.standard_normal((4000, 3))
    >>> round(trace_ratio(np.zeros_like(y), np.ones_like(y), y).ratio, 2)
    0.25
    """
    seen = ~np.isnan(values)
    require(bool(seen.any(axis=0).all()), "a sensor has no reading at all: drop it, or give more rows")
    error = np.where(seen, values - mean, 0.0) ** 2
    predicted = np.where(seen, variance, 0.0).sum(axis=0) / seen.sum(axis=0)
    realised = error.sum(axis=0) / seen.sum(axis=0)
    total, made = float(predicted.mean()), float(realised.mean())
    with np.errstate(divide="ignore"):
        return TraceRatio(total, made, float(np.divide(total, made)), made / total, np.divide(predicted, realised))
