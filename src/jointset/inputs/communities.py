"""Groups of sensors that a graph holds together: connected components, Louvain communities, spectral groups.

A grouping is a tuple of groups, each a sorted tuple of sensor indices, ordered by their smallest member.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointset.contracts import Array
from jointset.errors import require
from jointset.graph import Adjacency, dense, symmetrize, without_loops

Groups = tuple[tuple[int, ...], ...]


def components(adjacency: Adjacency) -> Groups:
    """Connected components, the direction of edges left aside.

    >>> components([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    ((0, 1), (2,))
    """
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(symmetrize(adjacency) > 0, directed=False)
    return from_labels(labels)


def louvain(adjacency: Adjacency, resolution: float = 1.0, seed: int = 0) -> Groups:
    """Communities of largest modularity as Louvain's search finds them; the same for the same seed.

    >>> louvain(np.kron(np.eye(2), np.ones((2, 2))))
    ((0, 1), (2, 3))
    """
    import networkx as nx

    require(resolution > 0, f"the resolution of Louvain must be positive, got {resolution}")
    A = dense(without_loops(symmetrize(adjacency)))
    found = nx.community.louvain_communities(nx.from_numpy_array(A), resolution=resolution, seed=seed)
    return _ordered(found)


def spectral_groups(adjacency: Adjacency, k: int = 4, seed: int = 0, starts: int = 10) -> Groups:
    """At most k groups: k-means on the row-normalised bottom-k eigenvectors of the normalised Laplacian.

    Of `starts` searches from k-means++ centres the tightest is kept.

    >>> spectral_groups(np.kron(np.eye(2), np.ones((3, 3))), k=2)
    ((0, 1, 2), (3, 4, 5))
    """
    A = dense(without_loops(symmetrize(adjacency)))
    require(k >= 1, f"at least one group, got k = {k}")
    if k >= len(A):
        return tuple((i,) for i in range(len(A)))
    rows = bottom_eigenvectors(A, k)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return from_labels(k_means(rows, k, np.random.default_rng(seed), starts))


def bottom_eigenvectors(A: Array, k: int) -> Array:
    """Eigenvectors (N, k) of I - D^-1/2 A D^-1/2 with the smallest eigenvalues, part by connected part.

    Every part has an eigenvalue 0 (a sensor without edges too), so with more than k parts "the bottom k" is not unique
    and a solver on the whole matrix returns a mixture that rounding decides. Here the larger part goes first.
    """
    found: list[tuple[float, int, int, Array]] = []
    for part in components(A):
        inside = A[np.ix_(part, part)]
        scale = 1.0 / np.sqrt(np.maximum(inside.sum(axis=1), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(np.eye(len(part)) * (len(part) > 1) - inside * np.outer(scale, scale))
        for value, vector in zip(values, vectors.T, strict=True):
            whole = np.zeros(len(A))
            whole[list(part)] = vector
            found.append((round(float(value), 9), -len(part), part[0], whole))
    found.sort(key=lambda one: one[:3])
    return np.stack([vector for *_, vector in found[:k]], axis=1)


def k_means(points: Array, k: int, rng: np.random.Generator, starts: int = 10) -> NDArray[np.int64]:
    """Labels (n,) of points (n, d): the tightest of several searches, each from its own k-means++ start."""
    found = [_lloyd(points, _spread_centers(points, k, rng)) for _ in range(starts)]
    return min(found, key=lambda one: one[1])[0]


def _lloyd(points: Array, centers: Array, iterations: int = 50) -> tuple[NDArray[np.int64], float]:
    """Labels and their sum of squared distances, by Lloyd's steps until nothing moves; a centre may lose all points."""
    labels = np.full(len(points), -1)
    for _ in range(iterations):
        nearest = _squared_distances(points, centers).argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        centers = np.stack(
            [points[labels == c].mean(axis=0) if (labels == c).any() else center for c, center in enumerate(centers)]
        )
    return labels, float(((points - centers[labels]) ** 2).sum())


def _spread_centers(points: Array, k: int, rng: np.random.Generator) -> Array:
    """k-means++: every further centre is a point drawn in proportion to its squared distance to the nearest one."""
    chosen = [int(rng.integers(len(points)))]
    while len(chosen) < k:
        gap = _squared_distances(points, points[chosen]).min(axis=1)
        gap[gap < 1e-20] = 0.0
        weights = gap / gap.sum() if gap.any() else None
        chosen.append(int(rng.choice(len(points), p=weights)))
    return points[chosen]


def _squared_distances(points: Array, centers: Array) -> Array:
    return ((points[:, None, :] - centers) ** 2).sum(axis=-1)


def from_labels(labels: ArrayLike) -> Groups:
    """Groups of equal labels (n,); labels that nobody has are dropped.

    >>> from_labels([7, 3, 7])
    ((0, 2), (1,))
    """
    given = np.asarray(labels)
    return _ordered(np.flatnonzero(given == label).tolist() for label in np.unique(given))


def _ordered(groups: Iterable[Iterable[int]]) -> Groups:
    return tuple(sorted(tuple(sorted(int(i) for i in group)) for group in groups))
