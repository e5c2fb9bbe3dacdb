"""Covariance of a sliding window, shrunk to its own diagonal: S_t = (1 - s) C_t + s diag C_t + jitter I.

Over a segment of steps C_t changes by one update and one downdate a step, which one factorisation serves
(`jointset.baselines.updates`). The target s diag C_t moves in every sensor at once and is no low-rank change. So let
T_t be S_t with the target of the segment's start, S_t = T_t + diag(D_t). With P = T_t^-1, p = diag P, x = P e and
w_i = D_i / (1 + D_i p_i)

    log det S_t = log det T_t + sum_i log(1 + D_i p_i) + ...
    e' S_t^-1 e = e'x - y'x + (y'P y - sum_i p_i y_i^2) - ...,   y_i = w_i x_i

both exact when a single sensor moves. The determinant leaves out what is of second order in the others; the distance
has their second-order term where the first is not small, and both are summed as if they went on as a geometric series.
P and x come from the updates. A segment ends where mean_i |D_i| p_i passes a tolerance, so outages, which move all
targets by a lot, start new ones.

What the window itself gives, e'T_t^-1 e and log det T_t, is in double precision. p, x and y serve the correction alone
and are in single precision, in units in which T has ones on its diagonal where the segment starts: half the time, and
an error of some 1e-7 where the series leaves out 1e-4. By so much one run and a run in parts may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyr2k, dtrmm, strmm

from jointset.baselines.shrinkage import gram
from jointset.baselines.updates import CLOSE, eliminate, inverse_root
from jointset.contracts import Array
from jointset.covariance import Covariance

TINY = 1e-12  # a variance can vanish but for rounding
FALL = 1e-8  # the moment is made anew where a variance has fallen so far
SECOND = 3.0  # two sensors that have moved so far end a segment
LARGE = 1e12  # squared length of a whitened row from which it is made shorter, for single precision
HIGHEST = 1e30  # largest number given to single precision, which ends at 1e38
FAR = 0.05  # a first-order term beyond this share of the distance asks for the second


class Window(NamedTuple):
    """A shrunk window: its length, s, what is added to the diagonal, and how far a target may move in a segment."""

    length: int
    shrink: float
    jitter: float
    tolerance: float

    def matrix(self, moment: Array, target: Array) -> Array:
        """(1 - s) C + s diag(target) + jitter I, C (N, N) being the second moment of a window."""
        S = (1.0 - self.shrink) * moment
        S.flat[:: len(S) + 1] += self.shrink * target + self.jitter
        return S

    def whitener(self, moment: Array, out: Array) -> Array:
        """sqrt(1 - s) times the inverse root of that matrix, its target being the diagonal of `moment`.

        `moment` (N, N) is in the order of Fortran; its diagonal is changed for the time of this call.
        """
        diagonal = moment.reshape(-1, order="F")[:: len(moment) + 1]
        target = diagonal.copy()
        diagonal += (self.shrink * target + self.jitter) / (1.0 - self.shrink)
        root = inverse_root(moment, out)
        diagonal[:] = target
        return root


class Moved(Covariance):
    """T + diag(D) with log-determinant and distances as in the head of the module."""

    def __init__(self, start: Array, drift: Array) -> None:
        super().__init__(start + np.diag(drift))
        self.start, self.drift = Covariance(start), drift

    @cached_property
    def _precisions(self) -> Array:
        return np.einsum("ki,ki->i", self.start.whitener, self.start.whitener)

    @cached_property
    def log_det(self) -> Array:
        """log det T + sum_i log(1 + D_i p_i)."""
        return self.start.log_det + np.log1p(self.drift * self._precisions).sum()

    def distance(self, e: Array) -> Array:
        """Squared distance (...) of residuals (..., N)."""
        white = np.asarray(e) @ self.start.whitener.T
        x = white @ self.start.whitener
        y = self.drift / (1.0 + self.drift * self._precisions) * x
        again = y @ self.start.whitener.T
        twice = (again * again).sum(-1) - (self._precisions * y * y).sum(-1)
        plain, once = (white * white).sum(-1), (y * x).sum(-1)
        return np.asarray(plain - np.where(np.abs(once) > FAR * plain, _series(once, twice), once))

    def rescale(self, scale: Array) -> Covariance:
        """Covariance of scale * Y."""
        if self._rescaled is None or self._rescaled[0] is not scale:
            self._rescaled = (scale, Moved(self.start.matrix * (scale[:, None] * scale), self.drift * scale**2))
        return self._rescaled[1]

    def __getitem__(self, index: Any) -> Covariance:
        return self


@dataclass(frozen=True)
class SlidingCovariance:
    """Covariances before each of rows[first:] of a segment, `base` (length, N) being the window before its first row.

    `log_det` (T,) and `own`, the distances of the segment's own rows (T,), are made with it; no matrix is kept.
    """

    window: Window
    base: Array
    rows: Array
    first: int
    start: Array  # variances at the first row of the segment (N,)
    variance: Array  # (T, N)
    log_det: Array
    own: Array

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N), each under the covariance of its step."""
        if np.array_equal(e, self.rows[self.first :]):
            return self.own
        gap = np.abs(e - self.rows[self.first :])
        close = CLOSE * np.sqrt(self.start)
        if (gap.max(axis=0, initial=0.0) <= close).all():
            return self.own
        other = ~(gap <= close).all(axis=1)  # rows with gaps among them
        return np.array([self.at(t).distance(e[t]) if other[t] else self.own[t] for t in range(len(e))])

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        kept = self.rows[: self.first + t]
        kept = kept[~np.isnan(kept).any(axis=1)]
        window = np.concatenate([self.base[len(kept) :], kept])
        moment = window.T @ window / self.window.length
        return Moved(
            self.window.matrix(moment, np.mean(self.base**2, axis=0)),
            self.window.shrink * (self.variance[t] - self.start),
        )

    def matrix(self, t: int) -> Array:
        """The covariance (N, N) of one step, exactly."""
        return self.at(t).matrix


class Moment:
    """Second moment (N, N) of a window, in its lower triangle and in the order of Fortran, moved on by updates.

    What large readings leave behind in rounding after they are gone is cleared away: a sensor whose variance has fallen
    below `FALL` of its highest gets its moments from the window again.
    """

    def __init__(self, base: Array) -> None:
        self._make(base)
        self.space = np.zeros(self.matrix.shape, order="F")  # zero above the diagonal

    def _make(self, base: Array) -> None:
        self.matrix = np.asfortranarray(gram(base) / len(base))
        self.highest = self.matrix.diagonal().copy()

    def at(self, base: Array) -> Array:
        """The moment, cleared where need be; `base` (length, N) is its window."""
        fallen = np.flatnonzero(self.matrix.diagonal() < FALL * self.highest)
        if 2 * len(fallen) > len(self.matrix):
            self._make(base)
        elif len(fallen):
            columns = base.T @ base[:, fallen] / len(base)
            self.matrix[:, fallen], self.matrix[fallen] = columns, columns.T
            self.highest[fallen] = self.matrix.diagonal()[fallen]
        return self.matrix

    def add(self, more: Array, less: Array, length: int) -> None:
        """Move on by rows that come and rows that leave, given by their sums and differences (T, N).

        A row stays for at least a segment, so that none is missed in the highest variance after each.
        """
        dsyr2k(0.5 / length, more.T, less.T, 1.0, self.matrix, lower=1, overwrite_c=1)
        np.maximum(self.highest, self.matrix.diagonal(), out=self.highest)


def segment(
    window: Window, base: Array, moment: Moment, rows: Array, complete: Array, first: int
) -> tuple[int, SlidingCovariance | None]:
    """How many of rows (j, N) after the window `base` form one segment, their covariances from row `first` on.

    `complete` (j,) says which rows have no gap; the others leave the window as it is. `moment` is that of the window,
    and becomes that after the segment.
    """
    coming, leaving = rows, base[: len(rows)]  # a row comes, and the oldest one leaves
    if not complete.all():
        coming, leaving = np.where(complete[:, None], rows, 0.0), base[np.cumsum(complete) - complete]
        leaving[~complete] = 0.0
    whiten = window.whitener(moment.at(base), moment.space)
    more, less = coming + leaving, coming - leaving
    variance = _variances(window, moment.matrix.diagonal(), more, less)
    start = variance[0].copy()
    single = _scaled(whiten, np.sqrt(start / (1.0 - window.shrink)))
    precisions = np.einsum("ki,ki->i", single, single)
    ratio = variance * (1.0 / start)
    ratio = np.minimum(ratio, HIGHEST, out=ratio).astype(np.float32)
    stop = _stop(window, ratio, precisions)
    moment.add(more[:stop], less[:stop], window.length)
    if stop <= first:
        return stop, None
    pivots, x = _updates(coming[:stop], leaving[:stop], window.length**-0.5, whiten, single)
    p = _precisions_of(precisions, x)[first:]
    own, grade = x[2 * first :: 2], pivots[2 * first :: 2]  # those of the rows that are scored
    drift = ratio[first:stop]
    drift -= 1.0
    drift *= window.shrink
    grown = drift * p
    grown += 1.0
    y = np.divide(drift, grown, out=drift)
    y *= own
    unit = window.length / (1.0 - window.shrink)  # an update is sqrt(1 / unit) times a row
    plain, once = unit * (grade - 1.0), unit * grade * np.einsum("ti,ti->t", y, own)
    distance = plain - once
    far = np.flatnonzero(np.abs(once) > FAR * plain)
    if len(far):
        y = y[far]
        twice = _power(single, x, 2 * (first + far), y) - np.einsum("ti,ti->t", p[far] * y, y)
        distance[far] = plain[far] - _series(once[far], unit * grade[far] * twice)
    np.maximum(distance, 0.0, out=distance)  # but for rounding
    steps = np.concatenate([[0.0], np.cumsum(np.log(np.abs(pivots)))])[2 * first : -1 : 2]
    still = len(start) * np.log(1.0 - window.shrink) - 2.0 * np.log(whiten.diagonal()).sum()
    log_det = steps + still + np.log(grown, out=grown).sum(axis=1)
    kept = variance[first:stop]
    return stop, SlidingCovariance(window, base, rows[:stop], first, start, kept, log_det, distance)


def _scaled(whiten: Array, scale: Array) -> Array:
    """Columns times scale (N,) in single precision."""
    if scale.max() < HIGHEST and scale.min() > 1.0 / HIGHEST:
        single = whiten.astype(np.float32)
        single *= scale.astype(np.float32)
        return single
    return (whiten * scale).astype(np.float32)


def _power(whiten: Array, x: Array, active: Array, y: Array) -> Array:
    """y'P y (T,) for rows y (T, N), each under the precision after the first `active` (T,) of the updates."""
    white = strmm(1.0, whiten, y.T, lower=1)
    along = y @ x.T
    along *= along
    along *= np.arange(len(x)) < active[:, None]
    return np.asarray(np.einsum("it,it->t", white, white) - along[:, ::2].sum(axis=1) + along[:, 1::2].sum(axis=1))


def _series(once: Array, twice: Array) -> Array:
    """once - twice + ..., as a geometric series where its ratio is small."""
    ratio = np.divide(twice, once, out=np.zeros_like(once), where=once != 0.0)
    return np.where(np.abs(ratio) < 0.5, once / (1.0 + ratio), once - twice)


def _updates(coming: Array, leaving: Array, weight: float, whiten: Array, single: Array) -> tuple[Array, Array]:
    """Pivots d (2 T,) and x (2 T, N) of all updates, rows that come and rows that leave in turn.

    An update u has d = 1 + u'P u, or -1 + u'P u for a row that leaves, and x = P u / sqrt(|d|), with P the precision
    after the updates before it.
    """
    stop, n = coming.shape
    pairs = np.empty((stop, 2, n))
    pairs[:, 0], pairs[:, 1] = coming, leaving
    white = dtrmm(weight, whiten, pairs.reshape(2 * stop, n).T, lower=1, overwrite_b=1).T
    products = white @ white.T
    diagonal = products.reshape(-1)[:: 2 * stop + 1]
    size = np.ones(2 * stop)
    if diagonal.max() > LARGE:  # by powers of two, which change nothing else
        size = np.where(diagonal > LARGE, np.exp2(np.ceil(0.5 * np.log2(1.0 + diagonal))), 1.0)
        products /= size[:, None] * size
        white /= size[:, None]
    signs = size**-2.0
    signs[1::2] *= -1.0
    diagonal += signs
    pivots, solved = eliminate(products, white)
    return pivots * size**2, strmm(1.0, single, solved.T, lower=1, trans_a=1, overwrite_b=1).T


def _variances(window: Window, target: Array, more: Array, less: Array) -> Array:
    """Variances before each row (T, N)."""
    squares = np.empty(more.shape)
    squares[0] = window.length * (target + window.jitter)
    np.multiply(more[:-1], less[:-1], out=squares[1:])
    return dtrmm(1.0 / window.length, _ones(len(squares), "d"), squares.T, side=1, overwrite_b=1).T


def _precisions_of(start: Array, x: Array) -> Array:
    """diag P before each step (T, N), x (2 T, N) being those of the updates."""
    squares = x[:-2] * x[:-2]
    p = np.empty((len(x) // 2, len(start)), np.float32)
    p[0] = start
    np.subtract(squares[1::2], squares[::2], out=p[1:])
    return strmm(1.0, _ones(len(p), "f"), p.T, side=1, overwrite_b=1).T


@lru_cache(maxsize=8)
def _ones(size: int, kind: str) -> Array:
    """Ones on and above the diagonal: a product with them sums the columns up, faster than `cumsum`."""
    return np.triu(np.ones((size, size), kind)).copy(order="F")


def _stop(window: Window, ratio: Array, precisions: Array) -> int:
    """First row whose target has moved too far: on average, or in two sensors at once (one alone is exact).

    `ratio` (T, N) are variances over those of the start. A variance that is q times that of the start counts as a move
    by max(q, 1 / q) - 1, times its weight: a target that shrinks lets the precision of its sensor grow.
    """
    grown = np.abs(ratio)
    grown += TINY
    np.maximum(grown, 1.0 / grown, out=grown)
    weight = window.shrink * precisions
    total = grown @ weight - weight.sum()
    beyond = total > window.tolerance * len(weight)
    late = total > 2.0 * SECOND  # as it is where two sensors have moved so far
    if late.any():
        since = int(late.argmax())
        beyond[since:] |= (grown[since:] > 1.0 + SECOND / weight) @ np.ones_like(weight) > 1.0
    beyond[0] = False  # it has not moved at all, whatever rounding says
    return int(beyond.argmax()) if beyond.any() else len(beyond)
