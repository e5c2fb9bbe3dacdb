"""Residuals with gaps: what is to be expected of those not read, and how little is known of them.

With S the covariance of a row, P = S^-1 and M the sensors that were not read, their conditional mean given the others
is -P_MM^-1 (P e)_M, e being 0 on M, and their conditional covariance P_MM^-1: what a gap costs grows with how many are
missing. Rows that give a shape are made complete (`complete_residuals`); covariances that move take the conditional
expectation of e e' (`expected_moment`), so that they go on with what was read, and stay what they are where nothing is
known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dposv

from jointset.algebra.covariance_gaps import patterns_of
from jointset.algebra.pooling import some_rows
from jointset.contracts import Array
from jointset.errors import require, some
from jointset.residuals.shrinkage import to_diagonal

DONORS = 3  # complete rows a sensor that are enough to draw from; with fewer, rows are drawn from a normal law
LEAST = 1e-3  # smallest eigenvalue of correlations from pairs, and share that takes any to the diagonal
FLAT = 1e-20  # of the largest variance: no sensor has less
SHRUNK, ROUNDS = 0.3, 3  # share that takes those to the diagonal, and rounds of EM from there
ROWS = 2_000  # that EM looks at, and ten a sensor
NUMBERS, LARGE = 4_000_000, 64  # that blocks inverted at once may hold; sensors missing from which each goes alone


def complete_residuals(residuals: Array, start: str, sensors: Sequence[str] = (), seed: int = 0) -> Array:
    """Residuals (m, N) of the rows with at least one reading, gaps filled; `start` is of the message of a refusal.

    Left out, rows with gaps leave too few; filled with what is to be expected, they look calmer than they are. So a gap
    takes what is to be expected given the sensors that were read, plus what another row, complete and drawn at random,
    differs there from what its own readings on those sensors let expect. That keeps the spread of the residuals, their
    tails and how they go together, for readings that are missing at random.

    >>> E = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 5.0]])
    >>> complete_residuals(E, "copula")
    array([[1., 2.], [3., 5.]])
    """
    E = residuals[~np.isnan(residuals).all(axis=1)]
    missing = np.isnan(E)
    if not missing.any():
        return E
    few = np.flatnonzero((~missing).sum(axis=0) < 2)
    who = some([sensors[int(i)] for i in few]) if len(sensors) else f"{len(few)} sensors"
    require(not len(few), f"{start}: fewer than two readings of {who}: leave them out with --drop, or give more rows")
    rng, center, S = np.random.default_rng(seed), np.nanmean(E, axis=0), covariance_with_gaps(E)
    donors = E[~missing.any(axis=1)]
    if len(donors) < max(DONORS * E.shape[1], 30):
        return center + complete_around(E - center, rng.standard_normal(E.shape), S)
    drawn = donors[rng.integers(len(donors), size=len(E))]
    return np.where(missing, drawn + fill_expected(E - drawn, np.linalg.inv(S)), E)


def complete_around(residuals: Array, normals: Array, S: Array) -> Array:
    """Residuals (T, N), gaps filled by a draw from the normal law of covariance S given the others; normals (T, N)."""
    drawn = normals @ np.linalg.cholesky(S).T
    return np.where(np.isnan(residuals), drawn + fill_expected(residuals - drawn, np.linalg.inv(S)), residuals)


def covariance_with_gaps(residuals: Array) -> Array:
    """Covariance (N, N) of residuals (T, N) that lack some; a sensor never read varies as the others do, by itself.

    From the pairs of sensors read together, made positive definite and shrunk to the diagonal, a few rounds of EM: each
    takes the expectation of every row's e e' given what was read of it. Simulated (Student-t, 20 and 50 sensors, a
    quarter of the readings missing in blocks), three rounds come within 0.01 nats a sensor of what complete rows give;
    the pairs alone are up to 18 off, and many rounds fit noise (docs/gaps.md).
    """
    rows = some_rows(len(residuals), max(ROWS, 10 * residuals.shape[1]))
    seen = (~np.isnan(residuals)).astype(float)
    centred = residuals - np.nan_to_num(residuals).sum(axis=0) / np.maximum(seen.sum(axis=0), 1.0)
    S = _covariance_of_pairs(np.nan_to_num(centred), seen)
    for _ in range(ROUNDS):
        filled, unknown = expected_rows(centred[rows], np.linalg.inv(S))
        S = _definite((filled.T @ filled + unknown) / len(rows))
    return S


def _covariance_of_pairs(rows: Array, seen: Array) -> Array:
    """From rows (T, N) that are 0 where nothing was `seen` (T, N): positive definite, shrunk to the diagonal."""
    S = rows.T @ rows / np.maximum(seen.T @ seen, 1.0)
    unread = ~seen.any(axis=0)
    S[unread, unread] = S.diagonal()[~unread].mean()
    S = _definite(S)
    sd = np.sqrt(S.diagonal())
    values, vectors = np.linalg.eigh(S / np.outer(sd, sd))
    R = (vectors * np.maximum(values, LEAST)) @ vectors.T
    return to_diagonal(R, SHRUNK) * np.outer(sd, sd)


def _definite(S: Array) -> Array:
    """A covariance without flat directions: shrunk by a little, its variances not far below the largest."""
    S = to_diagonal(0.5 * (S + S.T), LEAST)
    variance = S.diagonal()
    S[np.diag_indices_from(S)] = np.maximum(variance, max(FLAT * float(variance.max()), np.finfo(float).tiny))
    return S


def fill_expected(residuals: Array, precision: Array) -> Array:
    """Residuals (T, N), those missing at their conditional mean given the others of their row."""
    return expected_rows(residuals, precision)[0]


def expected_rows(residuals: Array, P: Array) -> tuple[Array, Array]:
    """Residuals (T, N) so filled under precision P, and the sum (N, N) of the covariances of what the rows lack.

    A pattern of gaps is inverted once for all its rows; those of single rows that lack as many sensors go together.
    """
    missing = np.isnan(residuals)
    filled, unknown = np.where(missing, 0.0, residuals), np.zeros(P.shape)
    gaps = np.flatnonzero(missing.any(axis=1))
    pulled = filled[gaps] @ P
    patterns, own = patterns_of(missing[gaps])
    order, often, lack = np.argsort(own, kind="stable"), np.bincount(own), patterns.sum(axis=1)
    begin = np.cumsum(often) - often
    single = (often == 1) & (lack < LARGE)
    for k in np.unique(lack[single]).tolist():
        alike = np.flatnonzero(single & (lack == k))
        for which in np.array_split(alike, len(alike) * k**2 // NUMBERS + 1):
            rows, M = order[begin[which]], np.nonzero(patterns[which])[1].reshape(-1, k)
            blocks = (M[:, :, None], M[:, None, :])
            left = np.linalg.inv(P[blocks])
            filled[gaps[rows][:, None], M] = -np.einsum("tij,tj->ti", left, pulled[rows[:, None], M])
            np.add.at(unknown, blocks, left)
    for number in np.flatnonzero(~single).tolist():
        rows, lacks = order[begin[number] : begin[number] + often[number]], np.flatnonzero(patterns[number])
        inverse = np.linalg.inv(P[np.ix_(lacks, lacks)])
        filled[np.ix_(gaps[rows], lacks)] = -pulled[np.ix_(rows, lacks)] @ inverse
        unknown[np.ix_(lacks, lacks)] += often[number] * inverse
    return filled, unknown


def expected_moment(S: Array, e: Array) -> tuple[Array, Array]:
    """Of a residual (N,) with gaps under covariance S: filled as expected, and the covariance (N, N) of what it lacks.

    The expectation of e e' given what was read is the outer product of the first plus the second.
    """
    missing = np.isnan(e)
    lacks, read = missing.nonzero()[0], (~missing).nonzero()[0]
    rows, own = S.take(read, 0), S.take(lacks, 0).take(lacks, 1)
    filled, unknown = e.copy(), np.zeros(S.shape)
    if len(read):
        known, across = rows.take(read, 1), rows.take(lacks, 1)
        _, gain, failed = dposv(known, across)
        if failed:  # flat to rounding
            gain = np.linalg.solve(known, across)
        filled[lacks] = e.take(read).dot(gain)
        own -= across.T.dot(gain)
    unknown[lacks[:, None], lacks] = 0.5 * (own + own.T)
    return filled, unknown
