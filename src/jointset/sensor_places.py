"""Where sensors are drawn: on a map where their coordinates are known, else laid out from the graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.adjacency import correlation_knn
from jointset.communities import components
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.storage import storable

MOST_EXACT = 60  # sensors up to which the layout that respects graph distances is drawn
LINES = 8  # edges a sensor that are kept for drawing, the heaviest
LOOKED_AT = 1_000  # last rows whose correlations stand for a graph where there is none


@storable
class Places(NamedTuple):
    """What a drawing of a network needs: latitude and longitude (N, 2) where known, edges (E, 2) and weights (E,)."""

    coordinates: Array | None
    edges: Array
    weights: Array
    correlated: bool = False  # there was no graph: the edges are correlations


def places_of(panel: Panel) -> Places:
    """The places of a panel's sensors; without a graph, sensors that go together are taken for neighbours.

    >>> places_of(Panel([[0.0, 0.0]], ("a", "b"), adjacency=[[0.0, 2.0], [2.0, 0.0]])).edges.tolist()
    [[0, 1]]
    """
    known, n = panel.coordinates, panel.n_sensors
    correlated = panel.adjacency is None
    graph = correlation_knn(panel.values[-LOOKED_AT:]) if panel.adjacency is None else panel.adjacency
    first, second = np.nonzero(np.triu(np.maximum(graph, graph.T), 1))
    weights = np.maximum(graph[first, second], graph[second, first])
    heaviest = np.sort(np.argsort(-weights, kind="stable")[: LINES * n])
    usable = known is not None and bool(np.isfinite(known).all())
    edges = np.stack([first, second], axis=1)[heaviest].astype(np.int64)
    return Places(known if usable else None, edges, weights[heaviest], correlated)


def positions(places: Places, n: int) -> Array:
    """Positions (N, 2) of n sensors, x to the right and y up, in one unit: a flat map, or a layout of the graph."""
    edges, known = places.edges, places.coordinates
    inside = edges.ndim == 2 and edges.shape[1:] == (2,) and len(edges) == len(places.weights)
    require(
        inside and bool(((edges >= 0) & (edges < n)).all()), "the edges of the model's places do not fit its sensors"
    )
    if known is not None:
        require(known.shape == (n, 2), "the coordinates of the model's places do not fit its sensors")
        return np.stack([known[:, 1] * np.cos(np.radians(known[:, 0].mean())), known[:, 0]], axis=1)
    graph = np.zeros((n, n))
    graph[edges[:, 0], edges[:, 1]] = graph[edges[:, 1], edges[:, 0]] = places.weights
    return layout(graph)


def layout(adjacency: Array) -> Array:
    """Layout (N, 2) of a graph, always the same: every connected part on its own, the largest first, in rows."""
    parts = sorted(components(adjacency), key=len, reverse=True)
    drawn = [np.sqrt(len(part)) * _part_layout(adjacency[np.ix_(part, part)]) for part in parts]
    sizes = [np.abs(places).max(axis=0) + 0.5 for places in drawn]  # half width and height, with room for the dots
    widest = max(2 * sizes[0][0], 2.5 * np.sqrt(len(adjacency)))
    out = np.zeros((len(adjacency), 2))
    x, y, tallest = 0.0, 0.0, 0.0
    for part, places, (width, height) in zip(parts, drawn, sizes, strict=True):
        if x and x + 2 * width > widest:  # the next row
            x, y, tallest = 0.0, y - tallest - height, 0.0
        out[list(part)] = places + np.array([x + width, y])
        x, tallest = x + 2 * width, max(tallest, height)
    return out


def _part_layout(adjacency: Array) -> Array:
    """Layout (n, 2) of a connected graph inside the unit circle, turned to be wider than tall."""
    import networkx as nx

    n = len(adjacency)
    if n == 1:
        return np.zeros((1, 2))
    graph = nx.from_numpy_array(adjacency)
    found = nx.kamada_kawai_layout(graph, weight=None) if n <= MOST_EXACT else nx.spring_layout(graph, seed=0)
    places = np.stack([found[i] for i in range(n)])
    places = places - places.mean(axis=0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    return places / np.linalg.norm(places, axis=1).max()
