"""How standardised residuals go together: a moving covariance, or one of low rank where sensors are many.

Rows count by the weights of a Student-t, so that one wild row does not make all sensors look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jointset.contracts import Array
from jointset.covariance import Covariance
from jointset.laws import DenseLaw, LowRankLaw
from jointset.pooling import log_scores, some_rows
from jointset.residuals.shrinkage import gram, to_diagonal
from jointset.storage import storable

FREEDOM = 5.0  # of the weights
HALF_LIVES = (200.0, 500.0, 2000.0, None)  # None: it does not move
SHRINKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5)
NUMBERS = 600_000  # that the covariances of a choice may hold
FEWEST = 50  # rows below which nothing is chosen
MEMORY = 5  # half-lives that are run through before the first law
WIDEST = 4.0  # a standardised residual counts as no more, before there are weights
STEADY = 0.01  # shrinkage of the covariance that weights come from
SMALLEST = 0.05  # variance of a sensor by itself, of 1
RANK = 10
LARGEST = 20.0  # a square counts as no more
ROWS = 2_000  # that give the factors


@storable
@dataclass(frozen=True)
class MovingCorrelations:
    """S_{t+1} = w S_t + (1 - w) q_t z_t z_t', emitted as (1 - s) S + s diag S; w from the half-life, s the shrinkage.

    q_t = (5 + N) / (5 + z_t' M^-1 z_t), M being S at the end of the training rows. Half-life and shrinkage are chosen
    by log density on the last fifth of the rows unless given; 0 is a half-life without end. A row with a gap moves
    nothing.
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
        lives = HALF_LIVES if self.half_life is None else (self.half_life or None,)
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
        weight = 1.0 - 2.0 ** (-1.0 / self.half_life) if self.half_life else 0.0
        shares = weight * _row_weights(z, whitener)  # NaN where a sensor was not read
        for row, share in zip(z, shares.tolist(), strict=True):
            before = S
            if share > 0:
                S = (1.0 - weight) * S + share * np.outer(row, row)
            yield before, S

    @cached_property
    def _metric(self) -> Array:
        return _whitener(np.asarray(self.covariance))

    def start(self) -> Array:
        """The covariance after the training rows."""
        return np.asarray(self.covariance)

    def after(self, z: Array, S: Array) -> Array:
        """S after one row z (1, N)."""
        return next(self.course(z, S, self._metric))[1]

    def run(self, z: Array, means: Array, scales: Array, S: Array) -> tuple[DenseLaw, Array]:
        """Laws around means (T, N) with these scales (T, N), and S after the last row of z (T, N)."""
        out = np.empty((*means.shape, means.shape[1]))
        for t, (before, after) in enumerate(self.course(z, S, self._metric)):
            out[t], S = before, after
        diagonal = np.einsum("tii->ti", out).copy()
        out *= (1.0 - float(self.shrink or 0.0)) * scales[:, :, None] * scales[:, None, :]
        np.einsum("tii->ti", out)[:] = diagonal * scales**2
        return DenseLaw(means, Covariance(out)), S


@storable
@dataclass(frozen=True)
class FactorCorrelations:
    """Correlations of a few fixed factors and a rest of every sensor; what moves is the variance of each sensor."""

    half_life: float = 1000.0
    factor: Array | None = None  # (N, r), set by fit with the rest
    rest: Array | None = None  # (N,)

    def fit(self, z: Array) -> FactorCorrelations:
        """Leading directions of standardised residuals (T, N); a gap counts as 0."""
        rows = np.clip(np.nan_to_num(z[some_rows(len(z), ROWS)]), -WIDEST, WIDEST)
        rank = min(RANK, z.shape[1] - 1, len(rows))
        top, axes = _leading(rows, rank)
        noise = max(float(np.sum(rows**2) / len(rows) - top.sum()), 0.0) / max(z.shape[1] - rank, 1)
        factor = axes * np.sqrt(np.maximum(top - noise, 0.0))
        rest = np.maximum(1.0 - (factor**2).sum(axis=1), SMALLEST)
        return replace(self, factor=factor, rest=rest)

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
        assert self.factor is not None and self.rest is not None
        out = np.empty(means.shape)
        for t, row in enumerate(np.minimum(z**2, LARGEST)):
            out[t], variance = variance, self._moved(row, variance)
        sd = scales * np.sqrt(out)
        return LowRankLaw(means, sd**2 * self.rest, sd[:, :, None] * self.factor), variance


def _leading(rows: Array, rank: int) -> tuple[Array, Array]:
    """Largest eigenvalues (r,) of the second moment of rows (T, N), and their axes (N, r)."""
    if rows.shape[1] <= len(rows):
        values, axes = np.linalg.eigh(gram(rows) / len(rows))
        return values[-rank:], axes[:, -rank:]
    values, vectors = np.linalg.eigh(rows @ rows.T / len(rows))
    top = np.maximum(values[-rank:], np.finfo(float).tiny)
    return top, rows.T @ vectors[:, -rank:] / np.sqrt(top * len(rows))


def _row_weights(z: Array, whitener: Array) -> Array:
    """(5 + N) / (5 + |W z|^2) (T,), W the inverse of a square root of a covariance; NaN in rows with a gap."""
    return (FREEDOM + z.shape[1]) / (FREEDOM + ((z @ whitener.T) ** 2).sum(axis=1))


def _whitener(S: Array) -> Array:
    return np.linalg.inv(np.linalg.cholesky(to_diagonal(S, STEADY)))


def _second_moment(z: Array) -> Array:
    """Second moment (N, N) of the rows of z, each by its weight; of the pairs that were read where rows have gaps."""
    seen = ~np.isnan(z)
    filled = np.where(seen, z, 0.0)
    first = _moment_of_pairs(np.clip(filled, -WIDEST, WIDEST), seen)
    return _moment_of_pairs(filled * np.sqrt(_row_weights(filled, _whitener(first)))[:, None], seen)


def _moment_of_pairs(rows: Array, seen: Array) -> Array:
    """Second moment of rows (T, N) that are 0 where nothing was read, positive definite."""
    S = gram(rows) / (max(len(rows), 1) if seen.all() else np.maximum(gram(seen.astype(float)), 1.0))
    lowest = 0.0 if seen.all() else float(np.linalg.eigvalsh(S)[0])
    S[np.diag_indices_from(S)] += max(0.0, -1.1 * lowest) + 1e-6 * max(float(S.diagonal().mean()), 1e-6)
    return S
