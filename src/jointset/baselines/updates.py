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

import numpy as np

from jointset.contracts import Array
from jointset.errors import require


@dataclass(frozen=True)
class UpdatedCovariance:
    """Covariances of T steps as updates (K, N) of one base; `signs` (K,) are 1 or -1, `active` (T,) and `scale` (T,).

    Every prefix of the updates must leave the matrix positive definite. Update active_t, the first that does not count
    at step t, is weight_t times the residual of that step.
    """

    base: Array
    updates: Array
    signs: Array
    active: Array
    scale: Array
    weight: Array

    @cached_property
    def _root(self) -> Array:
        return _factor(self.base)

    @cached_property
    def _white(self) -> Array:
        return _solve(self._root, self.updates.T)

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """L (K, K), unit lower triangular, and d (K,)."""
        gram = self._white.T @ self._white
        gram[np.diag_indices_from(gram)] += self.signs
        if (self.signs > 0).all():
            root = np.linalg.cholesky(gram)
            pivots = root.diagonal()
            return root / pivots, pivots**2
        return _signed_factors(gram)

    @cached_property
    def _chosen(self) -> Array:
        """Updates that count (K, T), as 0 and 1."""
        return (np.arange(len(self.updates))[:, None] < self.active).astype(float)

    @property
    def _close(self) -> float:
        """Rounding of residuals that went through other units and back."""
        return 1e-11 * float(np.abs(self.updates).max(initial=0.0))

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (T,) of residuals (T, N), each under the covariance of its step."""
        if np.abs(e * self.weight[:, None] - self.updates[self.active]).max(initial=0.0) <= self._close:
            return (self._factors[1][self.active] - 1.0) / (self.weight**2 * self.scale)
        z = _solve(self._root, e.T)
        plain = np.einsum("it,it->t", z, z)
        L, d = self._factors
        x = _solve(L, self._white.T @ z)
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
        grown = np.cumsum(self.signs[:, None] * self.updates**2, axis=0)
        grown = np.concatenate([np.zeros((1, self.updates.shape[1])), grown])[self.active]
        return self.scale[:, None] * (self.base.diagonal() + grown)

    def matrix(self, t: int) -> Array:
        """The covariance (N, N) of one step."""
        used = self.updates[: self.active[t]]
        return self.scale[t] * (self.base + (used.T * self.signs[: self.active[t]]) @ used)


def _factor(matrix: Array) -> Array:
    """Lower Cholesky factor, in the order in which solving with it needs no copy."""
    from scipy.linalg.lapack import dpotrf  # here, so that importing jointset stays fast

    root, failed = dpotrf(matrix, lower=1, clean=1)
    require(failed == 0, "a moving covariance is not positive definite: raise its jitter, or drop duplicate sensors")
    return root


def _solve(lower: Array, right: Array) -> Array:
    from scipy.linalg.blas import dtrsm

    return dtrsm(1.0, lower, right, lower=1)


def _signed_factors(gram: Array, block: int = 32) -> tuple[Array, Array]:
    """M = L D L' without pivoting, which keeps the leading parts; D has the signs of the updates."""
    size = len(gram)
    L, d, rest = np.eye(size), np.empty(size), gram.copy()
    for start in range(0, size, block):
        here, below = slice(start, start + block), slice(start + block, size)
        L[here, here], d[here] = _small_factors(rest[here, here])
        if start + block < size:
            scaled = _solve(L[here, here], rest[here, below])  # D L21'
            L[below, here] = scaled.T / d[here]
            rest[below, below] -= L[below, here] @ scaled
    return L, d


def _small_factors(gram: Array) -> tuple[Array, Array]:
    size = len(gram)
    L, d = np.eye(size), np.empty(size)
    for k in range(size):
        column = gram[k:, k] - L[k:, :k] @ (d[:k] * L[k, :k])
        d[k] = column[0]
        L[k + 1 :, k] = column[1:] / d[k]
    return L, d
