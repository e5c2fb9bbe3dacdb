"""Tails of a law: the Student-t around its mean that its density and its draws have.

With v degrees of freedom and size s a law of matrix S is the Student-t of scale matrix s S; v infinite and s = 1 is the
normal law. Scores and sets know S alone. A part of a Student-t has its degrees of freedom; given k readings at squared
distance d under s S the rest has v + k of them, and its scale matrix is (v + d) / (v + k) times that of a normal law.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from jointset.contracts import Array, Index
from jointset.storage import storable

LOG_2PI = float(np.log(2 * np.pi))


@storable
class Tails(NamedTuple):
    """Degrees of freedom of a Student-t, infinite for a normal law, and what multiplies the matrix of the law (...)."""

    freedom: float
    size: float | Array = 1.0

    @property
    def heavy(self) -> bool:
        """Whether the law is not normal."""
        return self.freedom < math.inf

    @property
    def variance(self) -> Any:
        """The variance of the law in units of its matrix (...)."""
        if not self.heavy:
            return self.size
        return self.size * (self.freedom / (self.freedom - 2.0) if self.freedom > 2.0 else math.inf)

    def at(self, index: Index) -> Tails:
        """Those of some laws of a batch."""
        return Tails(self.freedom, self.size[index]) if isinstance(self.size, np.ndarray) else self

    def joined(self, others: Sequence[Tails]) -> Tails:
        """Those of laws of one kind and of those that follow."""
        if not isinstance(self.size, np.ndarray):
            return self
        return Tails(self.freedom, np.concatenate([self.size, *(one.size for one in others)]))

    def given(self, distance: Array, count: int) -> Tails:
        """Those of the rest, given so many readings at this squared distance (...) under the matrix."""
        known = self.freedom + count
        return Tails(known, self.size * (self.freedom + distance / self.size) / known)

    def log_density(self, distance: Array, log_det: Array, count: Array) -> Array:
        """Log density (...) from squared distances and log-determinants of the matrix of `count` readings each."""
        df, size = self
        log_det = log_det + count * np.log(size)
        if not self.heavy:
            return -0.5 * (log_det + distance / size + count * LOG_2PI)
        from scipy.special import gammaln  # here, so that importing jointset stays fast

        top = gammaln(0.5 * (df + count)) - gammaln(0.5 * df) - 0.5 * count * np.log(df * np.pi)
        return top - 0.5 * log_det - 0.5 * (df + count) * np.log1p(distance / (size * df))

    def stretch(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """What multiplies draws (*shape, N) from normal laws of the matrix to make them draws of these tails."""
        return np.sqrt(self.size * self.freedom / rng.chisquare(self.freedom, shape))[..., None]

    def normal_scores(self, ratio: Array) -> Array:
        """Residuals (...) in sd of the matrix as what a normal reading of the same probability has."""
        if not self.heavy:
            return ratio / np.sqrt(self.size)
        from scipy.special import ndtri, stdtr

        low = ndtri(stdtr(self.freedom, -np.abs(ratio) / np.sqrt(self.size)))  # where small numbers keep their digits
        return np.copysign(low, ratio)


NORMAL = Tails(math.inf)


class Tailed(ABC):
    """A law with tails, which stay with it in other units and on fewer sensors."""

    mean: Array
    tails: Tails

    @property
    @abstractmethod
    def log_det(self) -> Array:
        """Log-determinant of the matrix (...)."""

    @abstractmethod
    def mahalanobis(self, y: Array) -> Array:
        """Squared distance (...) of what was read under the matrix."""

    @abstractmethod
    def nll(self, y: Array) -> Array:
        """Minus the normal log density (...) of what was read."""

    @abstractmethod
    def select(self, sensors: Sequence[int] | Array) -> Tailed:
        """Marginal law on a subset of sensors."""

    @abstractmethod
    def _noise(self, rng: np.random.Generator) -> Array:
        """Draws (..., N) from the normal laws around 0."""

    def with_tails(self, tails: Tails) -> Self:
        """The same law with these tails."""
        if tails is self.tails:
            return self
        law = object.__new__(type(self))
        law.__dict__.update(self.__dict__, tails=tails)
        return law

    @property
    def degrees_of_freedom(self) -> float:
        """The smaller, the heavier the tails; infinite for a normal law."""
        return self.tails.freedom

    def terms(self, y: Array) -> tuple[Array, Array, Array]:
        """Squared distances, log-determinants and numbers (...) of what was read of readings (..., N)."""
        distance, count = self.mahalanobis(y), (~np.isnan(y)).sum(-1)
        if count.min(initial=np.shape(y)[-1]) == np.shape(y)[-1]:
            return distance, self.log_det, count
        return distance, 2.0 * self.nll(y) - distance - count * LOG_2PI, count

    def log_density(self, y: Array) -> Array:
        """Log density (...) of what was read of readings (..., N); NaN where nothing was."""
        return self.tails.log_density(*self.terms(y))

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw (..., N) from each law of the batch."""
        noise = self._noise(rng)
        return self.mean + (self.tails.stretch(rng, noise.shape[:-1]) * noise if self.tails.heavy else noise)

    def _tails_given(self, seen: Array, values: Array) -> Tails:
        """Those of the other sensors, given readings (..., k) of these."""
        if not self.tails.heavy:
            return self.tails
        return self.tails.given(self.select(seen).mahalanobis(np.asarray(values, dtype=float)), len(seen))


def tails_of(law: object) -> Tails:
    """Those of any law; one that knows nothing of tails is a normal one."""
    return law.tails if isinstance(law, Tailed) else NORMAL
