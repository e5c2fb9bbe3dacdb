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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dtrmm

from jointset.baselines.updates import add_gram, eliminate, inverse_root
from jointset.contracts import Array
from jointset.covariance import Covariance

TINY = 1e-12  # a variance can vanish but for rounding
FALL = 1e-8  # the moment is made anew where a variance has fallen so far
SECOND = 2.0  # two sensors that have moved so far end a segment
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
    drift: Array  # of the target (T, N)
    variance: Array  # (T, N)
    log_det: Array
    own: Array

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N), each under the covariance of its step."""
        if np.array_equal(e, self.rows[self.first :]):
            return self.own
        gap = e - self.rows[self.first :]
        close = 1e-11 * max(e.max(initial=0.0), -e.min(initial=0.0))  # its own rows may have been in other units
        if max(gap.max(initial=0.0), -gap.min(initial=0.0)) <= close:
            return self.own
        other = ~(np.abs(gap).max(axis=1) <= close)  # rows with gaps among them
        return np.array([self.at(t).distance(e[t]) if other[t] else self.own[t] for t in range(len(e))])

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        kept = self.rows[: self.first + t]
        kept = kept[~np.isnan(kept).any(axis=1)]
        window = np.concatenate([self.base[len(kept) :], kept])
        moment = window.T @ window / self.window.length
        return Moved(self.window.matrix(moment, np.mean(self.base**2, axis=0)), self.drift[t])

    def matrix(self, t: int) -> Array:
        """The covariance (N, N) of one step, exactly."""
        return self.at(t).matrix


class Moment:
    """Second moment (N, N) of a window, in its lower triangle and in the order of Fortran, moved on by updates.

    What large readings leave behind in rounding after they are gone is cleared away: a sensor whose variance has fallen
    below `FALL` of its highest gets its moments from the window again.
    """

    def __init__(self, base: Array) -> None:
        self.matrix = np.asfortranarray(base.T @ base / len(base), dtype=float)
        self.highest = self.matrix.diagonal().copy()
        self.space = np.zeros(self.matrix.shape, order="F")  # zero above the diagonal

    def at(self, base: Array) -> Array:
        """The moment, cleared where need be; `base` (length, N) is its window."""
        fallen = np.flatnonzero(self.matrix.diagonal() < FALL * self.highest)
        if len(fallen):
            columns = base.T @ base[:, fallen] / len(base)
            self.matrix[:, fallen], self.matrix[fallen] = columns, columns.T
            self.highest[fallen] = self.matrix.diagonal()[fallen]
        return self.matrix

    def add(self, coming: Array, leaving: Array, variance: Array, length: int) -> None:
        """Move on by rows that come and leave, `variance` (T, N) being those before each of them."""
        add_gram(self.matrix, coming, 1.0 / length)
        add_gram(self.matrix, leaving, -1.0 / length)
        np.maximum(self.highest, variance.max(axis=0), out=self.highest)
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
    C = moment.at(base)
    target = C.diagonal().copy()
    whiten = inverse_root(window.matrix(C, target), moment.space)
    precisions = np.einsum("ki,ki->i", whiten, whiten)
    variance = _variances(window, target, coming, leaving)
    stop = _stop(window, variance, precisions)
    coming, leaving, variance = coming[:stop], leaving[:stop], variance[:stop]
    moment.add(coming, leaving, variance, window.length)
    if stop <= first:
        return stop, None
    weight = np.sqrt((1.0 - window.shrink) / window.length)
    pivots, x = _updates(coming, leaving, weight, whiten)
    drift = variance[first:] - variance[0]
    drift *= window.shrink
    p = _precisions_of(precisions, x, pivots)[first:]
    grown = drift * p
    grown += 1.0
    own = x[2 * first :: 2] / weight
    y = drift / grown
    y *= own
    plain, once = (pivots[2 * first :: 2] - 1.0) / weight**2, np.einsum("ti,ti->t", y, own)
    distance = plain - once
    far = np.flatnonzero(np.abs(once) > FAR * plain)
    if len(far):
        y, active = y[far], 2 * (first + far)
        twice = _power(whiten, x, pivots, active, y) - np.einsum("ti,ti->t", p[far] * y, y)
        distance[far] = plain[far] - _series(once[far], twice)
    np.maximum(distance, 0.0, out=distance)  # but for rounding
    steps = np.concatenate([[0.0], np.cumsum(np.log(np.abs(pivots)))])[2 * first : -1 : 2]
    log_det = steps - 2.0 * np.log(whiten.diagonal()).sum() + np.log(grown, out=grown).sum(axis=1)
    return stop, SlidingCovariance(window, base, rows[:stop], first, drift, variance[first:], log_det, distance)


def _power(whiten: Array, x: Array, pivots: Array, active: Array, y: Array) -> Array:
    """y'P y (T,) for rows y (T, N), each under the precision after the first `active` (T,) of the updates."""
    white = dtrmm(1.0, whiten, y.T, lower=1)
    along = y @ x.T
    along *= along
    along /= pivots
    along *= np.arange(len(x)) < active[:, None]
    return np.asarray(np.einsum("it,it->t", white, white) - along.sum(axis=1))


def _series(once: Array, twice: Array) -> Array:
    """once - twice + ..., as a geometric series where its ratio is small."""
    ratio = np.divide(twice, once, out=np.zeros_like(once), where=once != 0.0)
    return np.where(np.abs(ratio) < 0.5, once / (1.0 + ratio), once - twice)


def _updates(coming: Array, leaving: Array, weight: float, whiten: Array) -> tuple[Array, Array]:
    """Pivots (2 T,) of all updates, and each under the precision after those before it (2 T, N)."""
    stop, n = coming.shape
    pairs = np.empty((stop, 2, n))
    pairs[:, 0], pairs[:, 1] = coming, leaving
    white = dtrmm(weight, whiten, pairs.reshape(2 * stop, n).T, lower=1, overwrite_b=1).T
    gram = white @ white.T
    diagonal = gram.reshape(-1)[:: 2 * stop + 1]
    diagonal[::2] += 1.0
    diagonal[1::2] -= 1.0
    pivots, solved = eliminate(gram, white)
    return pivots, dtrmm(1.0, whiten, solved.T, lower=1, trans_a=1, overwrite_b=1).T


def _variances(window: Window, target: Array, coming: Array, leaving: Array) -> Array:
    """Variances before each row (T, N)."""
    variance = np.empty(coming.shape)
    np.multiply(coming[:-1], coming[:-1], out=variance[1:])
    variance[1:] -= leaving[:-1] * leaving[:-1]
    variance[1:] *= 1.0 / window.length
    variance[0] = target + window.jitter
    return np.cumsum(variance, axis=0, out=variance)


def _precisions_of(start: Array, x: Array, pivots: Array) -> Array:
    """diag P before each step (T, N), x (2 T, N) being the updates under the precisions before them."""
    lost = x[:-2] * x[:-2]
    lost /= -pivots[:-2, None]
    p = np.empty((len(pivots) // 2, len(start)))
    p[0] = start
    np.add(lost[::2], lost[1::2], out=p[1:])
    return np.cumsum(p, axis=0, out=p)


def _stop(window: Window, variance: Array, precisions: Array) -> int:
    """First row whose target has moved too far: on average, or in two sensors at once (one alone is exact).

    A variance that is q times that of the start counts as a move by max(q, 1 / q) - 1, times its weight: a target that
    shrinks lets the precision of its sensor grow.
    """
    grown = variance / variance[0]
    np.abs(grown, out=grown)
    grown += TINY
    np.maximum(grown, 1.0 / grown, out=grown)
    weight = window.shrink * variance[0] * precisions
    total = grown @ weight - weight.sum()
    far = np.count_nonzero(grown > 1.0 + SECOND / weight, axis=1)
    beyond = np.flatnonzero((total > window.tolerance * len(weight)) | (far > 1))
    return int(beyond[0]) if len(beyond) else len(variance)
