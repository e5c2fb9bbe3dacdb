"""A Gaussian law whose covariance changes over time, kept in pieces: no N x N matrix a step is formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.law_rows import blank_where_unseen, rows_at_once
from jointset.contracts import Array, Index
from jointset.errors import require
from jointset.laws import DenseLaw


@runtime_checkable
class TakesGaps(Protocol):
    """Covariances of several steps that score rows with gaps themselves."""

    def partial_distance(self, e: Array, missing: Array) -> Array:
        """Squared distances (k,) on what was read of residuals (k, N), 0 where missing."""


class Stepwise(Protocol):
    """Covariances of several steps, one each, of updates of a first one."""

    @property
    def variance(self) -> Array:
        """Diagonals (T, N)."""

    @property
    def log_det(self) -> Array:
        """Log-determinants (T,)."""

    def distance(self, e: Array) -> Array:
        """Squared distances (T,) of residuals (T, N)."""

    def at(self, t: int) -> Covariance:
        """The covariance of one step."""


@dataclass(frozen=True)
class Piece:
    """Rows (k,) of a law, ascending, and their covariance: one `Covariance` for all, or one each (of updates)."""

    rows: Array
    covariance: Covariance | Stepwise

    @cached_property
    def where(self) -> slice | Array:
        """The rows as a slice where they follow one another, which needs no copy."""
        if len(self.rows) and self.rows[-1] - self.rows[0] + 1 == len(self.rows):
            return slice(int(self.rows[0]), int(self.rows[-1]) + 1)
        return self.rows

    def distance(self, e: Array, missing: Array) -> Array:
        """Squared distances (k,) on what was read of residuals (k, N), 0 where missing."""
        partial: Array = np.asarray(missing.any(axis=1))
        if isinstance(self.covariance, TakesGaps):
            return self.covariance.partial_distance(e, missing)
        if isinstance(self.covariance, Covariance) and self.covariance.shared:
            return rows_at_once(lambda e, S: S.distance(e), e, missing, self.covariance)
        out: Array = np.asarray(self.covariance.distance(np.where(partial[:, None], 0.0, e)))
        for k in np.flatnonzero(partial & ~missing.all(axis=1)).tolist():  # the marginal law on what is there
            out[k] = self.at(k).observed(missing[k]).distance(e[k])
        return out

    def at(self, position: int) -> Covariance:
        """The covariance of the row at this position of the piece."""
        return self.covariance if isinstance(self.covariance, Covariance) else self.covariance.at(position)


@dataclass(frozen=True)
class PiecewiseLaw:
    """Laws of T steps: mean (T, N) and pieces that cover the rows once; `unit` (N,) turns them into other units."""

    mean: Array
    pieces: tuple[Piece, ...]
    unit: Array

    def __post_init__(self) -> None:
        covered = sum(len(piece.rows) for piece in self.pieces)
        require(covered == len(self.mean), f"the pieces cover {covered} rows, the mean has {len(self.mean)}")

    @cached_property
    def variance(self) -> Array:
        """Marginal variances (T, N)."""
        out = np.empty(self.mean.shape)
        for piece in self.pieces:
            out[piece.where] = piece.covariance.variance
        return out if self._plain else out * self.unit**2

    @cached_property
    def _plain(self) -> bool:
        """Whether the units are those of the pieces."""
        return bool((self.unit == 1.0).all())

    @cached_property
    def log_det(self) -> Array:
        """Log-determinants (T,)."""
        out = np.empty(len(self.mean))
        for piece in self.pieces:
            out[piece.where] = piece.covariance.log_det
        return out + 2.0 * np.log(self.unit).sum()

    def mahalanobis(self, y: Array) -> Array:
        """Squared Mahalanobis distance (T,) on the observed entries; NaN where nothing is observed."""
        e = np.asarray(y, dtype=float) - self.mean
        if not self._plain:
            e /= self.unit
        gaps = bool(np.isnan(e.sum()))  # the fastest search
        missing = np.isnan(e) if gaps else np.empty((0, 0), dtype=bool)  # no row has any
        if gaps:
            e[missing] = 0.0
        out = np.empty(len(e))
        for piece in self.pieces:
            rows = piece.where
            out[rows] = piece.distance(e[rows], missing[rows]) if gaps else piece.covariance.distance(e[rows])
        return blank_where_unseen(out, y)

    def effective_sensors(self, seen: Array) -> tuple[Array, Array]:
        """How many independent sensors those `seen` (T, N) amount to, and all; as if independent in complete rows."""
        some, every = np.full(len(seen), float(seen.shape[1])), np.full(len(seen), float(seen.shape[1]))
        for t in np.flatnonzero(~seen.all(axis=1)).tolist():
            some[t], every[t] = self._at(t).effective_sensors(seen[t])
        return some, every

    @cached_property
    def _places(self) -> Array:
        """Piece and position in it of every row (T, 2)."""
        places = np.empty((len(self.mean), 2), dtype=int)
        for number, piece in enumerate(self.pieces):
            places[piece.rows, 0], places[piece.rows, 1] = number, np.arange(len(piece.rows))
        return places

    def _at(self, t: int) -> Covariance:
        number, position = self._places[t]
        return self.pieces[number].at(int(position))

    @property
    def covariance(self) -> Covariance:
        """All covariances (T, N, N), formed."""
        n = self.mean.shape[1]
        matrices = np.empty((len(self.mean), n, n))
        for t in range(len(matrices)):
            matrices[t] = self._at(t).matrix
        return Covariance(matrices * (self.unit[:, None] * self.unit))

    def joined(self, others: Sequence[PiecewiseLaw]) -> PiecewiseLaw:
        """One law of these rows and of those that follow, in the same units."""
        laws, pieces, begin = (self, *others), [], 0
        for law in laws:
            pieces += [replace(piece, rows=piece.rows + begin) for piece in law.pieces]
            begin += len(law)
        return PiecewiseLaw(np.concatenate([law.mean for law in laws]), tuple(pieces), self.unit)

    def dense(self) -> DenseLaw:
        """The same laws with all covariances formed."""
        return DenseLaw(self.mean, self.covariance)

    def contributions(self, y: Array) -> Array:
        """Drop of the squared distance when one sensor is left out (T, N)."""
        return self.dense().contributions(y)

    def select(self, sensors: Sequence[int] | Array) -> DenseLaw:
        """Marginal law on a subset of sensors."""
        return self.dense().select(sensors)

    def condition(self, sensors: Sequence[int] | Array, values: Array) -> DenseLaw:
        """Law of the remaining sensors given readings of these."""
        return self.dense().condition(sensors, values)

    def rescale(self, shift: Array, scale: Array) -> PiecewiseLaw:
        """Law of shift + scale * Y."""
        return replace(self, mean=shift + scale * self.mean, unit=scale * self.unit)

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw (T, N) from each law."""
        return self.dense().sample(rng)

    def distance(self, other: Any) -> Array:
        """Bures-Wasserstein distance (T,)."""
        return self.dense().distance(other.dense() if isinstance(other, PiecewiseLaw) else other)

    def __getitem__(self, index: Index) -> DenseLaw:
        if isinstance(index, (int, np.integer)):
            covariance = self._at(int(index))  # one that serves many rows is factorised once
            return DenseLaw(self.mean[index], covariance if self._plain else covariance.rescale(self.unit))
        return self.dense()[index]

    def __len__(self) -> int:
        return len(self.mean)
