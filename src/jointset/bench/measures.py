"""What a benchmark keeps of a run: one row of numbers, and a few arrays over time and over sensors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from jointset.bench.results import AHEAD, STEADY
from jointset.contracts import Array
from jointset.inputs.sensor_health import longest_run
from jointset.joint_predictor import Run

WINDOW = 500  # steps of the window whose coverage is the worst one
WINDOWS = (30, 100, 500)  # steps of the rolling windows
OFF = 0.10  # coverage of a short window is off by more than this
COINS = 200  # draws of an ideal method
HOUR, DAY = 3600, 86_400


def measures(run: Run, alpha: float) -> dict[str, Any]:
    """Coverage, sizes and scores of a run, as in the columns of a row."""
    summary = run.summary()
    steps = summary.pop("steps")
    seen = ~np.isnan(run.score)
    inside, stamps = run.inside[seen], None if run.timestamps is None else np.asarray(run.timestamps)[seen]
    return summary | {
        "n": len(run.sensors),
        "n_test": steps,
        "winkler": winkler(run, alpha),
        "joint_score": joint_score(run, alpha),
        "worst_window": worst_window(inside),
        "worst_hour": float("nan") if stamps is None else worst_hour(stamps % DAY // HOUR, inside),
        **steadiness(inside, alpha),
        **({} if run.ahead is None else measures_ahead(run)),
    }


def measures_ahead(run: Run) -> dict[str, float]:
    """Coverage and size of the one set for all steps ahead, coverage of the steps that have least and most, error."""
    *steps, whole = run.ahead.summary()
    joints = [one["joint"] for one in steps]
    return dict(zip(AHEAD, (whole["joint"], whole["log_volume"], min(joints), max(joints), whole["rmse"]), strict=True))


def winkler(run: Run, alpha: float) -> float:
    """Mean Winkler score of the sensors' bounds: their width, and 2 / alpha times what a reading lies outside them."""
    outside = np.maximum(run.lower - run.values, 0.0) + np.maximum(run.values - run.upper, 0.0)
    return float(np.nanmean(np.where(np.isnan(run.values), np.nan, run.upper - run.lower + 2.0 / alpha * outside)))


def joint_score(run: Run, alpha: float) -> float:
    """Mean interval score of the joint sets, V + (V' - V) / alpha, in the units of the readings.

    V is the size of a set, volume^(1/N), and V' that of the set of the same law, about the same centre, that just holds
    the reading (V' = V where the set does): with one sensor the interval score. For sets of a given shape the radius
    with the least expected score is the one missed with probability alpha. Infinite where one set has no end.

    >>> from types import SimpleNamespace as run
    >>> held = np.log([2.0, 3.0])
    >>> run = run(score=np.array([1.0, 1.5]), log_volume=np.log([2.0, 2.0]), log_volume_held=held)
    >>> round(joint_score(run, alpha=0.1), 6)
    7.0
    """
    if run.log_volume_held is None:
        return float("nan")
    seen = ~np.isnan(run.score)
    size, held = np.exp(run.log_volume[seen]), np.exp(run.log_volume_held[seen])
    more = np.subtract(held, size, out=np.zeros(len(size)), where=held > size)
    return float(np.mean(size + more / alpha)) if seen.any() else float("nan")


def worst_window(inside: Array, window: int = WINDOW) -> float:
    """Smallest share of `inside` over any `window` consecutive steps; over all steps where there are fewer.

    >>> worst_window(np.array([True, True, False, False, True]), window=2)
    0.0
    """
    return float(rolling(inside, window).min()) if len(inside) else float("nan")


def worst_hour(hours: Array, inside: Array) -> float:
    """Smallest share of `inside` over the rows of any one hour of the day; NaN where there are less than two hours.

    >>> worst_hour(np.array([5, 5, 6, 6]), np.array([True, False, True, True]))
    0.5
    """
    _, at = np.unique(hours, return_inverse=True)
    rows = np.bincount(at)
    return float((np.bincount(at, inside) / rows).min()) if len(rows) > 1 else float("nan")


def rolling(inside: Array, window: int) -> Array:
    """Share of `inside` over every `window` consecutive steps; over all steps where there are fewer.

    >>> rolling(np.array([True, False, False]), 2)
    array([0.5, 0. ])
    """
    window = max(min(window, len(inside)), 1)
    sums = np.cumsum(np.concatenate([[0], inside.astype(int)]))
    return (sums[window:] - sums[:-window]) / window


def steadiness(inside: Array, alpha: float) -> dict[str, float]:
    """How coverage holds over time.

    gap_W, gap_W_p90: mean and 90 % quantile of |coverage of W consecutive steps - (1 - alpha)| · off_30: share of 30
    consecutive steps whose coverage is off by more than 0.10 · longest_misses: the longest run of misses.

    >>> found = steadiness(np.array([True] * 50 + [False] * 10), 0.1)
    >>> found["longest_misses"], round(found["off_30"], 3)
    (10.0, 0.129)
    """
    if not len(inside):
        return dict.fromkeys(STEADY, float("nan"))
    gaps = {window: np.abs(rolling(inside, window) - (1.0 - alpha)) for window in WINDOWS}
    numbers = [figure for gap in gaps.values() for figure in (gap.mean(), np.quantile(gap, 0.9))]
    numbers += [(gaps[30] > OFF + 1e-9).mean(), longest_run(~inside)]
    return dict(zip(STEADY, map(float, numbers), strict=True))


@cache
def coin(steps: int, alpha: float) -> dict[str, float]:
    """The same figures of an ideal method, whose misses are independent with probability alpha: means of 200 draws.

    Its steps are spread evenly over the hours of the day.
    """
    rng = np.random.default_rng(0)
    drawn = [rng.random(steps) >= alpha for _ in range(COINS)]
    hours = np.arange(steps) % 24
    rows = [
        steadiness(inside, alpha) | {"worst_window": worst_window(inside), "worst_hour": worst_hour(hours, inside)}
        for inside in drawn
    ]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


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
