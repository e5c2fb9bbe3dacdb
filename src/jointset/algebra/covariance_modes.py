"""Covariances in special form: diagonal in a fixed basis but for a low rank, or raised by a number."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.covariance import FEW, Covariance
from jointset.algebra.covariance_gaps import Bordered, Cut, Marginal
from jointset.algebra.triangles import add_to_diagonal, cholesky, solve_lower
from jointset.contracts import Array

SMALL = 64  # sensors up to which rows with gaps are taken from the precision, formed


class ModeCovariance(Covariance):
    """U (diag(d) + V V') U': basis U (N, N), its columns orthonormal, d (N,) > 0 and V (N, r), all of rank r small.

    Without a basis the modes are the sensors themselves. Nothing of size N x N is formed unless it is asked for.
    `plain` is the same without V where that is at hand.
    """

    def __init__(
        self,
        basis: Array | None,
        diagonal: Array,
        factor: Array | None = None,
        *,
        plain: ModeCovariance | None = None,
        lasting: bool = False,
    ) -> None:
        self.basis, self.diagonal, self.plain, self.lasting = basis, diagonal, plain, lasting
        self.factor = np.zeros((len(diagonal), 0)) if factor is None else factor
        self.weights = 1.0 / diagonal
        self.shape = (len(diagonal), len(diagonal))
        self.by_row = len(diagonal) > SMALL

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix, formed."""
        return self._block(slice(None))

    def _block(self, places: Any) -> Array:
        W = self._sensor_factor[places]
        if self.plain is not None:
            return self.plain.matrix[places][:, places] + W @ W.T
        if self.basis is None:
            return np.diag(self.diagonal[places]) + W @ W.T
        U = self.basis[places]
        return (U * self.diagonal) @ U.T + W @ W.T

    @cached_property
    def _sensor_factor(self) -> Array:
        """U V (N, r)."""
        return self.factor if self.basis is None else self.basis @ self.factor

    @cached_property
    def capacitance(self) -> Array:
        """I + V' diag(1/d) V (r, r)."""
        return lowrank.capacitance(self.weights, self.factor)

    @cached_property
    def capacitance_root(self) -> Array:
        """Its lower Cholesky factor."""
        return cholesky(self.capacitance)

    @cached_property
    def variance(self) -> Array:
        """Diagonal."""
        before = self._diagonal(self.diagonal) if self.plain is None else self.plain.variance
        return before + (self._sensor_factor**2).sum(-1)

    @cached_property
    def precision_diagonal(self) -> Array:
        """Diagonal of the inverse, by Woodbury."""
        lost = solve_lower(self.capacitance_root, (self.weights[:, None] * self.factor).T)
        before = self._diagonal(self.weights) if self.plain is None else self.plain.precision_diagonal
        return before - (self.from_coordinates(lost) ** 2).sum(0)

    def _diagonal(self, values: Array) -> Array:
        """Diagonal of U diag(values) U'."""
        return values if self.basis is None else np.einsum("ij,ij->i", self.basis * values, self.basis)

    @cached_property
    def log_det(self) -> Array:
        """log det, by the determinant lemma."""
        return np.log(self.diagonal).sum() + 2.0 * np.log(self.capacitance_root.diagonal()).sum()

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (...) of residuals (..., N)."""
        return self.coordinate_distance(self.coordinates(e))

    def solve(self, e: Array) -> Array:
        """S^-1 e (..., N)."""
        return self.from_coordinates(self.solve_coordinates(self.coordinates(e)))

    def select(self, places: Array) -> Covariance:
        """Covariance of the sensors at these places."""
        if self.basis is None:
            return ModeCovariance(None, self.diagonal[places], self.factor[places])
        return super().select(places) if self.lasting else Covariance(self._block(places))

    def factorised(self) -> Covariance:
        """As it is."""
        return self

    def bare(self) -> Covariance:
        """The same without what can be computed again, unless it lasts."""
        return self if self.lasting else ModeCovariance(self.basis, self.diagonal, self.factor, plain=self.plain)

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` amount to, and all."""
        if self.basis is None and not self.factor.shape[1]:
            return seen.sum(-1).astype(float), np.broadcast_to(float(seen.shape[-1]), seen.shape[:-1])
        return super().effective_sensors(seen)

    def _without(self, missing: Array) -> Marginal:
        k = missing.sum()
        few = k > 0 and self.basis is not None and k + self.factor.shape[1] <= FEW * len(missing)
        return Bordered(self, missing) if few else Cut(self, missing)

    def coordinates(self, e: Array) -> Array:
        """Residuals (..., N) on the modes."""
        return e if self.basis is None else e @ self.basis

    def from_coordinates(self, x: Array) -> Array:
        """Back to the sensors."""
        return x if self.basis is None else x @ self.basis.T

    def units(self, places: Array) -> Array:
        """The sensors at these places on the modes (k, N)."""
        return super().units(places) if self.basis is None else self.basis[places]

    def solve_coordinates(self, x: Array) -> Array:
        """S^-1 x (..., N) on the modes, by Woodbury."""
        w, V = self.weights, self.factor
        if not V.shape[1]:
            return w * x
        return w * (x - np.linalg.solve(self.capacitance, V.T @ (w * x).T).T @ V.T)

    def coordinate_distance(self, x: Array) -> Array:
        """x' S^-1 x (...) on the modes, as |x - V z|^2 + |z|^2: a sum of squares, never negative."""
        w, V = self.weights, self.factor
        if not V.shape[1]:
            return np.einsum("...i,...i->...", x * w, x)  # row by row alike: equal rows have equal distances
        z = np.linalg.solve(self.capacitance, V.T @ (w * x).T).T
        rest = x - z @ V.T
        return np.einsum("...i,...i->...", rest * w, rest) + (z * z).sum(-1)


class Raised(Covariance):
    """A matrix (N, N) that somebody else keeps, plus a number on its diagonal; copied only where the sum is needed."""

    lasting = False

    def __init__(self, below: Array, number: float) -> None:
        self.below, self.number, self.shape = below, number, below.shape

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix, formed."""
        sum_ = self.below.copy()
        add_to_diagonal(sum_, self.number)
        return sum_

    @cached_property
    def variance(self) -> Array:
        """Diagonal."""
        return self.below.diagonal() + self.number

    def select(self, places: Array) -> Covariance:
        """Covariance of the sensors at these places."""
        block = self.below.take(places, axis=0).take(places, axis=1)
        add_to_diagonal(block, self.number)
        return Covariance(block)

    def rows(self, places: Array) -> Array:
        """Rows (k, N) of the matrix at these places."""
        rows = self.below.take(places, axis=0)
        rows[np.arange(len(places)), places] += self.number
        return rows

    def bare(self) -> Covariance:
        """The same without what can be computed again."""
        return Raised(self.below, self.number)
