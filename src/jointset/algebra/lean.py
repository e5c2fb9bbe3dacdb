"""Boxes that lean: where a sensor stands near one end of its range, its next reading can go far in one direction only.

A box leans by a_i on sensor i when it reaches radius sd_i exp(-a_i) below the mean and radius sd_i exp(a_i) above it;
a_i follows the level of the mean, by one line for all sensors through a low, a middle and a high level of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from jointset.contracts import Array
from jointset.storage import storable

LEVELS = (0.01, 0.5, 0.99)  # shares of the means of a sensor below its three levels
SHARES = (0.9, 0.95)  # of rows that the boxes hold which are compared
STEPS = (0.2, 0.1)  # of a search, one after the other
GAIN = 0.005  # share of the width that a step must bring
MOST = 1.5  # the largest |a|: one end 20 times as far as the other
FEWEST = 200  # rows to search on


@storable
@dataclass(frozen=True)
class Lean:
    """How far boxes lean: `amounts` (3,) at the `levels` (3, N) of every sensor, linear between and constant beyond.

    >>> Lean(np.array([[0.0], [1.0], [2.0]]), np.array([0.4, 0.0, -0.4])).of(np.array([[-1.0], [0.5], [1.5]]))[:, 0]
    array([ 0.4,  0.2, -0.2])
    """

    levels: Array
    amounts: Array

    def of(self, mean: Array) -> Array:
        """a (..., N) where the mean of the law is this; 0 for a sensor whose levels are not known."""
        low, middle, high = self.levels
        at_low, at_middle, at_high = self.amounts
        below = np.clip((middle - mean) / (middle - low), 0.0, 1.0)
        above = np.clip((mean - middle) / (high - middle), 0.0, 1.0)
        return np.nan_to_num(at_middle + (at_low - at_middle) * below + (at_high - at_middle) * above)

    def chosen(self, origin: Array) -> Lean:
        """That of sensors at these places (M,), -1 for a new one."""
        return Lean(np.where(origin < 0, np.nan, self.levels[:, origin]), self.amounts)


def one_sided(ratio: Array, lean: Array) -> Array:
    """The radius at which a box that leans reaches residuals over sd (..., N), each on its side."""
    return np.abs(ratio) * np.exp(-np.sign(ratio) * lean)


def found_lean(y: Array, mean: Array, sd: Array) -> Lean | None:
    """The lean with the narrowest boxes around readings (T, N), NaN = missing; None where it is best to stand upright.

    Widths are compared in units of each sensor's own spread, at the radii that hold the shares of rows `SHARES`.
    """
    rows = ~np.isnan(y).all(axis=1)
    y, mean, sd = y[rows], mean[rows], sd[rows]
    if len(y) < FEWEST:
        return None
    spread, usual = _spread(y), np.sqrt((sd**2).mean(axis=0))
    unit = np.where(spread > 1e-6 * usual, spread, usual)  # a sensor may have stood still, or been out
    low, middle, high = np.quantile(mean, LEVELS, axis=0)
    least = np.maximum(1e-6 * unit, 1e-9 * np.abs(middle))  # levels may coincide, as at night of solar power
    levels = np.stack([np.minimum(low, middle - least), middle, np.maximum(high, middle + least)])
    ratio = np.where(np.isnan(y), 0.0, (y - mean) / sd)
    each = np.stack([Lean(levels, amounts).of(mean) for amounts in np.eye(3)])  # of a unit at every level
    amounts = _searched(partial(_log_width, ratio, sd / unit, each))
    return Lean(levels, amounts) if amounts.any() else None


def _spread(y: Array) -> Array:
    """Standard deviations (N,) of readings (T, N), NaN = missing; 0 where there is none."""
    seen = ~np.isnan(y)
    count = np.maximum(seen.sum(axis=0), 1)
    centre = np.where(seen, y, 0.0).sum(axis=0) / count
    return np.sqrt(np.where(seen, (y - centre) ** 2, 0.0).sum(axis=0) / count)


def _log_width(ratio: Array, size: Array, each: Array, amounts: Array) -> float:
    """Mean log of the width of the boxes, up to a constant."""
    lean = np.tensordot(amounts, each, 1)
    radii = np.quantile(one_sided(ratio, lean).max(axis=1), SHARES)
    return float(np.log(radii).mean() + np.log((size * np.cosh(lean)).mean()))


def _searched(cost: partial[float]) -> Array:
    """Amounts (3,) by steps of one of them, or of all, as long as one brings `GAIN`."""
    amounts, least = np.zeros(3), cost(np.zeros(3))
    moves = np.concatenate([np.eye(3), np.ones((1, 3))])
    for step in STEPS:
        while True:
            tried = [np.clip(amounts + sign * step * move, -MOST, MOST) for move in moves for sign in (-1.0, 1.0)]
            costs = [cost(one) for one in tried]
            if min(costs) > least - GAIN:
                break
            least, amounts = min(costs), tried[int(np.argmin(costs))]
    return np.round(amounts, 6)
