"""Adjacency rules: road kernel from distances, haversine kernel from coordinates, k nearest by correlation.

Every rule gives weights >= 0 (N, N) in the order of what it is given, without self loops: the normalised shift adds
its own. `none` is no rule but a choice: a graph without edges, every sensor on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.graph import BLOCK, Adjacency, of_edges, symmetrize, thinned

EARTH_RADIUS = 6371.0088  # mean radius in km (IUGG)
ROUNDING = 1e-12  # relative spread below which a sensor does not vary


def road_kernel(distances: ArrayLike, threshold: float = 0.1, sigma: float | None = None) -> Array:
    """Thresholded Gaussian kernel exp(-d^2 / sigma^2) of road distances (N, N), inf = no road; weights below are 0.

    `sigma` defaults to the standard deviation of all finite distances, the zeros on the diagonal among them: the rule
    of DCRNN (Li et al. 2018), which gives its published METR-LA and PEMS-BAY graphs. Directed when the distances are.

    >>> road_kernel([[0.0, 1.0, 5.0], [1.0, 0.0, np.inf], [5.0, np.inf, 0.0]], sigma=2.0).round(3)
    array([[0.   , 0.779, 0.   ],
           [0.779, 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    D = np.asarray(distances, dtype=np.float64)
    require(
        D.ndim == 2 and D.shape[0] == D.shape[1], f"distances have shape {D.shape}: give one row and column a sensor"
    )
    require(0 <= threshold < 1, f"the kernel's threshold must lie in [0, 1), got {threshold}")
    wrong = np.isnan(D) | (D < 0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InputError(f"the distance from sensor {i} to sensor {j} (from 0) is {D[i, j]:g}: use inf for no road")
    if sigma is None:
        reachable = D[np.isfinite(D)]
        sigma = float(reachable.std()) if reachable.size else 0.0
    if len(D) == 1:
        return np.zeros((1, 1))
    require(sigma > 0, f"the kernel's scale must be positive, got {sigma:g}: all distances are equal? give sigma")
    weights = np.exp(-((D / sigma) ** 2))
    weights[weights < threshold] = 0.0
    np.fill_diagonal(weights, 0.0)
    return weights


def haversine(coordinates: ArrayLike) -> Array:
    """Great-circle distances (N, N) in km between latitudes and longitudes (N, 2) in degrees.

    >>> haversine([[0.0, 0.0], [0.0, 180.0], [90.0, 0.0]]).round(1)
    array([[    0. , 20015.1, 10007.6],
           [20015.1,     0. , 10007.6],
           [10007.6, 10007.6,     0. ]])
    """
    places = np.asarray(coordinates, dtype=np.float64)
    require(places.ndim == 2 and places.shape[1] == 2, f"coordinates have shape {places.shape}: give (sensors, 2)")
    for i, (latitude, longitude) in enumerate(places):
        require(
            abs(latitude) <= 90 and abs(longitude) <= 360,
            f"sensor {i} (from 0) lies at ({latitude:g}, {longitude:g}): give latitude, longitude in degrees",
        )
    latitude, longitude = np.radians(places).T
    across = np.sin((latitude[:, None] - latitude) / 2) ** 2
    along = np.sin((longitude[:, None] - longitude) / 2) ** 2
    chord = across + np.outer(np.cos(latitude), np.cos(latitude)) * along
    return 2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))


def haversine_kernel(coordinates: ArrayLike, threshold: float = 0.1, sigma: float | None = None) -> Array:
    """Thresholded Gaussian kernel of great-circle distances; `sigma` in km, by default as for `road_kernel`."""
    return road_kernel(haversine(coordinates), threshold, sigma)


def correlation(values: ArrayLike) -> Array:
    """Pearson correlations (N, N) of the columns of values (T, N), each pair over the steps where both have a reading.

    A pair without two such steps, or one of whose sensors does not vary there, has correlation 0.
    """
    return np.concatenate(list(correlations(values)))


def correlations(values: ArrayLike) -> Iterator[Array]:
    """The same in blocks of rows (n, N), so that all pairs are never held at once."""
    X = np.array(values, dtype=np.float64)
    seen = ~np.isnan(X)
    # Centred first: variances from sums of raw squares would cancel.
    mean = np.divide(X.sum(0, where=seen), seen.sum(0), out=np.zeros(X.shape[1]), where=seen.any(0))
    X -= mean
    X[:, np.nanmax(np.abs(X), axis=0, initial=0.0) <= ROUNDING * np.abs(mean)] = 0.0
    X[~seen] = 0.0
    M, complete = seen.astype(np.float64), bool(seen.all())
    blocks = [slice(first, first + BLOCK) for first in range(0, X.shape[1], BLOCK)]
    power = np.einsum("ti,ti->i", X, X)
    for own in blocks:
        covariance = X[:, own].T @ X
        if complete:
            scale = np.outer(power[own], power)
        else:
            count = np.maximum(M[:, own].T @ M, 1.0)
            mine, theirs = X[:, own].T @ M, M[:, own].T @ X  # sums over the steps that two sensors share
            covariance -= mine * theirs / count
            scale = _spread((X[:, own] ** 2).T @ M, mine, count) * _spread(M[:, own].T @ X**2, theirs, count)
        found = np.divide(covariance, np.sqrt(scale), out=np.zeros_like(scale), where=scale > 0)
        yield np.clip(found, -1.0, 1.0)


def _spread(squares: Array, total: Array, count: Array) -> Array:
    """Sums of squares around the mean; 0 where that is rounding."""
    spread = squares - total**2 / count
    return np.where(spread <= ROUNDING * squares, 0.0, spread)


def correlation_knn(values: ArrayLike, k: int = 8, tau: float = 0.3) -> Adjacency:
    """Each sensor's `k` strongest correlations |r| >= tau as weights, then (A + A')/2; ties go to the earlier column.

    values (T, N), NaN = missing: give the training block only. From 1,000 sensors on it is sparse (of scipy.sparse).

    >>> x = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [3.0, 3.0, 0.0]])
    >>> correlation_knn(x, k=1).round(2)
    array([[0.  , 1.  , 0.22],
           [1.  , 0.  , 0.  ],
           [0.22, 0.  , 0.  ]])
    """
    require(k >= 1, f"a sensor needs at least one neighbour, got k = {k}")
    require(0 <= tau <= 1, f"tau is a correlation in [0, 1], got {tau}")
    nearest, weights, n = [], [], 0
    for block in correlations(values):
        strength = np.abs(block)
        np.fill_diagonal(strength[:, n:], 0.0)
        strength[strength < tau] = 0.0
        nearest.append(np.argsort(-strength, axis=1, kind="stable")[:, :k])
        weights.append(np.take_along_axis(strength, nearest[-1], axis=1))
        n += len(block)
    ends = np.stack([np.repeat(np.arange(n), min(k, n)), np.concatenate(nearest).ravel()], axis=1)
    return thinned(symmetrize(of_edges(ends, np.concatenate(weights).ravel(), n)))
