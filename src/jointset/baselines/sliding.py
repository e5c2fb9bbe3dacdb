"""Covariance of a sliding window, shrunk to its own diagonal: S_t = (1 - s) C_t + s diag C_t + jitter I.

Over a segment of steps C_t changes by one update and one downdate a step, which one factorisation serves
(`jointset.baselines.updates`). The target s diag C_t moves in every sensor at once and is no low-rank change. So let
T_t be S_t with the target of the segment's start, S_t = T_t + diag(D_t). With P = T_t^-1, p = diag P, x = P e and
w_i = D_i / (1 + D_i p_i)

    log det S_t = log det T_t + sum_i log(1 + D_i p_i) + ...       e' S_t^-1 e = e'x - sum_i w_i x_i^2 + ...

both exact when a single sensor moves; what is left out is of second order in the others. P and x come from the updates.
A segment ends where mean_i |D_i| p_i passes a tolerance, so outages, which move all targets by a lot, start new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jointset.baselines.updates import add_gram, factor, inverse_factor, signed_factors, solve_lower
from jointset.contracts import Array
from jointset.covariance import Covariance


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
    """T + diag(D) with log-determinant and distances to first order in D, as in the head of the module."""

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
        """e'x - sum_i w_i x_i^2 (...) of residuals (..., N)."""
        white = np.asarray(e) @ self.start.whitener.T
        x = white @ self.start.whitener
        weight = self.drift / (1.0 + self.drift * self._precisions)
        return np.einsum("...i,...i->...", white, white) - (weight * x**2).sum(-1)

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


def segment(
    window: Window, base: Array, moment: Array, rows: Array, first: int
) -> tuple[int, SlidingCovariance | None, Array]:
    """How many of rows (j, N) after the window `base` form one segment, their covariances from row `first` on.

    `moment` (N, N) is the second moment of the window, in its lower triangle and in the order of Fortran; that of the
    window after the segment comes back too.
    """
    n = rows.shape[1]
    complete: Array = np.asarray(~np.isnan(rows).any(axis=1))
    coming, leaving = rows, base[: len(rows)]  # a row comes, and the oldest one leaves
    if not complete.all():
        coming, leaving = np.where(complete[:, None], rows, 0.0), base[np.cumsum(complete) - complete]
        leaving[~complete] = 0.0
    target = moment.diagonal()
    moved = np.zeros((len(rows) + 1, n))  # diag C_t - target
    change = np.square(coming)
    change -= np.square(leaving)
    change /= window.length
    np.cumsum(change, axis=0, out=moved[1:])
    root = factor(window.matrix(moment, target))
    whiten = inverse_factor(root)
    precisions = np.einsum("ki,ki->i", whiten, whiten)
    stop = _stop(window, moved[:-1], target, precisions)
    coming, leaving, moved = coming[:stop], leaving[:stop], moved[:stop]
    after = add_gram(add_gram(moment, coming, 1.0 / window.length), leaving, -1.0 / window.length)
    if stop <= first:
        return stop, None, after
    weight = np.sqrt((1.0 - window.shrink) / window.length)
    pairs = np.empty((stop, 2, n))
    np.multiply(coming, weight, out=pairs[:, 0])
    np.multiply(leaving, weight, out=pairs[:, 1])
    white = pairs.reshape(2 * stop, n) @ whiten.T
    gram = white @ white.T
    gram.flat[:: 2 * stop + 1] += np.tile([1.0, -1.0], stop)
    lower, pivots = signed_factors(gram)
    x = solve_lower(lower, white) @ whiten  # update k under the precision after the updates before it
    own_x = x[2 * first :: 2] / weight
    x *= x
    x /= pivots[:, None]
    p = np.empty((stop, n))  # diag P
    p[0] = precisions
    np.subtract(-x[0:-2:2], x[1:-2:2], out=p[1:])
    p = np.cumsum(p, axis=0, out=p)[first:]
    drift = window.shrink * moved[first:]
    p *= drift
    p += 1.0
    own_x *= own_x
    own_x *= drift
    own_x /= p
    steps = np.concatenate([[0.0], np.cumsum(np.log(np.abs(pivots)))])[2 * first : -1 : 2]
    log_det = 2.0 * np.log(root.diagonal()).sum() + steps + np.log(p, out=p).sum(axis=1)
    own = (pivots[2 * first :: 2] - 1.0) / weight**2 - own_x.sum(axis=1)
    variance = moved[first:] + (target + window.jitter)
    return stop, SlidingCovariance(window, base, rows[:stop], first, drift, variance, log_det, own), after


def _stop(window: Window, moved: Array, target: Array, precisions: Array) -> int:
    """First row whose target has moved too far; a target that shrinks lets the precision of its sensor grow."""
    now = np.maximum(target + moved, window.jitter)
    far = (np.abs(moved) * np.maximum(1.0, target / now)) @ precisions
    beyond = np.flatnonzero(window.shrink * far > window.tolerance * len(target))
    return int(beyond[0]) if len(beyond) else len(moved)
