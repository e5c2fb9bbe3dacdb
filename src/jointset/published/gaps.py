"""Calibration residuals with gaps made complete, so that a published method is calibrated on every row.

Left out, rows with gaps leave too few; filled with what is to be expected, they look calmer than they are. So a gap
takes what is to be expected given the sensors that were read, plus what another row, complete and drawn at random,
differs there from what its own readings on those sensors let expect. That keeps the spread of the residuals, their
tails and how they go together. It stands in for readings that are missing at random; no filled value is ever scored.
"""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array
from jointset.errors import require

DONORS = 30  # complete rows that are enough to draw from; with fewer, rows are drawn from a normal law


def complete_residuals(residuals: Array, name: str, seed: int = 0) -> Array:
    """Residuals (m, N) of the rows with at least one reading, gaps filled.

    >>> E = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 5.0]])
    >>> complete_residuals(E, "copula")
    array([[1., 2.], [3., 5.]])
    """
    E = residuals[~np.isnan(residuals).all(axis=1)]
    missing = np.isnan(E)
    if not missing.any():
        return E
    require(
        bool((~missing).sum(axis=0).min() > 1),
        f"{name}: a sensor has no readings in the calibration rows: drop it, or calibrate on rows that have some",
    )
    rng = np.random.default_rng(seed)
    center, S = np.nanmean(E, axis=0), _pairwise_covariance(E)
    donors = E[~missing.any(axis=1)]
    if len(donors) >= DONORS:
        drawn = donors[rng.integers(len(donors), size=len(E))]
    else:
        drawn = center + rng.standard_normal(E.shape) @ np.linalg.cholesky(S).T
    filled = E.copy()
    for t in np.flatnonzero(missing.any(axis=1)):
        gap, seen = missing[t], ~missing[t]
        response = np.linalg.solve(S[np.ix_(seen, seen)], S[np.ix_(seen, gap)])
        filled[t, gap] = drawn[t, gap] + (E[t, seen] - drawn[t, seen]) @ response
    return filled


def _pairwise_covariance(E: Array) -> Array:
    """Covariance (N, N) from the pairs of sensors read together, made positive definite."""
    seen = (~np.isnan(E)).astype(float)
    centred = np.where(seen > 0, E - np.nanmean(E, axis=0), 0.0)
    S = centred.T @ centred / np.maximum(seen.T @ seen, 1.0)
    sd = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(S / np.outer(sd, sd))
    return (vectors * np.maximum(values, 1e-3)) @ vectors.T * np.outer(sd, sd)
