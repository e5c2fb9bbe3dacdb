"""Dense covariances with their factorisations computed once, and the distance between Gaussian laws."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from jointset import lowrank
from jointset.contracts import Array
from jointset.errors import InputError, require


def bures_wasserstein(mean_a: Array, root_a: Array, mean_b: Array, root_b: Array) -> float:
    """Distance of N(mean_a, A A') and N(mean_b, B B') from any square roots A, B (N, k).

    The covariance part tr(S + T - 2 (T^1/2 S T^1/2)^1/2) equals min_O |A - B O|_F^2 over orthogonal O (orthogonal
    Procrustes). Evaluating that norm, instead of the trace, keeps small distances exact: no cancellation.
    """
    U, _, Vt = np.linalg.svd(root_b.T @ root_a)
    gap = root_a - root_b @ (U @ Vt)
    return float(np.sqrt(np.sum((mean_a - mean_b) ** 2) + np.sum(gap**2)))


class Covariance:
    """A covariance matrix (N, N), or one for each step (T, N, N), with its factorisations computed once."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = np.asarray(matrix, dtype=float)
        shape = self.matrix.shape
        require(
            len(shape) in (2, 3) and shape[-1] == shape[-2],
            f"a covariance needs shape (N, N) or (T, N, N), got {shape}",
        )
        self._rescaled: tuple[Array, Covariance] | None = None

    @property
    def shared(self) -> bool:
        """Whether one matrix serves all steps."""
        return self.matrix.ndim == 2

    @cached_property
    def root(self) -> Array:
        """Lower Cholesky factor."""
        try:
            return np.linalg.cholesky(self.matrix)
        except np.linalg.LinAlgError:
            raise InputError(
                "the covariance is not positive definite: remove duplicate or constant sensors, or add a ridge"
            ) from None

    @cached_property
    def whitener(self) -> Array:
        """Inverse of the Cholesky factor: |W e|^2 is the squared Mahalanobis distance."""
        if self.shared:
            from scipy.linalg import solve_triangular  # here, so that importing jointset stays fast

            return solve_triangular(self.root, np.eye(len(self.root)), lower=True)
        return np.linalg.inv(self.root)

    @cached_property
    def precision(self) -> Array:
        """Inverse covariance."""
        return lowrank.transpose(self.whitener) @ self.whitener

    @cached_property
    def log_det(self) -> Array:
        """log det."""
        return 2.0 * np.log(self.root.diagonal(0, -2, -1)).sum(-1)

    @cached_property
    def variance(self) -> Array:
        """Diagonal."""
        return np.ascontiguousarray(self.matrix.diagonal(0, -2, -1))

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (...) of residuals (..., N)."""
        white = e @ self.whitener.T if self.shared else lowrank.apply(self.whitener, e)
        return np.einsum("...i,...i->...", white, white)

    def rescale(self, scale: Array) -> Covariance:
        """Covariance of scale * Y. The last result is kept: a filter at rest emits one covariance for ever."""
        if self._rescaled is None or self._rescaled[0] is not scale:
            self._rescaled = (scale, Covariance(self.matrix * (scale[:, None] * scale)))
        return self._rescaled[1]

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (..., N) amount to, and all: k^2 / sum of squared correlations."""
        sd = np.sqrt(self.variance)
        squares = (self.matrix / (sd[..., :, None] * sd[..., None, :])) ** 2
        weight = seen.astype(float)
        some = (weight * (weight @ squares if self.shared else lowrank.apply(squares, weight))).sum(-1)
        every = np.broadcast_to(squares.sum((-1, -2)), some.shape)
        return weight.sum(-1) ** 2 / np.maximum(some, 1.0), seen.shape[-1] ** 2 / every

    def __getitem__(self, index: Any) -> Covariance:
        return self if self.shared else Covariance(self.matrix[index])

    def observed(self, missing: Array) -> Covariance:
        """Covariance with missing sensors (..., N) cut out: identity in their place.

        With a zero residual there, distance and log-determinant are exactly those of the marginal law.
        """
        seen = ~missing
        pairs = seen[..., :, None] & seen[..., None, :]
        return Covariance(np.where(pairs, self.matrix, np.eye(missing.shape[-1])))
