"""Predictive laws, batched over time: what a filter emits before the reading is seen.

A law has a mean (..., N) and a covariance, either dense (`DenseLaw`) or diagonal plus low rank (`LowRankLaw`, which
never forms an N x N matrix except for `distance`). It is normal unless it has `tails`, which density and draws know
(`jointset.algebra.law_tails`). Leading axes are the batch: `law[t]` is the law of one step. NaN readings are missing:
they are scored on the marginal law of the sensors that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from jointset.algebra import lowrank
from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_steps import StepCovariances
from jointset.algebra.law_rows import (
    blank_where_unseen,
    contributions_of,
    given_others_of,
    masked,
    others,
    rows_at_once,
    sensor_indices,
)
from jointset.algebra.law_tails import LOG_2PI, NORMAL, Tailed, Tails
from jointset.algebra.triangles import bures_wasserstein
from jointset.contracts import Array, Index
from jointset.errors import require
from jointset.support.cached import cached_property

CHUNK = 200_000  # numbers a block of steps may hold: keeps the batched algebra inside the processor's cache


@dataclass(frozen=True)
class DenseLaw(Tailed):
    """Law with a dense covariance: (N, N) shared by all steps, or (T, N, N).

    >>> law = DenseLaw(np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(float(law.mahalanobis(np.array([1.0, 1.0]))), 6)
    0.666667
    """

    mean: Array
    covariance: Any  # an array or a Covariance; kept as a Covariance
    tails: Tails = NORMAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", np.asarray(self.mean, dtype=float))
        if not isinstance(self.covariance, Covariance):
            object.__setattr__(self, "covariance", Covariance(self.covariance))
        shape = self.covariance.shape
        fits = self.mean.shape[-1:] == shape[-1:] and (self.covariance.shared or shape[:-1] == self.mean.shape)
        require(fits, f"mean {self.mean.shape} and covariance {shape} do not fit together")

    @classmethod
    def _made(cls, mean: Array, covariance: Covariance, tails: Tails = NORMAL) -> DenseLaw:
        """A law of parts that are known to fit: live use makes several a step, and checks cost more than algebra."""
        law = object.__new__(cls)
        law.__dict__.update(mean=mean, covariance=covariance, tails=tails)
        return law

    @property
    def variance(self) -> Array:
        """Marginal variances (..., N)."""
        found: Array = self.covariance.variance
        return found if found.shape == self.mean.shape else np.broadcast_to(found, self.mean.shape)

    @property
    def log_det(self) -> Array:
        """Log-determinant of the covariance (...)."""
        return np.broadcast_to(self.covariance.log_det, self.mean.shape[:-1])

    def mahalanobis(self, y: Array) -> Array:
        """Squared Mahalanobis distance (...) on the observed entries; NaN where nothing is observed."""
        if np.ndim(y) == 1 == self.mean.ndim and not np.count_nonzero(np.isnan(y)):
            found: Array = self.covariance.distance(y - self.mean)
            return found
        return blank_where_unseen(self._observed(lambda e, S: S.distance(e), y), y)

    def nll(self, y: Array) -> Array:
        """Gaussian negative log-likelihood (...) of the observed entries, constant included."""
        half = self._observed(lambda e, S: 0.5 * (S.distance(e) + S.log_det), y)
        return blank_where_unseen(half, y) + 0.5 * LOG_2PI * (~np.isnan(y)).sum(-1)

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance when sensor i is left out, (P e)_i^2 / P_ii with P the precision (..., N)."""
        return self._observed(contributions_of, y)

    def given_others(self, y: Array) -> tuple[Array, Array]:
        """Mean and sd of each sensor given all others of one reading (N,), under the law of one step.

        NaN where missing. With P the precision of what was read, y_i - (P e)_i / P_ii and P_ii^-1/2.
        """
        missing = np.isnan(y)
        S = self.covariance.observed(missing) if missing.any() else self.covariance
        solved, precision = S.precision_terms(np.where(missing, 0.0, y - self.mean))
        return y - solved / precision, np.where(missing, np.nan, precision**-0.5)

    def _observed(self, function: Callable[[Array, Any], Array], y: Array) -> Array:
        """Apply a function of (residual, covariance); rows with missing entries get the covariance of the rest."""
        if isinstance(self.covariance, StepCovariances):
            return self._grouped(function, np.asarray(y, dtype=float))
        e = np.asarray(y, dtype=float) - self.mean
        missing = np.isnan(e)
        gaps = missing.any(-1)
        if not gaps.any():
            return function(e, self.covariance)
        e = np.where(missing, 0.0, e)
        if e.ndim == 1:
            return function(e, self.covariance.observed(missing))
        if self.covariance.shared:
            return rows_at_once(function, e, missing, self.covariance)
        size = max(1, CHUNK // e.shape[-1])
        edges = np.flatnonzero(np.diff(gaps)) + 1  # blocks of rows that all have gaps or all have none
        starts = sorted({0, *edges.tolist(), *range(0, len(e), size)})
        parts = []
        for start, stop in zip(starts, [*starts[1:], len(e)], strict=True):
            block = slice(start, stop)
            S = self.covariance[block]
            parts.append(function(e[block], S.observed(missing[block]) if gaps[start] else S))
        return np.concatenate(parts)

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (..., N) amount to, and all: k^2 / sum of squared correlations."""
        return self.covariance.effective_sensors(seen)

    def _grouped(self, function: Callable[[Array, Any], Array], y: Array) -> Array:
        """The same, one group of steps with one covariance after the other."""
        parts = []
        for start, stop, S in self.covariance.batches():
            if stop == start + 1 and S.shared:  # a single step has its own way
                parts.append(np.asarray(DenseLaw(self.mean[start], S)._observed(function, y[start]))[None])
            else:
                parts.append(DenseLaw(self.mean[start:stop], S)._observed(function, y[start:stop]))
        return np.concatenate(parts)

    def select(self, sensors: Sequence[int] | Array) -> DenseLaw:
        """Marginal law on a subset of sensors."""
        chosen = sensor_indices(sensors, self.mean.shape[-1])
        return DenseLaw(self.mean[..., chosen], self.covariance.select(chosen), self.tails)

    def condition(self, sensors: Sequence[int] | Array, values: Array) -> DenseLaw:
        """Law of the remaining sensors (in their order) given the readings of these."""
        seen = sensor_indices(sensors, self.mean.shape[-1])
        rest = others(seen, self.mean.shape[-1])
        S = self.covariance.matrix
        cross = S[..., rest[:, None], seen]
        gain = lowrank.transpose(np.linalg.solve(S[..., seen[:, None], seen], lowrank.transpose(cross)))
        mean = self.mean[..., rest] + lowrank.apply(gain, np.asarray(values) - self.mean[..., seen])
        left = Covariance(S[..., rest[:, None], rest] - gain @ lowrank.transpose(cross))
        return DenseLaw(mean, left, self._tails_given(seen, values))

    def rescale(self, shift: Array, scale: Array) -> DenseLaw:
        """Law of shift + scale * Y."""
        return self._made(shift + scale * self.mean, self.covariance.rescale(scale), self.tails)

    def _noise(self, rng: np.random.Generator) -> Array:
        return lowrank.apply(self.covariance.root, rng.standard_normal(self.mean.shape))

    def distance(self, other: DenseLaw | LowRankLaw) -> Array:
        """Bures-Wasserstein distance (...), exact; two laws that share one covariance differ by their means."""
        if isinstance(other, DenseLaw) and other.covariance is self.covariance:
            return np.linalg.norm(self.mean - other.mean, axis=-1)
        return _distances(self, other)

    def square_root(self) -> Array:
        """A (..., N, N) with A A' the covariance."""
        return self.covariance.root

    def __getitem__(self, index: Index) -> DenseLaw:
        return DenseLaw(self.mean[index], self.covariance[index], self.tails.at(index))

    def __len__(self) -> int:
        return len(self.mean)


@dataclass(frozen=True)
class LowRankLaw(Tailed):
    """Law with covariance diag(diagonal) + factor factor': diagonal (..., N) > 0, factor (..., N, r)."""

    mean: Array
    diagonal: Array
    factor: Array
    tails: Tails = NORMAL

    def __post_init__(self) -> None:
        for name in ("mean", "diagonal", "factor"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        require(
            self.mean.shape == self.diagonal.shape == self.factor.shape[:-1],
            f"mean {self.mean.shape}, diagonal {self.diagonal.shape} and factor {self.factor.shape} "
            "do not fit together: they need shapes (..., N), (..., N), (..., N, r)",
        )
        require(bool(np.all(self.diagonal > 0)), "the diagonal of a low-rank law must be positive")

    @classmethod
    def _made(cls, mean: Array, diagonal: Array, factor: Array, tails: Tails = NORMAL) -> Self:
        """A law of parts that are known to be good."""
        law = object.__new__(cls)
        law.__dict__.update(mean=mean, diagonal=diagonal, factor=factor, tails=tails)
        return law

    @cached_property
    def variance(self) -> Array:
        """Marginal variances (..., N)."""
        return self.diagonal + np.einsum("...ir,...ir->...i", self.factor, self.factor)

    @cached_property
    def log_det(self) -> Array:
        """Log-determinant of the covariance (...), by the determinant lemma."""
        return self._blockwise(lambda e, w, L: lowrank.log_det(w, L), self.mean)

    def mahalanobis(self, y: Array) -> Array:
        """Squared Mahalanobis distance (...) on the observed entries; NaN where nothing is observed."""
        return blank_where_unseen(self._blockwise(lowrank.mahalanobis, y), y)

    def nll(self, y: Array) -> Array:
        """Gaussian negative log-likelihood (...) of the observed entries, constant included."""
        return blank_where_unseen(self._blockwise(lowrank.nll, y), y) + 0.5 * LOG_2PI * (~np.isnan(y)).sum(-1)

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance when sensor i is left out (..., N); 0 where missing."""

        def drop(e: Array, w: Array, L: Array) -> Array:
            P = lowrank.precision_diagonal(w, L)
            return lowrank.solve(e, w, L) ** 2 / np.where(w > 0, P, 1.0)

        return self._blockwise(drop, y)

    def given_others(self, y: Array) -> tuple[Array, Array]:
        """Mean and sd of each sensor given all others of one reading (N,), under the law of one step."""
        seen = np.flatnonzero(~np.isnan(y))
        w, L = 1.0 / self.diagonal[seen], self.factor[seen]
        weights = lowrank.solve(y[seen] - self.mean[seen], w, L)
        return given_others_of(y, seen, weights, lowrank.precision_diagonal(w, L))

    def _blockwise(self, function: Callable[[Array, Array, Array], Array], y: Array) -> Array:
        """Apply a function of (residual, weights, factor), a block of steps at a time."""
        e = np.asarray(y, dtype=float) - self.mean
        n, r = self.factor.shape[-2:]
        size = max(1, CHUNK // max(1, n * max(1, r)))
        if e.ndim != 2 or len(e) <= size:
            return function(*masked(e, self.diagonal), self.factor)
        d, L = np.broadcast_to(self.diagonal, e.shape), np.broadcast_to(self.factor, (*e.shape, r))
        blocks = [slice(start, start + size) for start in range(0, len(e), size)]
        return np.concatenate([function(*masked(e[b], d[b]), L[b]) for b in blocks])

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (..., N) amount to, and all: k^2 / sum of squared correlations."""
        variance = self.variance
        own = self.diagonal * (2.0 * variance - self.diagonal) / variance**2  # 1 - (|l_i|^2 / v_i)^2, in `shared` again

        def count(weight: Array) -> Array:
            shared = lowrank.transpose(self.factor) @ ((weight / variance)[..., None] * self.factor)
            squares = (weight * own).sum(-1) + (shared**2).sum((-1, -2))
            return weight.sum(-1) ** 2 / np.maximum(squares, 1.0)

        return count(seen.astype(float)), count(np.ones(seen.shape))

    def select(self, sensors: Sequence[int] | Array) -> LowRankLaw:
        """Marginal law on a subset of sensors."""
        chosen = sensor_indices(sensors, self.mean.shape[-1])
        parts = self.mean[..., chosen], self.diagonal[..., chosen], self.factor[..., chosen, :]
        return LowRankLaw(*parts, self.tails)

    def condition(self, sensors: Sequence[int] | Array, values: Array) -> LowRankLaw:
        """Law of the remaining sensors given the readings of these: diagonal plus low rank again.

        The factor has posterior N(z, C^-1), so the rest has mean m + L z and covariance D + L C^-1 L'.
        """
        seen = sensor_indices(sensors, self.mean.shape[-1])
        rest = others(seen, self.mean.shape[-1])
        w, L = 1.0 / self.diagonal[..., seen], self.factor[..., seen, :]
        C = lowrank.capacitance(w, L)
        z = lowrank.factor_mean(np.asarray(values) - self.mean[..., seen], w, L, C)
        L_rest = self.factor[..., rest, :]
        mean = self.mean[..., rest] + lowrank.apply(L_rest, z)
        if C.shape[-1]:  # C = R R', so C^-1 = R^-T R^-1 and the new factor is L R^-T
            L_rest = lowrank.transpose(np.linalg.solve(np.linalg.cholesky(C), lowrank.transpose(L_rest)))
        return LowRankLaw(mean, self.diagonal[..., rest], L_rest, self._tails_given(seen, values))

    def rescale(self, shift: Array, scale: Array) -> Self:
        """Law of shift + scale * Y."""
        return self._made(shift + scale * self.mean, scale**2 * self.diagonal, scale[:, None] * self.factor, self.tails)

    def _noise(self, rng: np.random.Generator) -> Array:
        z = rng.standard_normal((*self.mean.shape[:-1], self.factor.shape[-1]))
        return lowrank.apply(self.factor, z) + np.sqrt(self.diagonal) * rng.standard_normal(self.mean.shape)

    def distance(self, other: DenseLaw | LowRankLaw) -> Array:
        """Bures-Wasserstein distance (...), exact; forms one N x N matrix a step."""
        return _distances(self, other)

    def square_root(self) -> Array:
        """A (..., N, N) with A A' the covariance."""
        return Covariance(self.dense()).root

    def dense(self) -> Array:
        """The covariance as a matrix (..., N, N)."""
        S = self.factor @ lowrank.transpose(self.factor)
        np.einsum("...ii->...i", S)[...] += self.diagonal
        return S

    def __getitem__(self, index: Index) -> Self:
        return self._made(self.mean[index], self.diagonal[index], self.factor[index], self.tails.at(index))

    def __len__(self) -> int:
        return len(self.mean)


AnyLaw = DenseLaw | LowRankLaw


def matrix_of(law: AnyLaw) -> Array:
    """The covariance of a law as a matrix: (..., N, N), or (N, N) where all steps share one."""
    return law.dense() if isinstance(law, LowRankLaw) else law.covariance.matrix


def _distances(a: AnyLaw, b: AnyLaw) -> Array:
    require(a.mean.shape == b.mean.shape, f"laws of shapes {a.mean.shape} and {b.mean.shape} cannot be compared")
    shape = (*a.mean.shape, a.mean.shape[-1])
    roots_a = np.broadcast_to(a.square_root(), shape).reshape(-1, *shape[-2:])
    roots_b = np.broadcast_to(b.square_root(), shape).reshape(-1, *shape[-2:])
    means_a, means_b = a.mean.reshape(-1, shape[-1]), b.mean.reshape(-1, shape[-1])
    pairs = zip(means_a, roots_a, means_b, roots_b, strict=True)
    return np.array([bures_wasserstein(*pair) for pair in pairs]).reshape(a.mean.shape[:-1])[()]
