"""Readings no sensor gives: too large to be squared, or absurdly far from the others of their sensor.

One such reading in the training rows makes every later set useless, as it enters means and covariances. How far is
absurd is measured by what it cannot move: the median of a sensor and the median distance from it.
"""

from __future__ import annotations

import warnings

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError
from jointset.inputs.times import iso
from jointset.panel import Panel

LARGEST = 1e100  # a reading beyond it would swamp the filter for good, if its square is a number at all
FAR = 1e6  # robust standard deviations from the median that are absurd,
TIMES = 1e3  # if they are also so many times the median: a sensor at rest may wake up
NORMAL = 1.4826  # standard deviations of a normal law in a median distance
HUGE = 1e15  # absurd for a sensor that mostly stands still, whose few other readings say nothing about it
SAMPLE = 100  # rows of a first look
CODES = tuple(sign * (10.0**digits - 1.0) for sign in (-1, 1) for digits in range(2, 8))  # -9999 and its like


def scorable(panel: Panel) -> Panel:
    """The panel itself, refused when a reading is too large to be scored."""
    values = panel.values
    low, high = np.fmin.reduce(values, axis=None, initial=0), np.fmax.reduce(values, axis=None, initial=0)
    if max(high, -low) > LARGEST:
        t, i = np.argwhere(np.abs(values) > LARGEST)[0]
        raise InputError(f"{_place(panel, t, i)}: {values[t, i]:g} is too large to be scored: leave its cell empty")
    return panel


def too_large(sensor: str, value: float) -> str:
    """What is wrong with a reading no filter comes back from."""
    return f"sensor {sensor!r}: {value:g} is too large to be scored: check the row"


def require_sane(y: Array, sensors: tuple[str, ...], shift: Array, scale: Array) -> None:
    """Refuse a live reading absurdly far from those of training, of this mean and standard deviation (N,).

    A filter that takes one in needs hundreds of rows to forget it.
    """
    off = np.abs(y - shift)
    if not np.count_nonzero(off > FAR * scale):  # as nearly always
        return
    for i in (off > np.maximum(FAR * scale, TIMES * np.abs(shift))).nonzero()[0]:
        usual = f"its readings were about {shift[i]:g}, give or take {scale[i]:g}"
        raise InputError(f"sensor {sensors[i]!r}: {y[i]:g} is absurd, {usual}: check the row, or send nothing for it")


def warn_absurd(panel: Panel, block: str) -> None:
    """Warn of the worst reading of a panel that is absurdly far from the others of its sensor."""
    found = absurd_readings(panel.values)
    if not len(found):
        return
    t, i = max(found, key=lambda place: abs(panel.values[tuple(place)]))
    more = f" (and {len(found) - 1} more such readings)" if len(found) > 1 else ""
    usual = f"the median of its sensor is {np.nanmedian(panel.values[:, i]):g}"
    warnings.warn(
        f"{_place(panel, t, i)} of the {block} rows: {panel.values[t, i]:g} is absurd, {usual}{more}. It spoils every "
        "set: if it is no reading, leave its cell empty (NaN)",
        stacklevel=3,
    )


def warn_codes(panel: Panel, block: str) -> None:
    """Warn of a sensor whose lowest or highest reading looks like a code for a missing one."""
    found = missing_codes(panel.values)
    if not found:
        return
    (i, code), others = found[0], len(found) - 1
    more = f" (and so do{'es' * (others == 1)} {others} more sensor{'s' * (others > 1)})" if others else ""
    column = panel.values[:, i]
    rest = column[column != code]
    count = f"{np.count_nonzero(column == code):,} of the {len(column):,} {block} rows"
    warnings.warn(
        f"sensor {panel.sensors[i]!r} reads {code:g} in {count}, where its others lie between {np.nanmin(rest):g} and "
        f"{np.nanmax(rest):g}{more}. If that means missing, leave these cells empty (NaN)",
        stacklevel=3,
    )


def missing_codes(values: Array) -> list[tuple[int, float]]:
    """Sensors with a lowest or highest reading of nines, further from the others than these from one another.

    >>> missing_codes(np.array([[50.0, 1.0], [-999.0, 2.0], [60.0, 99.0], [np.nan, 98.0]]))
    [(0, -999.0)]
    """
    low, high = np.fmin.reduce(values, axis=0, initial=np.inf), np.fmax.reduce(values, axis=0, initial=-np.inf)
    found = []
    for ends in (low, high):
        for i in np.flatnonzero(np.isin(ends, CODES)):
            rest = values[:, i][(values[:, i] != ends[i]) & ~np.isnan(values[:, i])]
            if rest.size and np.min(np.abs(rest - ends[i])) > np.ptp(rest):
                found.append((int(i), float(ends[i])))
    return found


def absurd_readings(values: Array) -> Array:
    """Rows and sensors (k, 2) of the readings absurdly far from the median of their sensor.

    >>> absurd_readings(np.array([[1.0], [2.0], [3.0], [4.0], [1e9]])).tolist()
    [[4, 0]]
    """
    found = [np.empty((0, 2), dtype=int)]
    for i in _suspects(values) if len(values) else ():
        column = values[:, i]
        middle = np.nanmedian(column)
        far = np.flatnonzero(np.abs(column - middle) > max(_reach(column, middle), TIMES * abs(middle)))
        found.append(np.column_stack([far, np.full(len(far), i)]))
    return np.concatenate(found)


def _reach(column: Array, middle: float) -> float:
    """Distance from the median beyond which a reading is absurd."""
    distance = np.abs(column[~np.isnan(column)] - middle)
    spread = NORMAL * np.median(distance)
    if spread > 0:
        return float(FAR * spread)
    moved = distance[distance > 0]
    return float(min(FAR * np.median(moved), HUGE)) if len(moved) else np.inf


def _suspects(values: Array) -> Array:
    """Sensors worth a full look: their range is wide beside the middle half of some of their readings."""
    low, high = np.fmin.reduce(values, axis=0, initial=np.inf), np.fmax.reduce(values, axis=0, initial=-np.inf)
    some = np.sort(values[:: max(len(values) // SAMPLE, 1)], axis=0)  # gaps come last
    seen = (~np.isnan(some)).sum(axis=0)
    first, third = (some[seen * part // 4, np.arange(some.shape[1])] for part in (1, 3))
    return np.flatnonzero((high > low) & ~(high - low < 0.1 * FAR * (third - first)))


def _place(panel: Panel, t: int, i: int) -> str:
    time = "" if panel.timestamps is None else f", {iso(panel.timestamps[t])}"
    return f"sensor {panel.sensors[i]!r}, row {t} (from 0){time}"
