"""How standardised residuals go together: a moving covariance, or one of low rank where sensors are many.

Rows count by the weights of a Student-t, so that one wild row does not make all sensors look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.pooling import log_scores, some_rows
from jointset.contracts import Array, Pilot
from jointset.laws import DenseLaw, LowRankLaw
from jointset.residuals.incomplete import covariance_with_gaps, expected_moment, expected_rows, fill_expected
from jointset.residuals.shrinkage import gram, to_diagonal
from jointset.storage import storable

FREEDOM = 5.0  # of the weights
HALF_LIVES = (200.0, 500.0, 2000.0, None)  # None: it does not move
SHRINKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.2, 0.5)
NUMBERS = 600_000  # that the covariances of a choice may hold
FEWEST = 50  # rows below which nothing is chosen
STILL = 20  # rows a sensor below which nothing moves
MEMORY = 5  # half-lives that are run through before the first law
WIDEST = 4.0  # a standardised residual counts as no more, before there are weights
STEADY = 0.01  # shrinkage of the covariance that weights come from
SMALLEST = 0.05  # variance of a sensor by itself, of 1
RANK = 10
LARGEST = 20.0  # a square counts as no more
ROWS = 2_000  # that give the factors
ROUNDS = 5  # in which gaps are filled by factors, and factors found from them


@storable
@dataclass(frozen=True)
class MovingCorrelations:
    """S_{t+1} = w S_t + (1 - w) q_t z_t z_t', emitted as (1 - s) S + s diag S; w from the half-life, s the shrinkage.

    q_t = (5 + N) / (5 + z_t' M^-1 z_t), M being S at the end of the training rows. Half-life and shrinkage are chosen
    by log density on the last fifth of the rows unless given; 0 is a half-life without end. Where rows are few for so
    many sensors it is that one: M then fits the rows it was made from better than any later ones, whose q_t are below 1
    on average, and S would lose its level with every row. Of a row with gaps z_t z_t' is what is to be expected of it
    given what was read; a row without any reading moves nothing.
    """

    half_life: float | None = None
    shrink: float | None = None
    covariance: Array | None = None  # at the end of the training rows (N, N), set by fit

    def fit(self, z: Array) -> MovingCorrelations:
        """From standardised residuals (T, N), NaN where there is none."""
        half_life, shrink = self._chosen(z)
        made = replace(self, half_life=half_life, shrink=shrink)
        S = _second_moment(z)
        if half_life:
            *_, (_, S) = made.course(z[-int(MEMORY * half_life) :], S, _whitener(S))
        return replace(made, covariance=S)

    def _chosen(self, z: Array) -> tuple[float, float]:
        cut = len(z) - len(z) // 5
        tried = HALF_LIVES if len(z) >= STILL * z.shape[1] else HALF_LIVES[-1:]
        lives = tried if self.half_life is None else (self.half_life or None,)
        shrinks = SHRINKS if self.shrink is None else (self.shrink,)
        if len(lives) == len(shrinks) == 1 or len(z) - cut < FEWEST:
            return lives[-1] or 0.0, shrinks[len(shrinks) // 2]
        start, later, n = _second_moment(z[:cut]), z[cut:], z.shape[1]
        whitener = _whitener(start)
        kept = some_rows(len(later), max(FEWEST, NUMBERS // n**2))
        wanted = set(kept.tolist())
        best = (-np.inf, 0.0, 0.0)
        for life in lives:
            made = replace(self, half_life=life or 0.0)
            S = np.stack([before for t, (before, _) in enumerate(made.course(later, start, whitener)) if t in wanted])
            for shrink in shrinks:
                law = DenseLaw(np.zeros((len(kept), n)), Covariance(to_diagonal(S, shrink)))
                gain = float(np.nansum(log_scores(law, later[kept])[0]))
                best = max(best, (gain, life or 0.0, shrink))
        return best[1:]

    def course(self, z: Array, S: Array, whitener: Array) -> Iterator[tuple[Array, Array]]:
        """S before and after every row of z (T, N)."""
        weights = _row_weights(z, whitener)
        gaps: Array = np.asarray(np.isnan(z).any(axis=1))
        for row, weight, gap in zip(z, weights.tolist(), gaps.tolist(), strict=True):
            before, S = S, self._moved(S, row, weight, gap)
            yield before, S

    def _moved(self, S: Array, row: Array, weight: float, gap: bool) -> Array:
        """S after a row (N,) of this weight, NaN where nothing was read."""
        rate = 1.0 - 2.0 ** (-1.0 / self.half_life) if self.half_life else 0.0
        share = rate * weight
        if gap and share > 0:
            filled, unknown = expected_moment(to_diagonal(S, STEADY), row)
            return (1.0 - rate) * S + share * (filled[:, None] * filled) + rate * unknown
        return (1.0 - rate) * S + share * (row[:, None] * row) if share > 0 else S

    @cached_property
    def _metric(self) -> Array:
        return _whitener(np.asarray(self.covariance))

    def start(self) -> Array:
        """The covariance after the training rows."""
        return np.asarray(self.covariance)

    def after(self, z: Array, S: Array) -> Array:
        """S after one row z (1, N)."""
        return self._moved(S, z[0], float(_row_weights(z, self._metric)[0]), bool(np.isnan(z).any()))

    def run(self, z: Array, means: Array, scales: Array, S: Array) -> tuple[DenseLaw, Array]:
        """Laws around means (T, N) with these scales (T, N), and S after the last row of z (T, N)."""
        out = np.empty((*means.shape, means.shape[1]))
        for t, (before, after) in enumerate(self.course(z, S, self._metric)):
            out[t], S = before, after
        return self._laws(means, scales, out), S

    def law(self, mean: Array, scale: Array, S: Array) -> DenseLaw:
        """The law around a mean (N,) with these scales (N,)."""
        return self._laws(mean, scale, S.copy())

    def _laws(self, means: Array, scales: Array, S: Array) -> DenseLaw:
        """Laws around means (..., N); S (..., N, N) is overwritten."""
        diagonal = np.einsum("...ii->...i", S)
        variance = diagonal * scales**2
        S *= (1.0 - float(self.shrink or 0.0)) * scales[..., :, None] * scales[..., None, :]
        diagonal[...] = variance
        return DenseLaw._made(means, Covariance(S))


@storable
@dataclass(frozen=True)
class FactorCorrelations:
    """Correlations of a few fixed factors and a rest of every sensor; what moves is the variance of each sensor."""

    half_life: float = 1000.0
    factor: Array | None = None  # (N, r), set by fit with the rest
    rest: Array | None = None  # (N,)

    def fit(self, z: Array) -> FactorCorrelations:
        """Leading directions of standardised residuals (T, N); of gaps what the factors let expect, found in turns."""
        rows = np.clip(z[some_rows(len(z), ROWS)], -WIDEST, WIDEST)
        missing = np.isnan(rows)
        made = self._directions(np.nan_to_num(rows), np.zeros(1))
        for _ in range(ROUNDS if missing.any() else 0):
            made = made._directions(made._filled(rows), (missing * made.rest).mean(axis=0))
        return made

    def _directions(self, rows: Array, unknown: Array) -> FactorCorrelations:
        """Factors and rest from complete rows (T, N), and the mean variance (N,) of what was filled into them."""
        rank = min(RANK, rows.shape[1] - 1, len(rows))
        top, axes = _leading(rows, rank)
        noise = max(float(np.sum(rows**2) / len(rows) + unknown.sum() - top.sum()), 0.0) / max(rows.shape[1] - rank, 1)
        factor = axes * np.sqrt(np.maximum(top - noise, 0.0))
        return replace(self, factor=factor, rest=np.maximum(1.0 - (factor**2).sum(axis=1), SMALLEST))

    def _filled(self, rows: Array) -> Array:
        """Rows (T, N) whose gaps have what is to be expected of them given the others."""
        L = np.asarray(self.factor)
        weights = ~np.isnan(rows) / np.asarray(self.rest)
        pairs = (L[:, :, None] * L[:, None, :]).reshape(len(L), -1)
        C = (weights @ pairs).reshape(-1, L.shape[1], L.shape[1]) + np.eye(L.shape[1])
        common = np.linalg.solve(C, ((weights * np.nan_to_num(rows)) @ L)[..., None])[..., 0]
        return np.where(np.isnan(rows), common @ L.T, rows)

    def start(self) -> Array:
        """Variance of every sensor."""
        return np.ones(len(np.asarray(self.rest)))

    def after(self, z: Array, variance: Array) -> Array:
        """Variances after one row z (1, N)."""
        return self._moved(np.minimum(z[0] ** 2, LARGEST), variance)

    def _moved(self, squares: Array, variance: Array) -> Array:
        step = np.where(np.isnan(squares), 0.0, squares - variance)
        return variance + (1.0 - 2.0 ** (-1.0 / self.half_life)) * step

    def run(self, z: Array, means: Array, scales: Array, variance: Array) -> tuple[LowRankLaw, Array]:
        """Laws around means (T, N) with these scales (T, N), and the variances after the last row of z (T, N)."""
        out = np.empty(means.shape)
        for t, row in enumerate(np.minimum(z**2, LARGEST)):
            out[t], variance = variance, self._moved(row, variance)
        return self.law(means, scales, out), variance

    def law(self, means: Array, scales: Array, variance: Array) -> LowRankLaw:
        """Laws around means (..., N) with these scales and variances (..., N)."""
        assert self.factor is not None and self.rest is not None
        sd = scales * np.sqrt(variance)
        return LowRankLaw(means, sd**2 * self.rest, sd[..., None] * self.factor)


@storable
@dataclass(frozen=True)
class FactorShape:
    """A shape for many sensors: `FactorCorrelations` of residuals in units of what they were in the pilot block."""

    correlations: FactorCorrelations = FactorCorrelations()
    sd: Array | None = None  # of the pilot residuals (N,), set by fit

    def fit(self, pilot: Pilot) -> FactorShape:
        """Units and factors of the pilot residuals."""
        sd = np.sqrt(np.maximum(np.mean(pilot.residuals**2, axis=0), np.finfo(float).tiny))
        return replace(self, sd=sd, correlations=self.correlations.fit(pilot.residuals / sd))

    def start(self) -> Array:
        """Variance of every sensor in these units."""
        return self.correlations.start()

    def law(self, center: Array, state: Array) -> LowRankLaw:
        """The law of the next row around its center (N,)."""
        return self.correlations.law(center, np.asarray(self.sd), state)

    def after(self, residuals: Array, state: Array) -> Array:
        """The state after a row of residuals (1, N), NaN = missing."""
        return self.correlations.after(residuals / np.asarray(self.sd), state)

    def run(self, residuals: Array, centers: Array, times: Array | None, state: Array) -> tuple[LowRankLaw, Array]:
        """Laws of all rows."""
        sd = np.broadcast_to(np.asarray(self.sd), centers.shape)
        return self.correlations.run(residuals / sd, centers, sd, state)


def _leading(rows: Array, rank: int) -> tuple[Array, Array]:
    """Largest eigenvalues (r,) of the second moment of rows (T, N), and their axes (N, r)."""
    if rows.shape[1] <= len(rows):
        values, axes = np.linalg.eigh(gram(rows) / len(rows))
        return values[-rank:], axes[:, -rank:]
    values, vectors = np.linalg.eigh(rows @ rows.T / len(rows))
    top = np.maximum(values[-rank:], np.finfo(float).tiny)
    return top, rows.T @ vectors[:, -rank:] / np.sqrt(top * len(rows))


def _row_weights(z: Array, whitener: Array) -> Array:
    """(5 + k) / (5 + the squared distance of the k that were read) (T,), under a covariance with this whitener.

    NaN in rows without any reading.
    """
    missing = np.isnan(z)
    if not missing.any():
        return (FREEDOM + z.shape[1]) / (FREEDOM + ((z @ whitener.T) ** 2).sum(axis=1))
    distance = ((fill_expected(z, whitener.T @ whitener) @ whitener.T) ** 2).sum(axis=1)
    read = (~missing).sum(axis=1)
    return np.where(read > 0, (FREEDOM + read) / (FREEDOM + distance), np.nan)


def _whitener(S: Array) -> Array:
    return np.linalg.inv(np.linalg.cholesky(to_diagonal(S, STEADY)))


def _second_moment(z: Array) -> Array:
    """Second moment (N, N) of the rows of z, each by its weight; where they have gaps, as expected of them."""
    z = z[~np.isnan(z).all(axis=1)]
    if not np.isnan(z).any():
        first = _lifted(gram(np.clip(z, -WIDEST, WIDEST)) / max(len(z), 1))
        return _lifted(gram(z * np.sqrt(_row_weights(z, _whitener(first)))[:, None]) / max(len(z), 1))
    whitener = _whitener(covariance_with_gaps(np.clip(z, -WIDEST, WIDEST)))
    filled, unknown = expected_rows(z, whitener.T @ whitener)
    return _lifted((gram(filled * np.sqrt(_row_weights(z, whitener))[:, None]) + unknown) / len(z))


def _lifted(S: Array) -> Array:
    """A second moment, positive definite."""
    S[np.diag_indices_from(S)] += 1e-6 * max(float(S.diagonal().mean()), 1e-6)
    return S
