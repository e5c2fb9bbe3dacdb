"""Covariance of a sliding window, shrunk to its own diagonal: S_t = (1 - s) C_t + s diag C_t + jitter I, exactly.

The second moment C_t of the last `length` residuals moves by one update and one downdate a step, and is made
anew from the window every `refresh` rows, and where a variance has fallen so far below its peak since then
that the difference would have lost digits (an outlier has left). Each S_t is factorised: O(N^3) a step.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dtrtrs

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array
from jointset.errors import require
from jointset.residuals.gap_course import ordered_root
from jointset.residuals.shapes import RollingState
from jointset.residuals.shrinkage import gram
from jointset.residuals.updates import NOT_DEFINITE

FALL = 1e-5  # of its peak: a sum of squares that has fallen so far is made anew


class Shrinkage(NamedTuple):
    """How S is made from the E'E of a window: the number of its rows, s, what is added to the diagonal."""

    length: int
    shrink: float
    jitter: float

    def matrix(self, squares: Array) -> Array:
        """S (N, N), its lower triangle, in the order of Fortran."""
        S = (1.0 - self.shrink) / self.length * squares
        np.einsum("ii->i", S)[:] = self.variance(squares.diagonal())
        return S

    def whole(self, squares: Array) -> Array:
        """S (N, N), both triangles."""
        lower = self.matrix(squares)  # nothing is above its diagonal
        full = lower + lower.T
        np.einsum("ii->i", full)[:] = lower.diagonal()
        return full

    def variance(self, squares: Array) -> Array:
        """Diagonal of S from that of E'E (..., N)."""
        return squares / self.length + self.jitter


def start_rolling(window: Array) -> RollingState:
    """The state at the end of a window (length, N)."""
    squares = np.asfortranarray(np.tril(gram(window)))
    return RollingState(np.array(window, dtype=float), squares, squares.diagonal().copy(), 0)


def slide_window(state: RollingState, row: Array, refresh: int) -> RollingState:
    """The state after one complete residual (N,)."""
    window = np.concatenate([state.window[1:], row[None]])
    squares = move(state.squares.copy(order="F"), row, state.window[0])
    diagonal, peak = squares.diagonal(), np.maximum(state.peak, state.squares.diagonal() + row**2)
    if state.age + 1 >= refresh or not (diagonal > FALL * peak).all():
        return start_rolling(window)
    return RollingState(window, squares, peak, state.age + 1)


def move(squares: Array, entering: Array, leaving: Array) -> Array:
    """E'E (lower triangle, in place) after one row has come and one has gone."""
    squares = dsyr(1.0, entering, lower=1, a=squares, overwrite_a=1)
    return dsyr(-1.0, leaving, lower=1, a=squares, overwrite_a=1)


class SlidingCovariance:
    """Covariances of T steps; before step t the window moved by the first `active` (T,) of the pairs (K, N)."""

    def __init__(self, how: Shrinkage, squares: Array, entering: Array, leaving: Array, active: Array) -> None:
        self.how, self.squares, self.entering, self.leaving, self.active = how, squares, entering, leaving, active
        self._log_det: Array | None = None

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N), each under the covariance of its step."""
        return self.partial_distance(e, np.zeros(e.shape, dtype=bool))

    def partial_distance(self, e: Array, missing: Array) -> Array:
        """The same on what was read; residuals are 0 where missing."""
        out, log_det, n = np.empty(len(e)), np.empty(len(e)), e.shape[1]
        squares, done, root, level = self.squares.copy(order="F"), 0, None, 0.0
        orders, read = np.argsort(missing, axis=1, kind="stable"), (n - missing.sum(axis=1)).tolist()
        for t, active in enumerate(self.active.tolist()):
            for k in range(done, active):
                squares, root = move(squares, self.entering[k], self.leaving[k]), None
            done = active
            if read[t] < n:
                own = ordered_root(self.how.whole(squares), orders[t])
                white = dtrtrs(own, e[t].take(orders[t]), lower=1)[0][: read[t]]
                log_det[t] = 2.0 * np.log(own.diagonal()).sum()
            else:
                if root is None:
                    root, failed = dpotrf(self.how.matrix(squares), lower=1, clean=0, overwrite_a=1)
                    require(failed == 0, NOT_DEFINITE)
                    level = 2.0 * np.log(root.diagonal()).sum()
                white, log_det[t] = dtrtrs(root, e[t], lower=1)[0], level
            out[t] = white @ white
        self._log_det = log_det
        return out

    @property
    def log_det(self) -> Array:
        """log det (T,)."""
        if self._log_det is None:
            self.distance(np.zeros((len(self.active), len(self.squares))))
        assert self._log_det is not None
        return self._log_det

    @cached_property
    def variance(self) -> Array:
        """Diagonals (T, N)."""
        diagonals = [self.squares.diagonal()]
        for entering, leaving in zip(self.entering, self.leaving, strict=True):
            diagonals.append(diagonals[-1] + entering**2 - leaving**2)
        return self.how.variance(np.array(diagonals)[self.active])

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        squares = self.squares.copy(order="F")
        for k in range(int(self.active[t])):
            squares = move(squares, self.entering[k], self.leaving[k])
        return Covariance(self.how.whole(squares))
