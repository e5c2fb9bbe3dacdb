"""Scores of rows with gaps, put on the scale of complete rows.

The score of k of N sensors is smaller than that of all, so a row with gaps would look calmer than it is, in calibration
and in an alarm. At the coverage that is asked for, both scores have a quantile under a normal law, q_k and q_N: the
score is multiplied by q_N / q_k. A factor commutes with the scale of the law, so rows with gaps are covered as often
as complete ones also where the law is too wide or too narrow by any factor, and the mean has score 0 whatever is
missing. Once the radius r of complete rows at that coverage is known, the rest of the scale follows from it: a score
x = r t goes to the r h(t) whose rank among complete normal rows is that of t among rows with the same gaps, h(1) = 1.

Coverage given one pattern of gaps needs assumptions; these are normality up to scale, and gaps that do not depend on
the readings.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.chi_squares import carried, quantile_of_each, tail_of_largest
from jointset.contracts import Array, Index, Law
from jointset.storage import storable

EDGES = (0.1, 0.3, 0.6, 1.0)  # shares of missing sensors up to which rows are of one stratum, after complete ones
RETURN = (1, 6, 24)  # rows after one without any reading up to which they have a factor of their own
FARTHEST, NEAREST = 1e-280, 1.0 - 1e-12  # tails below and above them have no ranks any more
GRID, LEAST = 2.0, 24  # steps of the table of `independent_count`: counts by this factor, so many correlations
_COUNTS = GRID ** np.arange(15.0)  # 1 to 16,384


@storable
class GapScale(NamedTuple):
    """The coverage that is asked for, and the radius of the calibration scores at it; NaN before calibration.

    logs, shares: of the strata of rows with as many gaps, see `gap_levels` · trace (T, S): logs at each step, in the
    regions of a run · back: logs of the calibrated factors on the radii of rows after one without any reading, by
    `RETURN`; what they learned since follows in `logs` · since: rows since then, at most 24.
    """

    level: float = 0.9
    radius: float = math.nan
    logs: tuple[float, ...] = (0.0,) * (len(EDGES) + 1 + len(RETURN))
    shares: tuple[float, ...] = (1.0,) + (0.0,) * len(EDGES)
    trace: Array | None = None
    back: tuple[float, ...] = (0.0,) * len(RETURN)
    since: int = RETURN[-1]

    @staticmethod
    def of_older(fields: dict[str, Any]) -> dict[str, Any]:
        """Stored fields as they are, or those of a version with one factor, for the first row after an outage."""
        back, logs = fields.get("back", 0.0), fields.get("logs")
        if not isinstance(back, float) or not isinstance(logs, list) or len(logs) != len(EDGES) + 1:
            return fields
        rest = [0.0] * len(RETURN)
        since = 0 if fields.get("dark") else RETURN[-1]
        return {**fields, "logs": [*logs, *rest], "back": [back, *rest[1:]], "since": since}

    @property
    def lift(self) -> float:
        """What the radius of the rule is multiplied by for complete rows."""
        return math.exp(self.logs[0] + returning(self.back, self.logs, self.since))

    def levelled(self, score: Array, y: Array) -> Array:
        """Scores (...) or (..., K) of readings (..., N), those of rows with gaps by the factor of their stratum."""
        factor = self.factor(y)
        return score if factor is None else score * (factor if np.ndim(score) == np.ndim(factor) else factor[..., None])

    def factor(self, y: Array) -> Array | None:
        """What the scores (...) of readings (..., N) are multiplied by, as of their stratum; None where all are 1."""
        if self.trace is None and not any(self.logs):
            return None
        logs = np.asarray(self.logs if self.trace is None else self.trace)
        place = stratum(y)
        own = np.take(logs, place) if logs.ndim == 1 else np.take_along_axis(logs, place[..., None], -1)[..., 0]
        return np.exp(logs[..., 0] - own)

    def own_radius(self, radius: Array | float, y: Array) -> Array:
        """What scores without that factor are held against, of readings (..., N) with a radius (...)."""
        factor = self.factor(y)
        return np.broadcast_to(radius if factor is None else radius / factor, np.shape(y)[:-1])

    def squared(self) -> GapScale:
        """The same for squared scores."""
        trace = None if self.trace is None else 2.0 * self.trace
        return self._replace(radius=self.radius**2, logs=tuple(2.0 * one for one in self.logs), trace=trace)

    def at(self, index: Index) -> GapScale:
        """The scale of some of the steps of a run."""
        return self if self.trace is None else self._replace(trace=self.trace[index])


def returning(back: Sequence[float], logs: Sequence[float], since: int) -> float:
    """Log of the factor of the row that follows so many since all sensors were out."""
    k = bisect_right(RETURN, since)
    return back[k] + logs[k - len(RETURN)] if k < len(RETURN) else 0.0


UNCALIBRATED = GapScale()


def stratum(y: Array) -> Array:
    """Which stratum readings (..., N) fall into, by the share that is missing: 0 for none, then up to each edge."""
    return np.searchsorted((0.0, *EDGES[:-1]), np.isnan(y).mean(-1), side="left")


def measured_distance(distance: Array, missing: Array) -> Array:
    """Squared distances (...) of rows that lack sensors (..., N), with how many were read and there are (..., 3).

    NaN where nothing was read.
    """
    n = missing.shape[-1]
    read = n - missing.sum(-1)
    return np.stack([np.where(read > 0, distance, np.nan), read, np.full(np.shape(distance), n)], axis=-1)


def placed_distance(measured: Array, gaps: GapScale) -> Array:
    """Squared distances (...) on the scale of complete rows."""
    return placed_distances(measured[..., None, :], gaps)


def placed_distances(measured: Array, gaps: GapScale) -> Array:
    """The largest squared distance (...) of independent blocks (..., G, 3), on the scale of complete rows."""
    k = measured[..., 1]
    largest = np.where(k > 0, measured[..., 0], -np.inf).max(-1)
    return _carried(np.where((k > 0).any(-1), largest, np.nan), k, measured[..., 2], gaps, (0, 1))


def held_distances(radius: Array, measured: Array, gaps: GapScale) -> Array:
    """The largest squared distance (...) of blocks read as those (..., G, 3) whose place is the radius (...)."""
    return _carried(np.array(radius, dtype=float), measured[..., 1], measured[..., 2], gaps, (1, 0))


def _carried(distance: Array, k: Array, n: Array, gaps: GapScale, way: tuple[int, int]) -> Array:
    """Squared distances (...) from the scale of blocks of k sensors (..., G) to that of n, or the other way."""
    some = (k < n).any(-1) & (k > 0).any(-1)
    if not some.any():
        return distance[()]
    x, freedom = distance[some], (k[some], n[some])
    at = [quantile_of_each(each, 1.0 - gaps.level) for each in freedom]
    start, goal = way
    placed = x * at[goal] / at[start]
    if 0.0 < gaps.radius < math.inf:
        off = np.flatnonzero(x != gaps.radius)  # the radius itself goes where its quantile does
        unit = at[1][off] / gaps.radius
        tail = tail_of_largest(freedom[start][off], unit * x[off])
        ranked = (tail > FARTHEST) & (tail < NEAREST)
        same_rank = carried(unit * x[off], freedom[start][off], freedom[goal][off], tail)
        placed[off] = np.where(ranked, same_rank / unit, placed[off])
    distance[some] = placed
    return distance[()]


def measured_maximum(largest: Array, missing: Array, law: Law, level: float) -> Array:
    """Largest |residual| / sd (...) of rows that lack sensors (..., N), beside two numbers (..., 3).

    They say how many independent sensors those read amount to at this coverage, and all: see `independent_count`.
    """
    n, k = missing.shape[-1], missing.shape[-1] - missing.sum(-1)
    effective = np.stack(law.effective_sensors(~missing))
    some, every = independent_count(np.stack([k, np.full_like(k, n)]), effective, level)
    some = np.where(missing.any(-1), np.minimum(some, every), every)
    return np.stack([np.where(k > 0, largest, np.nan), some, every], axis=-1)


def placed_maximum(measured: Array, gaps: GapScale) -> Array:
    """Largest |residual| / sd (...) on the scale of complete rows."""
    return _carried_maximum(measured[..., 0], measured[..., 1], measured[..., 2], gaps, (0, 1))


def held_maximum(radius: Array, measured: Array, gaps: GapScale) -> Array:
    """Largest |residual| / sd (...) of sensors read as those (..., 3) whose place is the radius (...)."""
    return _carried_maximum(radius, measured[..., 1], measured[..., 2], gaps, (1, 0))


def _carried_maximum(largest: Array, some: Array, every: Array, gaps: GapScale, way: tuple[int, int]) -> Array:
    """Maxima (...) from the scale of some independent sensors to that of every, or the other way."""
    partial = some < every
    if not partial.any():
        return largest[()]
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    (start, goal), counts = way, (some, every)
    at = [largest_quantile(count, gaps.level) for count in counts]
    carried = largest * at[goal] / at[start]
    if 0.0 < gaps.radius < math.inf:
        unit = at[1] / gaps.radius
        outside = 2.0 * ndtr(-unit * largest)  # P(|Z| > x), and by powers of 1 less that, of the largest of many
        with np.errstate(divide="ignore", invalid="ignore"):
            same = counts[start] / counts[goal] * np.log1p(-outside)
        ranked = largest_quantile(1.0, np.exp(same), -np.expm1(same)) / unit
        carried = np.where(outside > FARTHEST, ranked, carried)
    return np.where(partial, carried, largest)[()]


def joined_maxima(measured: Array) -> Array:
    """One maximum (..., 3) of independent blocks (..., G, 3)."""
    unread = np.isnan(measured[..., 0])
    largest = np.where(unread.all(-1), np.nan, np.where(unread, -np.inf, measured[..., 0]).max(-1))
    some, every = np.where(unread, 0.0, measured[..., 1]).sum(-1), measured[..., 2].sum(-1)
    return np.stack([largest, np.maximum(some, 1.0), every], axis=-1)


def shares_of(part: Array, whole: Array | float) -> Array:
    """Sizes over other sizes; 1 where these are 0 or without end, or of the empty set."""
    sized = np.broadcast_to((np.asarray(whole) > 0) & np.isfinite(whole), np.shape(part))
    return np.divide(part, whole, out=np.ones(np.shape(part)), where=sized)


def independent_count(count: Array | float, effective: Array, level: float) -> Array:
    """How many independent normals have a largest |Z| with the same quantile as that of `count` correlated ones (...).

    `effective` is count^2 / sum of squared correlations. The correlations are taken to be all alike, with that sum:
    exact where they are, and within a few per cent of coverage for blocks, chains and factors (docs/fidelity.md).

    >>> [round(float(independent_count(20, n, 0.9)), 1) for n in (20.0, 1.5, 1.0)]
    [20.0, 5.6, 1.0]
    """
    count = np.maximum(count, 1.0)
    alike = (count / np.clip(effective, 1.0, count) - 1.0) / np.maximum(count - 1.0, 1e-9)  # squared correlation
    reach = np.clip(np.log(count) / np.log(GRID), 0.0, len(_COUNTS) - 1.001)
    place = np.clip((1.0 - np.sqrt(1.0 - np.sqrt(np.clip(alike, 0.0, 1.0)))) * LEAST, 0.0, LEAST)
    row, column = reach.astype(int), np.minimum(place.astype(int), LEAST - 1)
    down, right = reach - row, place - column
    shares = _independent_shares(level)
    upper = (1.0 - right) * shares[row, column] + right * shares[row, column + 1]
    lower = (1.0 - right) * shares[row + 1, column] + right * shares[row + 1, column + 1]
    return count ** ((1.0 - down) * upper + down * lower)


@lru_cache(maxsize=64)
def _independent_shares(level: float) -> Array:
    """log of the independent count over log of the count, by count (rows) and correlation (columns)."""
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    # |Z_i| = |sqrt(r) X + sqrt(1 - r) E_i|: independent given X, which is integrated over
    X = np.arange(0.05, 6.0, 0.1)
    weight = np.exp(-0.5 * X**2) / np.exp(-0.5 * X**2).sum()
    alike = (1.0 - (1.0 - np.arange(LEAST) / LEAST) ** 2)[:, None]
    low, high = np.zeros((len(_COUNTS), LEAST)), np.full((len(_COUNTS), LEAST), 9.0)
    for _ in range(24):
        middle = 0.5 * (low + high)
        ends = [ndtr((sign * middle[..., None] - np.sqrt(alike) * X) / np.sqrt(1.0 - alike)) for sign in (1, -1)]
        inside = ((ends[0] - ends[1]) ** _COUNTS[:, None, None]) @ weight
        low, high = np.where(inside < level, middle, low), np.where(inside < level, high, middle)
    same = np.log(level) / np.log1p(-2.0 * ndtr(-high))
    logs = np.log(_COUNTS)[:, None]
    shares = np.divide(np.log(same), logs, out=np.broadcast_to(1.0 - alike[:, 0], same.shape).copy(), where=logs > 0)
    return np.column_stack([shares, np.zeros(len(shares))])  # sensors that are one


def largest_quantile(count: Array | float, level: Array | float, tail: Array | None = None) -> Array:
    """Quantile of the largest |Z| of `count` independent standard normals, a number that need not be whole.

    `tail` is 1 - level where that is known better.

    >>> round(float(largest_quantile(1, 0.9)), 3)
    1.645
    """
    from scipy.special import ndtri  # here, so that importing jointset stays fast

    outside = -np.expm1(np.log(level) / np.asarray(count)) if tail is None else tail
    return -ndtri(0.5 * outside)
