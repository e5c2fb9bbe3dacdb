"""Covariances in special form: diagonal in a fixed basis but for a low rank, raised by a number, shared by steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.covariance import FEW, Bordered, Covariance, Cut, Marginal
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


class StepOf(Covariance):
    """One of a batch of covariances (T, N, N), which several steps of a law share."""

    lasting = False
    shared = True

    def __init__(self, batch: Covariance, place: int, base: Covariance | None = None) -> None:
        self.batch, self.place, self.shape = batch, place, batch.shape[1:]
        self.base = self if base is None else base  # before other units

    @property
    def matrix(self) -> Array:  # type: ignore[override]
        """The matrix."""
        return self.batch.matrix[self.place]

    def rescale(self, scale: Array) -> Covariance:
        """Covariance of scale * Y."""
        return StepOf(self.batch.rescale(scale), self.place, self.base)

    def bare(self) -> Covariance:
        """As it is."""
        return self


def step_covariances(matrices: Array, log_det: Array) -> list[Covariance]:
    """The covariances (T, N, N) of steps, whose log-determinants (T,) are known."""
    batch = Covariance(matrices)
    batch.__dict__["log_det"] = log_det
    return [StepOf(batch, k) for k in range(len(matrices))]


class StepCovariances(Covariance):
    """Covariances of T steps, each of its own kind; steps may share one."""

    lasting = False
    shared = False

    def __init__(self, each: Sequence[Covariance]) -> None:
        self.each = list(each)
        n = self.each[0].shape[-1] if self.each else 0
        self.shape = (len(self.each), n, n)

    @property
    def matrix(self) -> Array:  # type: ignore[override]
        """All matrices (T, N, N), formed."""
        return np.stack([one.matrix for one in self.each])

    @property
    def root(self) -> Array:
        """All Cholesky factors (T, N, N)."""
        return np.stack([one.root for one in self.each])

    @cached_property
    def variance(self) -> Array:
        """Diagonals (T, N)."""
        parts = [np.broadcast_to(S.variance, (stop - start, self.shape[-1])) for start, stop, S in self.batches()]
        return np.concatenate(parts)

    @cached_property
    def log_det(self) -> Array:
        """Log-determinants (T,)."""
        return np.concatenate([np.broadcast_to(S.log_det, stop - start) for start, stop, S in self.batches()])

    def groups(self) -> Iterator[tuple[int, int, Covariance]]:
        """Consecutive steps that share a covariance: the first, the one after the last, the covariance."""
        start = 0
        for t in range(1, len(self.each) + 1):
            if t == len(self.each) or self.each[t] is not self.each[start]:
                yield start, t, self.each[start]
                start = t

    def batches(self) -> Iterator[tuple[int, int, Covariance]]:
        """The same, consecutive steps of one batch together as an array of covariances."""
        start = 0
        for t in range(1, len(self.each) + 1):
            if t < len(self.each) and _go_together(self.each[t - 1], self.each[t]):
                continue
            first = self.each[start]
            yield start, t, first.batch[first.place : first.place + t - start] if isinstance(first, StepOf) else first
            start = t

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (T, N) amount to, and all (T,)."""
        pairs = [S.effective_sensors(seen[start:stop]) for start, stop, S in self.batches()]
        some, every = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return some, every

    def _mapped(self, function: Any) -> StepCovariances:
        made: dict[int, Covariance] = {}
        for one in self.each:
            if id(one) not in made:
                made[id(one)] = function(one)
        return StepCovariances([made[id(one)] for one in self.each])

    def _times(self, scale: Array) -> Covariance:
        return self._mapped(lambda one: one.rescale(scale))

    def select(self, places: Array) -> Covariance:
        """Covariances of the sensors at these places."""
        return self._mapped(lambda one: one.select(places))

    def bare(self) -> Covariance:
        """The same without what can be computed again."""
        return self._mapped(lambda one: one.bare())

    def __getitem__(self, index: Any) -> Covariance:
        chosen = np.arange(len(self.each))[index]
        return self.each[int(chosen)] if chosen.ndim == 0 else StepCovariances([self.each[t] for t in chosen.tolist()])


def _go_together(one: Covariance, next_: Covariance) -> bool:
    """Whether two consecutive steps share a covariance, or follow one another in a batch."""
    if isinstance(one, StepOf) and isinstance(next_, StepOf):
        return one.batch is next_.batch and one.place + 1 == next_.place
    return one is next_


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
