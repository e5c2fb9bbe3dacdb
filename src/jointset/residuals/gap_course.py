"""A moving covariance through rows with gaps: one factorisation a row, which gives all that the row needs.

With the sensors in the order read (o), then missing (M), S = L L' gives z = L_oo^-1 e_o, hence the distance |z|^2 of
what was read, the conditional mean L_Mo z of what was not, its conditional covariance L_MM L_MM', the log-determinant.
The expectation of e e' given what was read is U'U with rows f, the residual so filled, and L_MM' in the places of M.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dtrtrs

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array
from jointset.errors import InputError
from jointset.residuals.updates import CLOSE, NOT_DEFINITE


class GapCourse:
    """S_{t+1} = w S_t + (1 - w) E[e e'] through residuals (T, N), from `base`, with jitter on the diagonal.

    The jitter is whole at the start and after every row with gaps, and fades with w in complete ones between them.
    `base` is then S after the last row with gaps, `pending` the rows since.
    """

    def __init__(self, base: Array, rows: Array, decay: float, jitter: float) -> None:
        self.start, self.rows, self.decay, self.jitter = base, rows, decay, jitter
        steps, n = rows.shape
        self.distances, self.variance, pivots = np.full(steps, np.nan), np.empty((steps, n)), np.empty((steps, n))
        missing = np.isnan(rows)
        self._missing, counts = missing, missing.sum(axis=1)
        last = np.flatnonzero((counts > 0) & (counts < n))
        self.last = int(last[-1]) if len(last) else -1
        self._run(pivots, counts.tolist(), np.argsort(missing, axis=1, kind="stable"))
        self.log_det = 2.0 * np.log(pivots).sum(axis=1)

    def _run(self, pivots: Array, counts: list[int], orders: Array, kept: Array | None = None) -> None:
        """Through all rows; S with its jitter before each goes into `kept` (T, N, N)."""
        w, n, jitter = self.decay, len(self.start), self.jitter
        J = np.array(self.start, order="F")
        diagonal = J.T.reshape(-1)[:: n + 1]
        diagonal += jitter
        inside, known = jitter, np.where(self._missing, 0.0, self.rows)
        sorted_rows = np.take_along_axis(known, orders, axis=1)
        self.base = self.start
        for t, lacks in enumerate(counts):
            self.variance[t] = diagonal
            if kept is not None:
                kept[t] = J
            order, read = orders[t], n - lacks
            L = ordered_root(J, order if lacks else None)
            pivots[t] = L.diagonal()
            if not read:
                continue
            z = dtrtrs(L, sorted_rows[t], lower=1)[0][:read]
            self.distances[t] = z @ z
            if not lacks:
                e = known[t, :, None]
                J, inside = dgemm(1.0 - w, e, e, w, J, trans_b=1, overwrite_c=1), inside * w
                continue
            if inside != jitter:
                diagonal += jitter - inside
                L = ordered_root(J, order)
                z = dtrtrs(L, sorted_rows[t], lower=1)[0][:read]
            places, U = order[read:], np.zeros((lacks + 1, n))
            U[0] = known[t]
            U[0, places] = L[read:, :read] @ z
            U[1:, places] = L[read:, read:].T
            J = dgemm(1.0 - w, U.T, U.T, w, J, trans_b=1, overwrite_c=1)
            diagonal += (1.0 - w) * jitter
            inside = jitter
            if t == self.last:
                self.base = np.array(J, order="C")
                self.base.reshape(-1)[:: n + 1] -= jitter

    @property
    def pending(self) -> Array:
        """The rows since the last one with gaps."""
        return self.rows[self.last + 1 :]

    def distance(self, e: Array) -> Array:
        """Squared distances (T,) of complete residuals (T, N), each under the covariance of its step."""
        return self.partial_distance(e, np.zeros(e.shape, dtype=bool))

    def partial_distance(self, e: Array, missing: Array) -> Array:
        """The same on what was read; residuals are 0 where missing. Those of the course itself have theirs already."""
        if np.array_equal(missing, self._missing):
            gap = np.abs(e - np.where(missing, 0.0, self.rows))
            if (gap <= CLOSE * np.sqrt(self.variance)).all():
                return self.distances
        return Covariance(self._matrices).observed(missing).distance(e)

    @cached_property
    def _matrices(self) -> Array:
        """The covariances (T, N, N), by the same course again."""
        kept = np.empty((*self.rows.shape, self.rows.shape[1]))
        orders = np.argsort(self._missing, axis=1, kind="stable")
        self._run(np.empty(self.rows.shape), self._missing.sum(axis=1).tolist(), orders, kept)
        return kept

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        return Covariance(self._matrices[t])


def expected_residual(S: Array, e: Array) -> Array:
    """A residual (N,) with its gaps at what the others let expect under covariance S."""
    missing = np.isnan(e)
    order, read = np.argsort(missing, kind="stable"), len(e) - int(missing.sum())
    filled = np.where(missing, 0.0, e)
    L = ordered_root(S, order)
    z = dtrtrs(L, filled.take(order), lower=1)[0][:read]
    filled[order[read:]] = L[read:, :read] @ z
    return filled


def ordered_root(J: Array, order: Array | None) -> Array:
    """Lower Cholesky factor of a covariance, its sensors in another order where that is given."""
    if order is None:
        root, failed = dpotrf(J.T, lower=1, clean=1)
    else:
        root, failed = dpotrf(J.take(order, 0).take(order, 1).T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise InputError(NOT_DEFINITE)
    return root
