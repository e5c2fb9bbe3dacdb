"""The graph that a model keeps, as a list of edges, and the neighbourhoods in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.graph import Adjacency, weighted_edges
from jointset.storage import storable

KEPT = 8  # graphs whose neighbourhoods are remembered: every row that misses its set asks for them
_KNOWN: dict[tuple[int, int], tuple[Edges | None, list[tuple[int, Array]]]] = {}


@storable
class Edges(NamedTuple):
    """Edges of a graph: ends (E, 2), positions of sensors, and weights (E,)."""

    ends: Array
    weights: Array

    def adjacency(self, n: int) -> Array:
        """The weights as a matrix (n, n)."""
        out = np.zeros((n, n))
        out[self.ends[:, 0], self.ends[:, 1]] = self.weights
        return out


def edges_of(adjacency: Adjacency | None) -> Edges | None:
    """The edges of an adjacency (N, N), self loops left out; None where there is no graph.

    >>> edges_of(np.array([[1.0, 0.5], [0.0, 0.0]]))
    Edges(ends=array([[0, 1]]), weights=array([0.5]))
    """
    if adjacency is None:
        return None
    ends, weights = weighted_edges(adjacency)
    apart = ends[:, 0] != ends[:, 1]
    return Edges(ends[apart], weights[apart])


def closed_neighbourhoods(edges: Edges | None, n: int) -> list[tuple[int, Array]]:
    """Centre and places of the sensors of every neighbourhood: a sensor and those it has an edge to or from.

    One that several sensors have is listed once, under the first. Without a graph every sensor is alone.

    >>> edges = Edges(np.array([[0, 1]]), np.ones(1))
    >>> [(centre, places.tolist()) for centre, places in closed_neighbourhoods(edges, 3)]
    [(0, [0, 1]), (2, [2])]
    """
    known = _KNOWN.get((id(edges), n))
    if known is not None and known[0] is edges:
        return known[1]
    own = np.arange(n)
    ends = np.empty((0, 2), dtype=int) if edges is None else edges.ends
    pairs = np.unique(np.concatenate([own * n + own, ends @ [n, 1], ends @ [1, n]]))
    centre, place = np.divmod(pairs, n)
    alike: dict[bytes, tuple[int, Array]] = {}
    for i, places in enumerate(np.split(place, np.searchsorted(centre, own[1:]))):
        alike.setdefault(places.tobytes(), (i, places))
    found = list(alike.values())
    if len(_KNOWN) >= KEPT:
        _KNOWN.clear()
    _KNOWN[id(edges), n] = edges, found
    return found
