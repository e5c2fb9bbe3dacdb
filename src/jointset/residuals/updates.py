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
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from jointset.algebra.covariance import Covariance
from jointset.contracts import Array
from jointset.errors import require

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
