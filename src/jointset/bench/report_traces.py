"""The course of a method over the test block, small enough for a page: envelopes, rolling coverage, worst windows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jointset.bench.measures import rolling
from jointset.bench.results import TRACES, read_trace
from jointset.contracts import Array
from jointset.predicting.clock_coverage import clock_coverage

WINDOW = 500  # steps of the rolling coverage, where the test block has twice as many
LISTED = 12  # sensors and
WORST = 5  # windows named
EXACT = 9  # digits of numbers that are rounded again where they are shown


def stored_trace(folder: str | Path, task: str) -> dict[str, dict[str, Array]]:
    """The traces of a task as `read_trace` gives them; a damaged file is none, and a warning names it."""
    try:
        found = read_trace(folder, task)
        for method, arrays in found.items():
            lengths = {np.shape(arrays[name]) for name in ("score", "radius", "inside") if name in arrays}
            if len(lengths) > 1:
                raise ValueError(f"the arrays of {method} differ in length")
    except Exception as error:  # what a damaged archive raises depends on the place of the damage
        reason = (error.strerror if isinstance(error, OSError) else None) or "damaged"
        again = f"to have it back delete it and {task}.parquet and run the benchmark again"
        message = f"{Path(folder) / TRACES / task}.npz cannot be read ({reason}): no course over time from it; {again}"
        warnings.warn(message, stacklevel=2)
        return {}
    return found


def course(trace: Mapping[str, Array], alpha: float, bins: int) -> dict[str, Any]:
    """One trace (see `jointset.bench.results.read_trace`) as numbers for the page.

    Every curve is the smallest and largest value in each of at most `bins` stretches of equal length, so that no peak
    is lost; a curve that never moves is one number.
    """
    score, radius = np.asarray(trace["score"], float), np.asarray(trace["radius"], float)
    seen = np.flatnonzero(~np.isnan(score))  # steps without a reading count neither way
    inside = np.asarray(trace["inside"], bool)
    missed = np.zeros(len(score), int)
    missed[seen] = ~inside[seen]
    edges = stretches(len(score), bins)
    window = rolling_window(len(seen))
    share = rolling(inside[seen], window)
    over_time = np.full(len(score), math.nan)
    over_time[seen[window - 1 :]] = share
    spread = 1.96 * math.sqrt(alpha * (1.0 - alpha) / window)
    worst = [(seen[start], seen[start + window - 1] + 1, value) for start, value in worst_windows(share, window)]
    found: dict[str, Any] = {
        "steps": len(score),
        "score": envelope(score, edges),
        "radius": envelope(radius, edges),
        "missed": [int(missed[a:b].sum()) for a, b in pairwise(edges)],
        "window": window,
        "share": envelope(over_time, edges),
        "band": [digits(max(0.0, 1 - alpha - spread)), digits(min(1.0, 1 - alpha + spread))],
        "worst": [[int(start), int(stop), digits(value)] for start, stop, value in worst],
    }
    for name in ("outside", "blame"):
        found[name] = leading(trace.get(name))
    return found


def stretches(steps: int, bins: int) -> Array:
    """First step of each stretch, and the end; stretches of short blocks have four steps, those of tiny ones one."""
    bins = min(bins, max(steps // 4, min(steps, 40), 1))
    return np.arange(bins + 1) * steps // bins


def envelope(values: Array, edges: Array) -> Any:
    """Smallest and largest value of each stretch as [low, high]; one number where the curve is flat."""
    if len(values) and (values == values[0]).all():
        return digits(values[0])
    low, high = (side.reduceat(values, edges[:-1]) if len(values) else values for side in (np.fmin, np.fmax))
    return [[digits(value) for value in low], [digits(value) for value in high]]


def rolling_window(steps: int) -> int:
    """Steps of a moving window: 500, or a fifth of a short test block."""
    return WINDOW if steps >= 2 * WINDOW else max(1, steps // 5)


def worst_windows(share: Array, window: int) -> list[tuple[int, float]]:
    """First step and coverage of the worst windows that do not overlap, worst first.

    >>> worst_windows(np.array([0.9, 0.5, 0.6, 0.9, 0.7]), 2)
    [(1, 0.5), (4, 0.7)]
    """
    left = share.astype(float)
    found: list[tuple[int, float]] = []
    while len(found) < WORST and len(left) and math.isfinite(left.min()):
        start = int(left.argmin())
        found.append((start, float(share[start])))
        left[max(0, start - window + 1) : start + window] = math.inf
    return found


def by_clock(trace: Mapping[str, Array]) -> tuple[dict[str, Any], list[list[int]]] | None:
    """Misses (7, 24) by weekday and hour, what chance does not explain, and the rows there; None without a clock."""
    score, times = np.asarray(trace["score"], float), trace.get("timestamps")
    if times is None or len(times) != len(score):
        return None
    found = clock_coverage(times, np.asarray(trace["inside"], bool), ~np.isnan(score))
    if found is None:
        return None
    return {"missed": (found.rows - found.hits).tolist(), "words": found.words}, found.rows.tolist()


def leading(shares: Array | None) -> list[list[Any]] | None:
    """[index, share] of the sensors with the largest shares; None where the shares are not known."""
    if shares is None or not len(shares) or np.isnan(shares).all():
        return None
    order = np.argsort(-np.nan_to_num(np.asarray(shares, float)), kind="stable")[:LISTED]
    return [[int(i), digits(shares[i])] for i in order if shares[i] > 0]


def axis(timestamps: Array | None, steps: int, bins: int) -> list[int] | None:
    """Time stamp of the first step of each stretch, and of the last step; None where there are no time stamps."""
    if timestamps is None or len(timestamps) != steps or not steps:
        return None
    edges = stretches(steps, bins)
    return [int(timestamps[min(edge, steps - 1)]) for edge in edges]


def digits(value: Any, keep: int = 4) -> float | int | str | None:
    """The number with few digits; "inf", "-inf" and None for what JSON has no number for.

    >>> digits(0.123456), digits(2.0), digits(float("inf")), digits(float("nan"))
    (0.1235, 2, 'inf', None)
    """
    value = float(value)
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    short = float(f"{value:.{keep}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def stretches_for(traces: int) -> int:
    """How many stretches a curve gets, so that a page with many traces stays small: 80 to 260."""
    return min(260, max(80, 60_000 // max(traces, 1)))


def stamped(times: Array | None, windows: Sequence[Sequence[Any]]) -> list[list[int]] | None:
    """Time stamps of the first and last step of windows; None where there are no time stamps."""
    if times is None or not len(times):
        return None
    return [[int(times[start]), int(times[stop - 1])] for start, stop, _ in windows]
