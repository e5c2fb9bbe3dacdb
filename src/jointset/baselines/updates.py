"""Covariances that change by rank-one updates: all scores of a block of steps from one factorisation.

S_t = scale_t (S + sum_{k < active_t} sign_k u_k u_k'), t = 1..T. With S = R R' and white columns v_k = R^-1 u_k the
matrix M = diag(sign) + V'V has a factorisation M = L D L' whose leading parts are those of every prefix of updates, so
one factorisation serves all steps:

    e' S_t^-1 e = (|z|^2 - sum_{k < active_t} x_k^2 / d_k) / scale_t,   z = R^-1 e,  L x = V'z   (Woodbury)
    log det S_t = N log scale_t + log det S + sum_{k < active_t} log |d_k|                        (determinant lemma)

This costs O(N^2 + N K + K^2) a step for K updates, where a factorisation costs O(N^3). When the residual scored at t is
the one that makes up update active_t, u = weight_t e, its distance is there already: (d - 1) / weight_t^2 / scale_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrmm, dtrsm, sgemm, strmm
from scipy.linalg.lapack import dgetrf, dpotrf, dtrtri

from jointset.contracts import Array
from jointset.covariance import Covariance
from jointset.errors import require

BLOCK = 48
CLOSE = 1e-9  # of a standard deviation: residuals that are one another's, through other units and back
NOT_DEFINITE = "a moving covariance is not positive definite: raise its jitter, or drop duplicate sensors"


@dataclass(frozen=True)
class UpdatedCovariance:
    """Covariances of T steps as updates (K, N) of one base, each with sign 1; `active` (T,) and `scale` (T,).

    Update active_t, the first that does not count at step t, is weight_t times the residual of that step.
    """

    base: Array
    updates: Array
    active: Array
    scale: Array
    weight: Array

    @cached_property
    def _root(self) -> Array:
        return factor(self.base)

    @cached_property
    def _white(self) -> Array:
        return solve_lower(self._root, self.updates.T)

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """L (K, K), unit lower triangular, and d (K,)."""
        gram = self._white.T @ self._white
        gram[np.diag_indices_from(gram)] += 1.0
        root = np.linalg.cholesky(gram)
        pivots = root.diagonal()
        return root / pivots, pivots**2

    @cached_property
    def _chosen(self) -> Array:
        """Updates that count (K, T), as 0 and 1."""
        return (np.arange(len(self.updates))[:, None] < self.active).astype(float)

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N), each under the covariance of its step."""
        gap = e * self.weight[:, None]
        gap -= self.updates[self._active]
        close = CLOSE * self.weight.min(initial=np.inf) * np.sqrt(self.base.diagonal())
        if (np.abs(gap, out=gap).max(axis=0, initial=0.0) <= close).all():
            return (self._factors[1][self.active] - 1.0) / (self.weight**2 * self.scale)
        z = solve_lower(self._root, e.T)
        plain = np.einsum("it,it->t", z, z)
        L, d = self._factors
        x = solve_lower(L, self._white.T @ z)
        x *= x
        x *= self._chosen
        return (plain - (1.0 / d) @ x) / self.scale

    @cached_property
    def log_det(self) -> Array:
        """log det (T,)."""
        steps = np.log(np.abs(self._factors[1]))
        grown = np.concatenate(([0.0], np.cumsum(steps)))[self.active]
        start = 2.0 * np.log(self._root.diagonal()).sum()
        return start + self.updates.shape[1] * np.log(self.scale) + grown

    @cached_property
    def variance(self) -> Array:
        """Diagonals (T, N)."""
        grown = np.empty((len(self.updates) + 1, self.updates.shape[1]))
        grown[0] = self.base.diagonal()
        np.square(self.updates, out=grown[1:])
        np.cumsum(grown, axis=0, out=grown)
        return self.scale[:, None] * grown[self._active]

    @property
    def _active(self) -> Any:
        """The active updates as a slice where they follow one another, which needs no copy."""
        first, last = (self.active[0], self.active[-1]) if len(self.active) else (0, -1)
        return slice(first, last + 1) if last - first + 1 == len(self.active) else self.active

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""
        return Covariance(self.matrix(t))

    def matrix(self, t: int) -> Array:
        """The covariance (N, N) of one step."""
        used = self.updates[: self.active[t]]
        return self.scale[t] * (self.base + used.T @ used)


def factor(matrix: Array) -> Array:
    """Lower Cholesky factor, in the order in which solving with it needs no copy."""
    root, failed = dpotrf(matrix if matrix.flags.f_contiguous else matrix.T, lower=1, clean=1)
    require(failed == 0, NOT_DEFINITE)
    return root


def solve_lower(lower: Array, right: Array) -> Array:
    """lower^-1 right, in the order of `right`."""
    if right.flags.c_contiguous:  # its transpose is in the order of Fortran: no copy
        return dtrsm(1.0, lower, right.T, side=1, lower=1, trans_a=1).T
    return dtrsm(1.0, lower, right, lower=1)


def inverse_root(matrix: Array, out: Array | None = None, leaf: int = 64) -> Array:
    """R^-1 for a matrix R R', R lower triangular, of which the lower triangle is read; in the order of Fortran.

    By halves, so that most of the work is matrix products. `out` may be given; only its lower triangle is written.
    """
    size = len(matrix)
    if out is None:
        out = np.zeros((size, size), order="F")
    if size <= leaf:
        root, failed = dpotrf(np.array(matrix, order="F"), lower=1, clean=1, overwrite_a=1)
        require(failed == 0, NOT_DEFINITE)
        out[...] = dtrtri(root, lower=1, overwrite_c=1)[0]
        return out
    half = size // 2
    first = np.asfortranarray(inverse_root(matrix[:half, :half], out[:half, :half], leaf))
    corner = dtrmm(1.0, first, matrix[half:, :half], side=1, lower=1, trans_a=1)  # R of the rows of the second half
    rest = dsyrk(-1.0, corner, 1.0, matrix[half:, half:], lower=1)
    second = inverse_root(rest, out[half:, half:], leaf)
    corner = dtrmm(-1.0, first, corner, side=1, lower=1, overwrite_b=1)
    out[half:, :half] = dtrmm(1.0, second, corner, lower=1, overwrite_b=1)
    return out


def eliminate(gram: Array, right: Array) -> tuple[Array, Array]:
    """d (K,) and |D|^-1/2 L^-1 right (K, N), the latter in single precision, for a symmetric M = L D L'.

    Without pivoting, a block of rows at a time and in order, so that nothing depends on the rows that follow.
    """
    pivots, solved, done = [], right.astype(np.float32, order="C"), 0  # solved in place, block after block
    while left := len(gram):
        inverse, d = _leading_factors(gram if left <= BLOCK else gram[:BLOCK, :BLOCK])
        size, root = len(d), np.sqrt(np.abs(d))
        pivots.append(d)
        here, below = solved[done : done + size], solved[done + size :]
        strmm(1.0, (inverse / root).astype(np.float32), here.T, side=1, overwrite_b=1)
        if size == left:
            break
        upper = dtrmm(1.0, inverse, gram[size:, :size], side=1, diag=1)  # L D of the rows below
        ratio = upper / d
        sgemm(-1.0, here.T, (ratio * root).astype(np.float32), 1.0, below.T, trans_b=1, overwrite_c=1)
        gram = gram[size:, size:] - ratio @ upper.T
        done += size
    return np.concatenate(pivots), solved


def _leading_factors(gram: Array) -> tuple[Array, Array]:
    """L'^-1 and d by LAPACK's LU, in order as each row is made smaller than the last.

    The factors of the rows (2^-20, 2^-40, .. in a whole block) are taken out again without rounding. Where a row is so
    large that the order does not hold, the answer is for the first half of the rows, with factors further apart.
    """
    size = len(gram)
    scale, order, above = _scales(size)
    upper, found, failed = dgetrf((gram * scale).T, overwrite_a=1)
    if failed or found.astype(np.int32).tobytes() != order:
        require(size > 1, NOT_DEFINITE)
        return _leading_factors(gram[: size // 2, : size // 2])
    pivots = upper.diagonal().copy()
    upper *= above  # what lies below is not read, and may not overflow
    upper /= pivots[:, None]
    return dtrtri(upper, unitdiag=1, overwrite_c=1)[0], pivots / scale


@lru_cache(maxsize=BLOCK)
def _scales(size: int) -> tuple[Array, bytes, Array]:
    """Factors of the rows, the order in which LAPACK is to take them, and 1 on and above the diagonal."""
    scale = np.ldexp(1.0, -(960 // max(size, BLOCK // 2)) * np.arange(size))
    return scale, np.arange(size, dtype=np.int32).tobytes(), np.triu(np.ones((size, size))).copy(order="F")
