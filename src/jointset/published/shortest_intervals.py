"""Shortest interval between two empirical quantiles of the last w scores, at every step.

For beta in five steps of [0, alpha] the interval from the beta to the 1 - alpha + beta quantile has mass 1 - alpha;
the shortest is kept (Xu and Xie, "Conformal prediction for time series", 2021, and its successors). The authors round
both levels up to whole per cents and interpolate between order statistics (type 7).
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from jointset.contracts import Array

BINS = 5


def levels(alpha: float, rounded: bool = True) -> tuple[Array, Array]:
    """Lower and upper levels (5,) of the candidate intervals, in [0, 1].

    >>> levels(0.1)[0].tolist(), levels(0.1)[1].tolist()
    ([0.0, 0.03, 0.05, 0.08, 0.1], [0.9, 0.93, 0.95, 0.98, 1.0])
    """
    beta = np.linspace(0.0, alpha, BINS)
    low, high = beta, np.minimum(1.0 - alpha + beta, 1.0)
    if not rounded:
        return low, high
    return np.maximum(np.ceil(100 * low - 1e-9), 0.0) / 100, np.ceil(100 * high - 1e-9) / 100


def shortest(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Ends (...) of the shortest of the candidates (..., 5), the first among equals, and its number."""
    best = np.argmin(high - low, axis=-1)
    pick = best[..., None]
    return np.take_along_axis(low, pick, -1)[..., 0], np.take_along_axis(high, pick, -1)[..., 0], best


def sliding_intervals(past: Array, new: Array, alpha: float, rounded: bool = True) -> tuple[Array, Array, Array]:
    """Intervals after 0, 1, .., T of the new scores (T,), each from the last w = len(past) scores.

    Returns lower (T + 1,), upper (T + 1,) and the number of the chosen beta (T + 1,). The scores are kept sorted, so a
    step costs one insertion and one removal.
    """
    places = np.concatenate(levels(alpha, rounded)) * (len(past) - 1)
    below = np.minimum(places.astype(int), len(past) - 1)
    above = np.minimum(below + 1, len(past) - 1)
    pairs = np.empty((len(new) + 1, 2, len(places)))
    ordered, series = sorted(past.tolist()), [*past.tolist(), *new.tolist()]
    below_list, above_list = below.tolist(), above.tolist()
    for t in range(len(new) + 1):
        pairs[t, 0], pairs[t, 1] = [ordered[i] for i in below_list], [ordered[i] for i in above_list]
        if t < len(new):
            del ordered[bisect_left(ordered, series[t])]
            insort(ordered, series[t + len(past)])
    quantiles = pairs[:, 0] + (places - below) * (pairs[:, 1] - pairs[:, 0])
    return shortest(quantiles[:, :BINS], quantiles[:, BINS:])
