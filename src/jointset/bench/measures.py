"""What a benchmark keeps of a run: one row of numbers, and a few arrays over time and over sensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.predictor import Run

WINDOW = 500  # steps of the window whose coverage is the worst one


def measures(run: Run, alpha: float) -> dict[str, Any]:
    """Coverage, sizes and scores of a run, as in the columns of a row."""
    summary = run.summary()
    steps = summary.pop("steps")
    return summary | {
        "n": len(run.sensors),
        "n_test": steps,
        "winkler": winkler(run, alpha),
        "worst_window": worst_window(run.inside[~np.isnan(run.score)]),
    }


def winkler(run: Run, alpha: float) -> float:
    """Mean Winkler score of the sensors' bounds: their width, and 2 / alpha times what a reading lies outside them."""
    outside = np.maximum(run.lower - run.values, 0.0) + np.maximum(run.values - run.upper, 0.0)
    return float(np.nanmean(np.where(np.isnan(run.values), np.nan, run.upper - run.lower + 2.0 / alpha * outside)))


def worst_window(inside: Array, window: int = WINDOW) -> float:
    """Smallest share of `inside` over any `window` consecutive steps; over all steps where there are fewer.

    >>> worst_window(np.array([True, True, False, False, True]), window=2)
    0.0
    """
    if not len(inside):
        return float("nan")
    window = min(window, len(inside))
    sums = np.cumsum(np.concatenate([[0], inside.astype(int)]))
    return float((sums[window:] - sums[:-window]).min() / window)


def trace(run: Run) -> dict[str, Array]:
    """Arrays (T,) and (N,) of a run, floats in single precision.

    outside: share of a sensor's readings outside its bounds · blame: share of the joint misses in which the sensor was
    furthest from the middle of its bounds in units of their half-width.
    """
    seen = ~np.isnan(run.values)
    out = seen & ((run.values < run.lower) | (run.values > run.upper))
    arrays: dict[str, Array] = {
        "score": run.score.astype(np.float32),
        "radius": run.radius.astype(np.float32),
        "inside": run.inside.astype(bool),
        "width_full": run.width_full.astype(np.float32),
        "outside": (out.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)).astype(np.float32),
        "blame": blame(run).astype(np.float32),
        "sensors": np.array(run.sensors, dtype=str),
    }
    if run.timestamps is not None:
        arrays["timestamps"] = np.asarray(run.timestamps, dtype=np.int64)
    return arrays


def blame(run: Run) -> Array:
    """Share (N,) of the joint misses each sensor stands out in most; NaN where nothing was missed."""
    missed = ~run.inside & ~np.isnan(run.score)
    y, low, high = run.values[missed], run.lower[missed], run.upper[missed]
    n = len(run.sensors)
    if not len(y):
        return np.full(n, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.abs(y - (low + high) / 2.0) / ((high - low) / 2.0)
    furthest = np.where(np.isnan(distance), -1.0, distance).argmax(axis=1)
    return np.bincount(furthest, minlength=n) / len(y)
