"""Trace ratio: the total variance a filter predicts against the squared errors it then makes (paper, Audit 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.audits.records import Record, kept_sensors, left_out_words
from jointset.audits.subject import Subject
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


def trace_ratio_words(ratio: float) -> str:
    """Whether the law is too wide or too narrow as a whole.

    >>> trace_ratio_words(0.5)
    'errors are 2.00 times the variance the filter predicts: its law is too narrow, the radius makes up for it'
    """
    if 0.9 <= ratio <= 1.1:
        return f"the filter predicts its own errors well: predicted over realised variance {ratio:.2f}"
    if ratio < 1:
        words = "its law is too narrow, the radius makes up for it"
        return f"errors are {1 / ratio:.2f} times the variance the filter predicts: {words}"
    return (
        f"the filter predicts {ratio:.2f} times the variance it then sees: its law is too wide, the radius shrinks it"
    )


def trace_ratio_record(subject: Subject) -> Record:
    """Predicted against realised innovation variance, on the calibration rows where there are some."""
    rows = slice(subject.calibrating and subject.predictor.warmup - 1, subject.calibrating or None)
    emitted = subject.emitted
    kept, left_out = kept_sensors(subject, rows, 1)
    found = trace_ratio(*(array[rows][:, kept] for array in (emitted.mean, emitted.variance, subject.values)))
    low, high = np.percentile(found.sensors, [5, 95])
    return {
        "value": found.ratio,
        "predicted": found.predicted,
        "realised": found.realised,
        "ratio": found.ratio,
        "realised_over_predicted": found.inverse,
        "sensors_p5": float(low),
        "sensors_p95": float(high),
        "left_out": left_out,
        "verdict": trace_ratio_words(found.ratio) + left_out_words(left_out),
    }
