"""A moving covariance through rows with gaps: its precision goes on by what each row changes, a small one at that.

Let P be the precision of S, M the m sensors that a row lacks, e its residual with zeros there. What is to be expected
of e e' given what was read is f f' + C, f being e filled by what the others let expect, C the covariance of what it
lacks. With the m + 1 rows T = (unit vectors of M; e) and

    L L' = T P T' + diag(0, ..., 0, w / (1 - w)),   W = L^-1 T

the last row of W is f over its pivot l in L, the squares of the others make up C, and l^2 - w / (1 - w) is the distance
of what was read. P f is 0 on M, so by Woodbury the precision of w S + (1 - w) (f f' + C) is (P - (1 - w) P V'V P) / w,
where V is W with its last row over sqrt(1 - w). So a row costs a factorisation of the size of what is missing; S itself
is summed up at the end, from the rows of every V.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from jointset.algebra.covariance import Covariance
from jointset.algebra.triangles import mirrored
from jointset.contracts import Array
from jointset.errors import InputError
from jointset.residuals.incomplete import expected_moment
from jointset.residuals.updates import CLOSE, NOT_DEFINITE

FAR = 1e3  # growth of the determinant in one row beyond which a precision that goes on would lose digits
NUMBERS = 4_000_000  # that the T of a course may hold


class GapCourse:
    """S_{t+1} = w S_t + (1 - w) E[e e'] through residuals (T, N), from `base`, plus jitter that fades with w.

    It ends at row `stop`: where they do, after a row so far out that the precision has to be made anew, or where the
    next would take too much memory. `base` is then S after the last row with gaps, `moved` the rows with a reading up
    to there, `pending` the complete ones since.
    """

    def __init__(self, base: Array, rows: Array, decay: float, jitter: float) -> None:
        self.start, self.decay, self.jitter = base, decay, jitter
        missing = np.isnan(rows)
        counts = np.where(missing.all(axis=1), 0, missing.sum(axis=1) + 1)  # rows of T
        fit = max(1, int(np.searchsorted(np.cumsum(counts) * len(base), NUMBERS, side="right")))
        pivots, solved = self._walk(rows[:fit], missing[:fit], counts[:fit])
        self.stop = stop = len(pivots)
        self.rows, self._missing, counts, grown = rows[:stop], missing[:stop], counts[:stop], np.array(pivots)
        moves, own = counts > 0, decay / (1.0 - decay)
        self.distances = np.where(moves, grown**2 - own, np.nan)
        self._sum_up(solved, np.sqrt(1.0 - decay) * grown, counts, moves)
        steps = (len(base) + 1 - counts) * np.log(decay) + np.log1p(self.distances / own)
        steps = np.cumsum(np.where(moves, steps, 0.0))
        self.log_det = self._first_log_det + np.concatenate([[0.0], steps[:-1]])

    def _walk(self, rows: Array, missing: Array, counts: Array) -> tuple[list[float], list[Array]]:
        """Through the rows: the last pivot of each L, 0 where nothing was read, and every V."""
        w, root, at, P = self.decay, (1.0 - self.decay) ** 0.5, 0, self._precision()
        every, own, less, more = _rows_of_t(rows, missing, counts), w / (1.0 - w), (w - 1.0) / w, 1.0 / w
        pivots: list[float] = []
        solved: list[Array] = []
        for count in counts.tolist():
            if not count:
                pivots.append(0.0)
                continue
            T = every[at : at + count]
            at += count
            G = T.dot(P).dot(T.T)
            G[-1, -1] += own
            L, failed = dpotrf(G.T, 1, 0, 1)  # lower, not cleaned, in its place: names would cost as much as the sums
            if failed:
                raise InputError(NOT_DEFINITE)
            pivot = L[-1, -1]
            L[-1, -1] = root * pivot
            V = dtrtrs(L, T, 1)[0]  # lower
            Y = V.dot(P).T
            P = dgemm(less, Y, Y, more, P, 0, 1, 1)  # Y Y', in the place of P
            pivots.append(pivot)
            solved.append(V)
            if pivot * pivot > FAR * own:
                break
        return pivots, solved

    def _precision(self) -> Array:
        """P before the first row, in the order of Fortran; the log-determinant of its inverse is kept."""
        S = self.start + np.diag(np.full(len(self.start), self.jitter))
        root, failed = dpotrf(S.T, lower=0)
        if failed:
            raise InputError(NOT_DEFINITE)
        self._first_log_det = 2.0 * np.log(root.diagonal()).sum()
        return np.asfortranarray(mirrored(dpotri(root, lower=0)[0]))

    def _sum_up(self, solved: list[Array], lengths: Array, counts: Array, moves: Array) -> None:
        """S after the last row with gaps, and the variances before every row."""
        w, n, squares = self.decay, len(self.start), np.zeros(self.rows.shape)
        after = np.cumsum(moves)  # rows that moved S, up to each
        partial = np.flatnonzero(counts > 1)
        last = int(partial[-1]) if len(partial) else -1
        self.moved, self.pending = int(after[last]) if last >= 0 else 0, self.rows[last + 1 :][moves[last + 1 :]]
        ends = np.cumsum(counts)
        lines = np.concatenate([*solved, np.empty((0, n))])
        lines[ends[moves] - 1] *= lengths[moves, None]
        squares[moves] = np.add.reduceat(lines**2, (ends - counts)[moves]) if len(lines) else 0.0
        used = lines[: ends[last] if last >= 0 else 0]
        weight = np.sqrt((1.0 - w) * w ** (self.moved - after.astype(float)))
        used *= np.repeat(weight, counts)[: len(used), None]
        self.base = w**self.moved * self.start + used.T @ used
        before = (after - moves)[:, None].astype(float)
        grown = np.cumsum((1.0 - w) * w ** (-1.0 - before) * squares, axis=0)
        grown = np.concatenate([np.zeros((1, n)), grown[:-1]]) + self.start.diagonal() + self.jitter
        self.variance = w**before * grown

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
        """The covariances (T, N, N), row by row."""
        w, S = self.decay, self.start + np.diag(np.full(len(self.start), self.jitter))
        kept = np.empty((len(self.rows), *S.shape))
        for t, row in enumerate(self.rows):
            kept[t] = S
            if not self._missing[t].all():
                filled, unknown = expected_moment(S, row) if self._missing[t].any() else (row, 0.0)
                S = w * S + (1.0 - w) * (filled[:, None] * filled + unknown)
        return kept

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        return Covariance(self._matrices[t])


def _rows_of_t(rows: Array, missing: Array, counts: Array) -> Array:
    """The T of every row, one below the other."""
    moves, ends = counts > 0, np.cumsum(counts)
    out, unit = np.zeros((int(counts.sum()), rows.shape[1])), np.ones(int(counts.sum()), dtype=bool)
    unit[ends[moves] - 1] = False
    out[unit, np.nonzero(missing & moves[:, None])[1]] = 1.0
    out[~unit] = np.where(missing, 0.0, rows)[moves]
    return out


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
