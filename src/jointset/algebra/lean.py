"""Boxes no larger than they need be: they lean, and they stop where readings never go.

Where a sensor stands near one end of its range, its next reading can go far in one direction only. A box leans by a_i
on sensor i when it reaches radius sd_i exp(-a_i) below the mean and radius sd_i exp(a_i) above it; a_i follows the
level of the mean, by one line for all sensors through a low, a middle and a high level of each.

Where readings pile up at an end of the range (a dry river, solar power at night, a speed limit), none lies beyond it.
There a box reaches a `PRESS`th as far: a reading beyond counts as that much further out, though by no more than `most`
radii, so that an end which no longer holds costs width and not coverage. It is soon left: readings beyond draw an end
towards them, for the rows that follow, and where the mean itself is expected beyond it by more than `GONE` of the law's
own sd, there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jointset.contracts import Array, Index
from jointset.storage import storable

LEVELS = (0.01, 0.5, 0.99)  # shares of the means of a sensor below its three levels
SHARES = (0.9, 0.95)  # of rows that the boxes hold which are compared
STEPS = (0.2, 0.1)  # of a search, one after the other
GAIN = 0.005  # share of the width that a step must bring
MOST = 1.5  # the largest |a|: one end 20 times as far as the other
FEWEST = 200  # rows to search on, and readings of a sensor whose ends are looked for
PRESS = 30.0  # how many times further out a reading beyond an end counts
GONE = 0.5  # of the law's sd that the mean may lie beyond an end
RADII = 2.0  # of those that hold the larger of `SHARES`: what a reading beyond an end counts for at most
FAR = 1e300  # of an end that is not there
PILE = 0.02  # share of the readings at an end, within this share of the range, half of it in every part of the rows
STRIDE = 0.05  # of the range that one reading beyond draws an end at most, so that a glitch does not
PARTS, RARE = 6, 0.0005  # parts of the rows, and the share of readings that an end may leave out


@storable
@dataclass(frozen=True)
class Lean:
    """How far boxes lean, and where they stop.

    Parameters
    ----------
    levels, amounts
        `amounts` (3,) at the `levels` (3, N) of every sensor, linear between and constant beyond.
    ends
        Lowest and highest reading (2, N) of every sensor, infinite where it has no end; None: none has.
    most
        Radii that a reading beyond an end counts for at most.
    drawn
        Where readings since training have drawn the ends to (2, N), or those before each of many rows (T, 2, N); None:
        nowhere.
    stride
        How far one reading beyond draws an end of every sensor at most (N,), or `STRIDE` of how far it was drawn
        before where that is more; known where ends are.

    >>> Lean(np.array([[0.0], [1.0], [2.0]]), np.array([0.4, 0.0, -0.4])).of(np.array([[-1.0], [0.5], [1.5]]))[:, 0]
    array([ 0.4,  0.2, -0.2])
    """

    levels: Array
    amounts: Array
    ends: Array | None = None
    most: float = 0.0
    drawn: Array | None = None
    stride: Array | None = None

    def of(self, mean: Array) -> Array:
        """a (..., N) where the mean of the law is this; 0 for a sensor whose levels are not known."""
        low, middle, high = self.levels
        at_low, at_middle, at_high = self.amounts
        below = np.clip((middle - mean) / (middle - low), 0.0, 1.0)
        above = np.clip((mean - middle) / (high - middle), 0.0, 1.0)
        return np.nan_to_num(at_middle + (at_low - at_middle) * below + (at_high - at_middle) * above)

    def radius_of(self, y: Array, mean: Array, sd: Array) -> Array:
        """The radius (..., N) at which the box around a mean reaches each reading; NaN where missing."""
        ratio, factor = (y - mean) / sd, np.exp(self.of(mean))
        up = ratio > 0
        radius = np.where(up, ratio / factor, -ratio * factor)
        if self.ends is None:
            return radius
        below, above = self._rooms(mean, sd, factor)
        beyond = np.maximum(radius - np.where(up, above, below), 0.0)
        return radius + np.minimum((PRESS - 1.0) * beyond, self.most)

    def reaches(self, radius: Array, mean: Array, sd: Array) -> tuple[Array, Array]:
        """How far below and above the mean the box of a radius (..., 1) reaches, each (..., N)."""
        factor = np.exp(self.of(mean))
        if self.ends is None:
            return radius * sd / factor, radius * sd * factor
        below, above = (self._within(radius, room) for room in self._rooms(mean, sd, factor))
        return below * sd / factor, above * sd * factor

    def _rooms(self, mean: Array, sd: Array, factor: Array) -> tuple[Array, Array]:
        """Radii at which the box reaches the lower and the upper end of the range, each (..., N)."""
        ends = self._present
        lowest, highest = ends[..., 0, :], ends[..., 1, :]
        below, above = (mean - lowest) / sd, (highest - mean) / sd
        rooms = ((below, below * factor), (above, above / factor))
        low, high = (np.where(to_end < -GONE, FAR, np.clip(room, 0.0, FAR)) for to_end, room in rooms)
        return low, high

    def _within(self, radius: Array, room: Array) -> Array:
        """Radii (..., N) that a box reaches which has an end after so many: the inverse of what `radius_of` adds."""
        beyond = radius - room
        return np.minimum(radius, room) + np.maximum(np.maximum(beyond / PRESS, beyond - self.most), 0.0)

    @property
    def _present(self) -> Array:
        """Ends as they are by now, (2, N) or (T, 2, N)."""
        ends = self.ends if self.drawn is None else self.drawn
        assert ends is not None
        return ends

    def followed(self, values: Array) -> tuple[Lean, Lean]:
        """That before each of the rows (T, N), NaN = missing, and that after the last."""
        if self.ends is None:
            return self, self
        ends = self._present
        past = (values < ends[0], values > ends[1])
        if not past[0].any() and not past[1].any():
            return self, self
        assert self.stride is not None
        course = np.tile(ends, (len(values) + 1, 1, 1))
        for side, sign in ((0, -1.0), (1, 1.0)):
            for i in np.flatnonzero(past[side].any(axis=0)):
                first, end = sign * self.ends[side, i], sign * ends[side, i]
                reached, rows = [], np.flatnonzero(past[side][:, i])
                for value in (sign * values[rows, i]).tolist():
                    end = max(end, min(value, end + max(self.stride[i], STRIDE * (end - first))))
                    reached.append(end)
                course[rows + 1, side, i] = sign * np.array(reached)
                course[:, side, i] = sign * np.maximum.accumulate(sign * course[:, side, i])
        return replace(self, drawn=course[:-1]), replace(self, drawn=course[-1].copy())

    def at(self, index: Index) -> Lean:
        """That of some of the rows, where it knows each."""
        return self if self.drawn is None or self.drawn.ndim == 2 else replace(self, drawn=self.drawn[index])

    def restarted(self) -> Lean:
        """That of the training rows."""
        return self if self.drawn is None else replace(self, drawn=None)

    def chosen(self, origin: Array) -> Lean:
        """That of sensors at these places (M,), -1 for a new one."""
        unknown = np.array([[-np.inf], [np.inf]])
        ends, drawn = (
            None if known is None else np.where(origin < 0, unknown, known[:, origin])
            for known in (self.ends, self.drawn)
        )
        stride = None if self.stride is None else np.where(origin < 0, 0.0, self.stride[origin])
        return Lean(np.where(origin < 0, np.nan, self.levels[:, origin]), self.amounts, ends, self.most, drawn, stride)


def found_lean(y: Array, mean: Array, sd: Array, ends: Array | None = None, stride: Array | None = None) -> Lean | None:
    """The lean with the narrowest boxes around readings (T, N), NaN = missing, of sensors with these ends and strides.

    None where boxes are best upright and have no end. Widths are compared in units of each sensor's own spread, at the
    radii that hold the shares of rows `SHARES`.
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
    if ends is not None and not np.isfinite(ends).any():
        ends = None
    around = (np.where(np.isnan(y), mean, y), mean, sd)

    def cost(amounts: Array) -> float:
        """With the ends and, as they may come not to hold, without: as much of either."""
        ways = [Lean(levels, amounts)] if ends is None else [Lean(levels, amounts), Lean(levels, amounts, ends, FAR)]
        return float(np.mean([_log_width(way, unit, *around) for way in ways]))

    amounts = _searched(cost)
    if ends is None:
        return Lean(levels, amounts) if amounts.any() else None
    most = RADII * float(_radii(Lean(levels, amounts, ends, FAR), *around).max())
    return Lean(levels, amounts, ends, most, stride=stride)


def found_ends(values: Array) -> Array:
    """Ends (2, N) of the ranges of sensors by their readings (T, N), NaN = missing; infinite where there is none.

    At an end readings pile up, in every part of the rows: what a slow river happened to reach is none.

    >>> found_ends(np.maximum(np.random.default_rng(0).normal(size=(1200, 2)), [0.0, -9.0])).tolist()
    [[0.0, -inf], [inf, inf]]
    """
    ends = np.full((2, values.shape[1]), [[-np.inf], [np.inf]])
    for i, column in enumerate(values.T):
        read = column[~np.isnan(column)]
        if len(read) >= FEWEST:
            ends[:, i] = _lowest(read), -_lowest(-read)
    return ends


def found_strides(values: Array) -> Array:
    """How far the first reading beyond draws an end of sensors (N,) at most, by their readings (T, N), NaN = missing.

    By the range of the readings, not of what is expected of them: a mean may hardly move where readings do.
    """
    strides = np.zeros(values.shape[1])
    for i, column in enumerate(values.T):
        read = column[~np.isnan(column)]
        if len(read):
            strides[i] = STRIDE * np.ptp(np.quantile(read, (LEVELS[0], LEVELS[-1])))
    return strides


def _lowest(read: Array) -> float:
    """The lower end of the range of readings (T,), -inf where there is none."""
    low, high, end = np.quantile(read, (0.01, 0.99, RARE), method="lower")
    if low == high:
        return -np.inf
    shares = [np.mean(part <= end + PILE * (high - low)) for part in np.array_split(read, PARTS)]
    return float(end) if min(shares) >= PILE / 2 and np.mean(shares) >= PILE else -np.inf


def _spread(y: Array) -> Array:
    """Standard deviations (N,) of readings (T, N), NaN = missing; 0 where there is none."""
    seen = ~np.isnan(y)
    count = np.maximum(seen.sum(axis=0), 1)
    centre = np.where(seen, y, 0.0).sum(axis=0) / count
    return np.sqrt(np.where(seen, (y - centre) ** 2, 0.0).sum(axis=0) / count)


def _radii(lean: Lean, y: Array, mean: Array, sd: Array) -> Array:
    """Radii at which the boxes hold the shares of rows that are compared."""
    return np.quantile(lean.radius_of(y, mean, sd).max(axis=1), SHARES)


def _log_width(lean: Lean, unit: Array, y: Array, mean: Array, sd: Array) -> float:
    """Mean log of the width of the boxes, up to a constant."""
    reaches = [lean.reaches(radius, mean, sd) for radius in _radii(lean, y, mean, sd)]
    return float(np.mean([np.log(((below + above) / unit).mean()) for below, above in reaches]))


def _searched(cost: Callable[[Array], float]) -> Array:
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
