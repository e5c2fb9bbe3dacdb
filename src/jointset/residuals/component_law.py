"""The law of sets with several radii: a centre, and the structure that splits what is left of a reading."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointset.abilities import Components
from jointset.algebra.covariance import Covariance
from jointset.algebra.shares import adding_to_one
from jointset.algebra.ties import settled
from jointset.contracts import Array, Index
from jointset.laws import DenseLaw

PATTERNS = 4096  # of gaps whose ratios are kept: a sensor that is out is so for many rows


@dataclass(frozen=True)
class ComponentLaw:
    """Centre (..., N) of a set with components, and the units (N,) of its residuals."""

    mean: Array
    structure: Components
    unit: Array

    def scores(self, y: Array, level: float = 0.9) -> Array:
        """Component scores (..., K); NaN where nothing is observed.

        A missing sensor takes the residual to be expected from the others, under the structure's own covariance. That
        makes a row calmer than it is: each score is multiplied by the ratio of its quantiles at `level`, under the
        covariance of complete residuals and of those so filled.
        """
        e = (np.asarray(y, dtype=float) - self.mean) / self.unit
        missing = np.atleast_2d(np.isnan(e))
        if not missing.any():
            return settled(self.structure.at_least(self.structure.scores(e)))
        rows, scores = np.atleast_2d(e), np.empty((*missing.shape[:-1], len(self.structure.shares)))
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            same = which.ravel() == number
            scores[same] = self.structure.at_least(self._with_gaps(rows[same], pattern, level))
        return settled(scores).reshape(*e.shape[:-1], -1)

    def _with_gaps(self, e: Array, missing: Array, level: float) -> Array:
        """Component scores (T, K) of residuals (T, N) that lack the same sensors."""
        if missing.all():
            return np.full((len(e), len(self.structure.shares)), np.nan)
        if not missing.any():
            return self.structure.scores(e)
        return self.structure.scores(e[:, ~missing] @ self._filling(missing)) * self._raise(missing, level)

    def raises(self, y: Array, level: float) -> Array:
        """What component scores (..., K) of readings (..., N) with gaps are multiplied by; 1 of others."""
        missing = np.atleast_2d(np.isnan(y))
        found = np.ones((*missing.shape[:-1], len(self.structure.shares)))
        for t in np.flatnonzero(missing.any(-1) & ~missing.all(-1)):
            found[t] = self._raise(missing[t], level)
        return found.reshape(*np.shape(y)[:-1], -1)

    def _raise(self, missing: Array, level: float) -> Array:
        """The ratio of quantiles (K,) of rows that lack these sensors; 0 where nothing is known of a component."""
        found, key = self.structure.raised, (missing.tobytes(), level)
        ratio = found.get(key)
        if ratio is None:
            S, given = self.structure.covariance, self._filling(missing)
            whole, known = (self.structure.quantiles(each, level) for each in (S, S[:, ~missing] @ given))
            ratio = np.divide(whole, known, out=np.zeros(len(whole)), where=known > 0)
            if len(found) >= PATTERNS:
                found.clear()
            found[key] = ratio
        return ratio

    def _filling(self, missing: Array) -> Array:
        """What fills a row that lacks these sensors (k, N): filled = observed @ given."""
        S, seen = self.structure.covariance, ~missing
        return np.linalg.solve(S[np.ix_(seen, seen)], S[seen])

    def shares(self, y: Array) -> Array:
        """How every component score of one reading divides over its sensors (K, N), see `jointset.algebra.shares`.

        What a missing sensor was filled with belongs to those it was told from.
        """
        e = (np.asarray(y, dtype=float) - self.mean) / self.unit
        missing = np.isnan(e)
        if not missing.any():
            return adding_to_one(e * self.structure.slopes(e))
        out = np.zeros((len(self.structure.shares), len(e)))
        if not missing.all():
            given, read = self._filling(missing), e[~missing]
            out[:, ~missing] = read * (self.structure.slopes(read @ given) @ given.T)
        return adding_to_one(out)

    def as_normal(self) -> DenseLaw:
        """The normal law with the same mean and covariance."""
        return DenseLaw(self.mean, Covariance(self.structure.covariance * (self.unit[:, None] * self.unit)))

    def rescale(self, shift: Array, scale: Array) -> ComponentLaw:
        """Law of shift + scale * Y."""
        return replace(self, mean=shift + scale * self.mean, unit=scale * self.unit)

    def __getitem__(self, index: Index) -> ComponentLaw:
        return replace(self, mean=self.mean[index])

    def __len__(self) -> int:
        return len(self.mean)
