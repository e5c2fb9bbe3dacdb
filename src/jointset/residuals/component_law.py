"""The law of sets with several radii: a centre, and the structure that splits what is left of a reading."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointset.abilities import Components
from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_gaps import patterns_of
from jointset.algebra.law_rows import rows_at_once
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
        filled = self._filled(np.where(missing, 0.0, np.atleast_2d(e)), missing)
        scores = self.structure.at_least(self.structure.scores(filled) * self._ratios(missing, level))
        scores[missing.all(-1)] = np.nan
        return settled(scores).reshape(*e.shape[:-1], -1)

    def _filled(self, rows: Array, missing: Array) -> Array:
        """Residuals (T, N) with what the others let expect in the place of the missing ones (T, N)."""
        if len(rows) == 1:  # as live ones come
            return rows[:, ~missing[0]] @ self._filling(missing[0])
        S = Covariance(self.structure.covariance)
        return rows_at_once(lambda some, law: some if law is S else law.filled(some), rows, missing, S)

    def raises(self, y: Array, level: float) -> Array:
        """What component scores (..., K) of readings (..., N) with gaps are multiplied by; 1 of others."""
        return self._ratios(np.atleast_2d(np.isnan(y)), level).reshape(*np.shape(y)[:-1], -1)

    def _ratios(self, missing: Array, level: float) -> Array:
        """The same for rows that lack these sensors (T, N)."""
        patterns, which = patterns_of(missing)
        found = np.ones((len(patterns), len(self.structure.shares)))
        for number in np.flatnonzero(patterns.any(-1) & ~patterns.all(-1)).tolist():
            found[number] = self._raise(patterns[number], level)
        return found[which]

    def _raise(self, missing: Array, level: float) -> Array:
        """The ratio of quantiles (K,) of rows that lack these sensors; 0 where nothing is known of a component."""
        found, key, none = self.structure.raised, (missing.tobytes(), level), (b"", level)
        ratio = found.get(key)
        if ratio is None:
            if len(found) >= PATTERNS:
                found.clear()
            S = self.structure.covariance
            if none not in found:
                found[none] = self.structure.quantiles(S, level)
            whole, known = found[none], self.structure.quantiles(S[:, ~missing] @ self._filling(missing), level)
            ratio = found[key] = np.divide(whole, known, out=np.zeros(len(whole)), where=known > 0)
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
