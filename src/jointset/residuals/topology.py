"""One covariance of the residuals, mixed with one that the graph suggests (STACI).

The graph's part is the tail-up model with equal weights: sensors i and j that are joined by a path, along the
direction of the edges, are correlated by exp(-d_ij / range), d_ij the length of the shortest one; all others are not.

Reference: Zhang et al., "Topology-aware conformal prediction for stream networks", 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jointset.contracts import Array, Pilot
from jointset.graph import Adjacency, dense, without_loops
from jointset.residuals.shapes import Constant
from jointset.residuals.shrinkage import correlations, is_singular, positive_definite, second_moment
from jointset.residuals.splits import no_graph
from jointset.storage import storable

WEIGHTS = tuple(np.linspace(0.0, 1.0, 21).tolist())  # of the graph's part, that are tried
USUAL = 0.6  # the authors' weight, where too few rows are there to choose one
FEWEST = 40  # rows below which nothing is chosen
LEVEL = 0.9  # share of the later rows that the ellipsoids compared must hold
RANGES = np.geomspace(0.1, 30.0, 40)  # in lengths of the strongest edge
SMALLEST = 1e-6  # eigenvalue of the graph's correlations


@storable
@dataclass(frozen=True)
class Topology(Constant):
    """(1 - weight) S + weight D G D: S the covariance of the pilot residuals, D their sd, G what the graph suggests.

    The weight is the one whose ellipsoid, from the first half of the pilot rows, holds 90 % of the second half in the
    smallest volume; weight and range are then used with S of all rows.
    """

    weight: float | None = None  # chosen by fit where None
    reach: float | None = None  # the range; by fit, the nearest to the residuals' correlations, where None
    centred = True

    def fit(self, pilot: Pilot) -> Topology:
        """Range, weight and covariance."""
        if pilot.adjacency is None:
            raise no_graph(pilot.name)
        E, distance = pilot.residuals, path_lengths(pilot.adjacency)
        reach = nearest_range(distance, correlations(second_moment(E))) if self.reach is None else self.reach
        weight = self._chosen(E, distance) if self.weight is None else self.weight
        S = positive_definite(mixed(second_moment(E), tail_up(distance, reach), weight), pilot.name)
        return replace(self, weight=weight, reach=reach, covariance=S)

    def _chosen(self, residuals: Array, distance: Array) -> float:
        """The weight that the second half of the rows speaks for, all else being known from the first."""
        early, late = np.array_split(residuals, 2)
        if len(residuals) < FEWEST:
            return USUAL
        S = second_moment(early)
        G = tail_up(distance, nearest_range(distance, correlations(S)) if self.reach is None else self.reach)
        volumes = {weight: log_volume(mixed(S, G, weight), late) for weight in WEIGHTS}
        return min(volumes, key=volumes.__getitem__)


def mixed(covariance: Array, graph: Array, weight: float) -> Array:
    """(1 - weight) S + weight D G D, D the square roots of the diagonal of S: variances stay as they are."""
    sd = np.sqrt(np.diag(covariance))
    return (1.0 - weight) * covariance + weight * graph * np.outer(sd, sd)


def path_lengths(adjacency: Adjacency) -> Array:
    """Length (N, N) of the shortest path along the edges, one way or the other; inf where there is none.

    The strongest edge has length 1, one of weight w the length sqrt(1 + log(largest / w)): what a Gaussian kernel of
    distances says, and 1 for all edges of a graph without weights.

    >>> path_lengths(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    from scipy.sparse.csgraph import shortest_path  # here, as scipy takes longest to import

    A = dense(without_loops(adjacency))
    edges = A > 0
    lengths = np.zeros_like(A)
    lengths[edges] = np.sqrt(1.0 + np.log(A.max(initial=0.0) / A[edges]))
    found = np.asarray(shortest_path(lengths, directed=True))
    return np.minimum(found, found.T)


def tail_up(distance: Array, reach: float) -> Array:
    """Correlations (N, N) exp(-d / reach), made positive definite: on a graph with cycles they may not be.

    >>> tail_up(np.array([[0.0, np.inf], [np.inf, 0.0]]), 1.0)
    array([[1., 0.],
           [0., 1.]])
    """
    G = np.exp(-distance / reach)
    values, vectors = np.linalg.eigh(G)
    if values[0] >= SMALLEST:
        return G
    return correlations((vectors * np.maximum(values, SMALLEST)) @ vectors.T)


def nearest_range(distance: Array, related: Array) -> float:
    """The range whose correlations differ least from those of the residuals, in absolute value and on average."""
    joined = np.isfinite(distance) & (distance > 0)
    if not joined.any():
        return 1.0
    d, r = distance[joined], related[joined]
    return float(min(RANGES, key=lambda reach: float(np.abs(np.exp(-d / reach) - r).mean())))


def log_volume(covariance: Array, residuals: Array) -> float:
    """Log-volume, up to a constant, of the ellipsoid of this shape that holds 90 % of the residuals (n, N)."""
    if is_singular(covariance):
        return np.inf
    root = np.linalg.cholesky(covariance)
    distance = (np.linalg.solve(root, residuals.T) ** 2).sum(axis=0)
    radius = np.sort(distance)[int(np.ceil(LEVEL * len(distance))) - 1]
    return float(np.log(np.diag(root)).sum() + 0.5 * len(root) * np.log(max(radius, np.finfo(float).tiny)))
