"""Coverage by the clock: the share of rows inside their set at each hour of the day and on each weekday.

A share over all may hide that one hour is always missed and another never. Intervals are exact binomial ones
(Clopper-Pearson) for all hours together (Bonferroni), of as many rows as those of an hour are worth: rows within one
hour of one day go together, so that counts are divided by the dispersion of the days around the share of their hour,

    phi = sum (k - n p)^2 / sum n p (1 - p)  over (day, hour), times D / (D - H),

at least 1 (D such cells, H hours); for weekdays the cells are dates. What lies within its interval is no finding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array

HOUR, DAY = 3600, 86_400
THURSDAY = 3  # 1970-01-01, counted from Monday
LEVEL = 0.05  # chance that any interval of a family is off
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Shares(NamedTuple):
    """Rows and hits of groups, and an interval of the share of each; groups without a row are left out."""

    groups: Array  # (G,) ascending
    rows: Array  # (G,)
    hits: Array  # (G,)
    low: Array  # (G,)
    high: Array  # (G,)

    @property
    def share(self) -> Array:
        """Share of hits of each group."""
        return self.hits / self.rows

    @property
    def lowest(self) -> int | None:
        """Place of the lowest share that is lower than the share over all by more than chance."""
        below = self.high < self.hits.sum() / self.rows.sum()
        return int(np.where(below, self.share, 2.0).argmin()) if below.any() else None

    @property
    def highest(self) -> int | None:
        """Place of the highest share that is higher than the share over all by more than chance."""
        above = self.low > self.hits.sum() / self.rows.sum()
        return int(np.where(above, self.share, -1.0).argmax()) if above.any() else None


class ClockCoverage(NamedTuple):
    """Shares by the hour (0 to 23) and by the weekday (0 = Monday), and the tables (7, 24) of rows and hits."""

    hour: Shares
    weekday: Shares
    rows: Array
    hits: Array

    @property
    def worst(self) -> float:
        """The lowest share of an hour or weekday that chance does not explain; NaN without one."""
        found = [float(one.share[one.lowest]) for one in (self.hour, self.weekday) if one.lowest is not None]
        return min(found, default=float("nan"))

    @property
    def words(self) -> str:
        """What differs by the clock, lowest and highest; empty where nothing does."""
        hours = _range(self.hour, [f"at {hour:02d} h" for hour in self.hour.groups])
        days = _range(self.weekday, [f"on {WEEKDAYS[day]}s" for day in self.weekday.groups])
        return "; ".join(f"by the {name} {told}" for name, told in (("hour", hours), ("weekday", days)) if told)


def clock_coverage(timestamps: Array | None, inside: Array, seen: Array | None = None) -> ClockCoverage | None:
    """Coverage by the clock of the time stamps (T,) of rows (T,), of those with a reading where `seen` says so.

    None where there is no clock: no time stamps, or less than two hours of the day among them.

    >>> times = 3600 * np.arange(24 * 30)
    >>> clock_coverage(times, times % 86_400 != 18_000).words
    'by the hour 0 % at 05 h to 100 % at 00 h'
    """
    if timestamps is None:
        return None
    kept = np.ones(len(inside), bool) if seen is None else seen
    times, inside = np.asarray(timestamps)[kept], np.asarray(inside, bool)[kept]
    date = times // DAY
    hour, weekday = times % DAY // HOUR, (date + THURSDAY) % 7
    if len(np.unique(hour)) < 2:
        return None
    rows, hits = np.zeros((2, 7, 24), dtype=int)
    np.add.at(rows, (weekday, hour), 1)
    np.add.at(hits, (weekday, hour), inside)
    return ClockCoverage(_shares(hour, times // HOUR, inside), _shares(weekday, date, inside), rows, hits)


def _shares(group: Array, cell: Array, inside: Array) -> Shares:
    """Shares of groups of rows; those of one cell, which belongs to one group, go together."""
    groups, at = np.unique(group, return_inverse=True)
    rows, hits = np.bincount(at), np.bincount(at, inside).astype(int)
    low, high = _interval(hits, rows, _dispersion(at, cell, inside), LEVEL / len(groups))
    return Shares(groups, rows, hits, low, high)


def _dispersion(at: Array, cell: Array, inside: Array) -> float:
    """How many times the binomial one the variance of the cells around the share of their group is; at least 1.

    Infinite where the cells are too few to tell.
    """
    _, first, place = np.unique(cell, return_index=True, return_inverse=True)
    n, k, group = np.bincount(place), np.bincount(place, inside), at[first]
    share = np.bincount(at, inside) / np.bincount(at)
    free = len(n) - len(share)
    expected = float(np.sum(n * share[group] * (1.0 - share[group])))
    if free < len(share):  # fewer than two cells a group
        return float("inf")
    if expected == 0.0:
        return 1.0
    found = float(np.sum((k - n * share[group]) ** 2)) / expected * len(n) / free
    return max(found, 1.0)


def _interval(hits: Array, rows: Array, dispersion: float, level: float) -> tuple[Array, Array]:
    """Exact binomial intervals of shares; counts are divided by the dispersion."""
    from scipy.special import betaincinv

    if not np.isfinite(dispersion):
        return np.zeros(len(rows)), np.ones(len(rows))
    n, k = rows / dispersion, hits / dispersion
    missed = n - k
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, betaincinv(k, missed + 1, level / 2), 0.0)
        high = np.where(hits < rows, betaincinv(k + 1, missed, 1 - level / 2), 1.0)
    return low, high


def _range(shares: Shares, names: list[str]) -> str:
    """From the lowest share, where chance does not explain it, to the highest of all."""
    low, high = shares.lowest, int(shares.share.argmax())
    top = f"{100 * shares.share[high]:.0f} % {names[high]}"
    if low is not None:
        return f"{100 * shares.share[low]:.0f} % {names[low]} to {top}"
    return f"up to {top}" if shares.highest is not None else ""
