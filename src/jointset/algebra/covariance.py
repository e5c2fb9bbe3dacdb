"""Covariances of a law with their factorisations computed once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.covariance_gaps import Bordered, Cut, Marginal, PartialRows
from jointset.algebra.triangles import cholesky, cholesky_in_place, mirrored, solve_lower
from jointset.contracts import Array, Index
from jointset.errors import require

FEW = 0.2  # share of the sensors up to which missing ones are taken from the whole instead of factorising the rest


class Covariance:
    """A covariance matrix (N, N), or one for each step (T, N, N), with its factorisations computed once.

    One that is `lasting` serves many readings, so that its inverse is worth having.
    """

    def __init__(self, matrix: Array, lasting: bool = False) -> None:
        self.matrix = np.asarray(matrix, dtype=float)
        self.shape: tuple[int, ...] = self.matrix.shape
        square = len(self.shape) in (2, 3) and self.shape[-1] == self.shape[-2]
        require(square, f"a covariance needs shape (N, N) or (T, N, N), got {self.shape}")
        self.lasting = lasting

    by_row = False  # whether rows with gaps are better taken one by one than from the precision
    _rescaled: tuple[Array, Covariance] | None = None
    _marginal: tuple[Array, Marginal] | None = None  # the last one, and what was missing

    @property
    def shared(self) -> bool:
        """Whether one matrix serves all steps."""
        return len(self.shape) == 2

    @cached_property
    def root(self) -> Array:
        """Lower Cholesky factor."""
        return cholesky(self.matrix)

    @cached_property
    def whitener(self) -> Array:
        """Inverse of the Cholesky factor: |W e|^2 is the squared Mahalanobis distance."""
        return solve_lower(self.root, np.eye(len(self.root))) if self.shared else np.linalg.inv(self.root)

    @cached_property
    def precision(self) -> Array:
        """Inverse covariance."""
        if not self.shared or not len(self.root):
            return lowrank.transpose(self.whitener) @ self.whitener
        from scipy.linalg.lapack import dpotri  # here, so that importing jointset stays fast

        return mirrored(dpotri(self.root.T, lower=0)[0])

    @cached_property
    def precision_diagonal(self) -> Array:
        """Diagonal of the inverse."""
        return np.ascontiguousarray(self.precision.diagonal(0, -2, -1))

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
        if not self.shared:
            white = np.linalg.solve(self.root, e[..., None])[..., 0]
        elif e.ndim == 1 and not self.lasting:
            white = solve_lower(self.root, e)
        else:
            white = e @ self.whitener.T
        return white @ white if e.ndim == 1 else np.einsum("...i,...i->...", white, white)

    def solve(self, e: Array) -> Array:
        """S^-1 e (..., N)."""
        return e @ self.precision if self.shared else lowrank.apply(self.precision, e)

    def precision_terms(self, e: Array) -> tuple[Array, Array]:
        """S^-1 e (..., N) and the diagonal of S^-1."""
        return self.solve(e), self.precision_diagonal

    def rescale(self, scale: Array) -> Covariance:
        """Covariance of scale * Y. The last result is kept: a filter at rest emits one covariance for ever."""
        if self._rescaled is None or self._rescaled[0] is not scale:
            self._rescaled = (scale, self._times(scale))
        return self._rescaled[1]

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (..., N) amount to, and all: k^2 / sum of squared correlations."""
        sd = np.sqrt(self.variance)
        squares = (self.matrix / (sd[..., :, None] * sd[..., None, :])) ** 2
        weight = seen.astype(float)
        some = (weight * (weight @ squares if self.shared else lowrank.apply(squares, weight))).sum(-1)
        every = np.broadcast_to(squares.sum((-1, -2)), some.shape)
        return weight.sum(-1) ** 2 / np.maximum(some, 1.0), seen.shape[-1] ** 2 / every

    def _times(self, scale: Array) -> Covariance:
        if self.shared:
            return Scaled(self, scale)
        other = Covariance(self.matrix * (scale[:, None] * scale))
        if "log_det" in self.__dict__:
            other.__dict__["log_det"] = self.log_det + 2.0 * np.log(np.abs(scale)).sum()
        return other

    def select(self, places: Array) -> Covariance:
        """Covariance of the sensors at these places."""
        return Covariance(self.matrix.take(places, axis=-2).take(places, axis=-1))

    def rows(self, places: Array) -> Array:
        """Rows (k, N) of the matrix at these places."""
        return self.matrix.take(places, axis=0)

    def factorised(self) -> Covariance:
        """The same with its root in the place of its matrix, which is given up."""
        self.root = cholesky_in_place(self.matrix)
        del self.matrix
        return self

    def bare(self) -> Covariance:
        """The same without what can be computed again, unless it lasts."""
        return self if self.lasting else Covariance(self.matrix)

    def __getitem__(self, index: Index) -> Covariance:
        if self.shared:
            return self
        some = Covariance(self.matrix[index])
        if "log_det" in self.__dict__:
            some.__dict__["log_det"] = self.log_det[index]
        return some

    def observed(self, missing: Array) -> Any:
        """Covariance with missing sensors (..., N) left out, for residuals (..., N) that are zero there.

        Distance, log-determinant and precision are those of the marginal law; the precision of what is missing is 1.
        """
        if missing.ndim == 1 and self.shared:
            kept = self._marginal  # once: another thread may put its own there
            if kept is None or not np.array_equal(kept[0], missing):
                kept = self._marginal = (missing, self._without(missing))
            return kept[1]
        if self.shared:
            return PartialRows(self, missing)
        seen = ~missing  # identity in place of the missing ones: one batch of matrices of one size
        pairs = seen[..., :, None] & seen[..., None, :]
        return Covariance(np.where(pairs, self.matrix, np.eye(missing.shape[-1])))

    def _without(self, missing: Array) -> Marginal:
        few = self.lasting and 0 < missing.sum() <= FEW * len(missing)
        return Bordered(self, missing) if few else Cut(self, missing)

    # coordinates in which `Bordered` works: here the sensors, elsewhere modes on which the covariance is simpler

    def coordinates(self, e: Array) -> Array:
        """Residuals (..., N) in the coordinates of the three methods below."""
        return e

    def units(self, places: Array) -> Array:
        """Coordinates (k, N) of the sensors at these places."""
        return np.eye(self.shape[-1])[places]

    def solve_coordinates(self, x: Array) -> Array:
        """S^-1 x (..., N), in coordinates."""
        return self.solve(x)

    def coordinate_distance(self, x: Array) -> Array:
        """x' S^-1 x (...), in coordinates."""
        return Covariance.distance(self, x)

    def from_coordinates(self, x: Array) -> Array:
        """Back to the sensors."""
        return x


class Scaled(Covariance):
    """Covariance of scale * Y from that of Y, whose factorisations it shares."""

    def __init__(self, base: Any, scale: Array) -> None:
        self.base, self.scale = base, scale
        self.shape = (scale.shape[-1], scale.shape[-1])
        self._kept_precision: tuple[Array, Array] | None = None

    @cached_property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix."""
        return self.base.matrix * (self.scale[:, None] * self.scale)

    @property
    def lasting(self) -> bool:  # type: ignore[override]
        """As the base."""
        return self.base.lasting

    @property
    def by_row(self) -> bool:  # type: ignore[override]
        """As the base."""
        return self.base.by_row

    @cached_property
    def root(self) -> Array:
        """Lower Cholesky factor."""
        return self.scale[:, None] * self.base.root

    @cached_property
    def whitener(self) -> Array:
        """Inverse of a square root."""
        return self.base.whitener / self.scale

    @cached_property
    def precision(self) -> Array:
        """Inverse covariance."""
        return self.base.precision / (self.scale[:, None] * self.scale)

    @cached_property
    def log_det(self) -> Array:
        """log det."""
        return self.base.log_det + 2.0 * np.log(np.abs(self.scale)).sum(-1)

    @cached_property
    def variance(self) -> Array:
        """Diagonal."""
        return self.base.variance * self.scale**2

    def distance(self, e: Array) -> Array:
        """Squared Mahalanobis distance (...) of residuals (..., N)."""
        return self.base.distance(e / self.scale)

    def solve(self, e: Array) -> Array:
        """S^-1 e (..., N)."""
        return self.base.solve(e / self.scale) / self.scale

    def precision_terms(self, e: Array) -> tuple[Array, Array]:
        """S^-1 e (..., N) and the diagonal of S^-1."""
        solved, precision = self.base.precision_terms(e / self.scale)
        if self._kept_precision is None or self._kept_precision[0] is not precision:  # one, of a filter at rest
            self._kept_precision = precision, precision / self.scale**2
        return solved / self.scale, self._kept_precision[1]

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """As in other units."""
        return self.base.effective_sensors(seen)

    def _times(self, scale: Array) -> Covariance:
        return Scaled(self.base, self.scale * scale)

    def select(self, places: Array) -> Covariance:
        """Covariance of the sensors at these places."""
        return Scaled(self.base.select(places), self.scale[places])

    def bare(self) -> Covariance:
        """The same without what can be computed again, unless it lasts."""
        return self if self.lasting else Scaled(self.base.bare(), self.scale)

    def observed(self, missing: Array) -> Any:
        """Covariance with missing sensors (..., N) left out."""
        return Scaled(self.base.observed(missing), np.where(missing, 1.0, self.scale))
