"""Where sensors are drawn: on a map where their coordinates are known, else laid out from the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, some
from jointset.graph import Adjacency, dense
from jointset.inputs.adjacency import correlation_knn
from jointset.inputs.communities import components
from jointset.inputs.graph_edges import Edges, edges_of
from jointset.panel import Panel
from jointset.storage import storable
from jointset.support.files import NUMBER, existing_file, naming, text_rows

MOST_EXACT = 60  # sensors up to which the layout that respects graph distances is drawn
LINES = 8  # edges a sensor that are drawn, the heaviest
LOOKED_AT = 1_000  # last rows whose correlations stand for a graph where there is none


@storable
class Places(NamedTuple):
    """Latitude and longitude (N, 2) where known, and the edges that stand for a graph where there is none."""

    coordinates: Array | None
    instead: Edges | None = None


def places_of(panel: Panel) -> Places:
    """The places of a panel's sensors; without a graph, sensors that go together are taken for neighbours.

    >>> places_of(Panel([[0.0, 0.0], [1.0, 1.0], [2.0, 2.1]], ("a", "b"))).instead.ends.tolist()
    [[0, 1], [1, 0]]
    """
    known = panel.coordinates
    usable = known is not None and bool(np.isfinite(known).all())
    near = None if panel.adjacency is not None else edges_of(correlation_knn(panel.values[-LOOKED_AT:]))
    return Places(known if usable else None, near)


def read_places(path: str | Path, sensors: Sequence[str]) -> Array:
    """Latitudes and longitudes (N, 2) of sensors, from a CSV file of sensor,latitude,longitude; a header may be there.

    Lines of other sensors are passed over; each of these must have one.
    """
    path = existing_file(path)
    found: dict[str, tuple[float, float]] = {}
    with naming(path):
        for line, cells in text_rows(path):
            require(len(cells) == 3, f"line {line} has {len(cells)} cells: write sensor,latitude,longitude")
            name, *degrees = (cell.strip() for cell in cells)
            if not all(NUMBER.fullmatch(cell) for cell in degrees):
                require(not found and line == 1, f"line {line}: {', '.join(degrees)} are no degrees: write numbers")
                continue
            north, east = map(float, degrees)
            require(
                abs(north) <= 90 and abs(east) <= 180, f"line {line}: {north:g}, {east:g} is no latitude and longitude"
            )
            require(found.get(name, (north, east)) == (north, east), f"line {line} puts {name!r} at a second place")
            found[name] = (north, east)
        lost = [name for name in sensors if name not in found]
        require(not lost, f"no line for {some(lost)}: write one for every sensor")
    return np.array([found[name] for name in sensors])


def drawing(places: Places | None, graph: Edges | None, n: int) -> dict[str, Any]:
    """Positions (x to the right, y up, in one unit), edges and whether it is a map, as the pages take them."""
    near = graph if graph is not None or places is None else places.instead
    adjacency = np.zeros((n, n))
    if near is not None:
        fits = near.ends.shape == (len(near.weights), 2) and bool(((near.ends >= 0) & (near.ends < n)).all())
        require(fits, "the edges that the model keeps do not fit its sensors")
        adjacency = near.adjacency(n)
    adjacency = np.maximum(adjacency, adjacency.T)
    known = None if places is None else places.coordinates
    require(known is None or known.shape == (n, 2), "the coordinates that the model keeps do not fit its sensors")
    at = layout(adjacency) if known is None else flat_map(known)
    return {"at": at.round(6).tolist(), "edges": heaviest(adjacency), "mapped": known is not None}


def heaviest(adjacency: Array) -> list[list[int]]:
    """The heaviest edges of a symmetric adjacency (N, N), so many as a picture can show."""
    first, second = np.nonzero(np.triu(adjacency, 1))
    kept = np.sort(np.argsort(-adjacency[first, second], kind="stable")[: LINES * len(adjacency)])
    return np.stack([first, second], axis=1)[kept].tolist()


def flat_map(coordinates: Array) -> Array:
    """Positions (N, 2) on a map of latitudes and longitudes (N, 2) that lie near each other."""
    north, east = coordinates.T
    return np.stack([east * np.cos(np.radians(north.mean())), north], axis=1)


def layout(adjacency: Adjacency) -> Array:
    """Layout (N, 2) of a graph, always the same: every connected part on its own, the largest first, in rows."""
    parts = sorted(components(adjacency), key=len, reverse=True)
    drawn = [np.sqrt(len(part)) * _part_layout(adjacency[np.ix_(part, part)]) for part in parts]
    sizes = [np.abs(places).max(axis=0) + 0.5 for places in drawn]  # half width and height, with room for the dots
    widest = max(2 * sizes[0][0], 2.5 * np.sqrt(adjacency.shape[0]))
    out = np.zeros((adjacency.shape[0], 2))
    x, y, tallest = 0.0, 0.0, 0.0
    for part, places, (width, height) in zip(parts, drawn, sizes, strict=True):
        if x and x + 2 * width > widest:  # the next row
            x, y, tallest = 0.0, y - tallest - height, 0.0
        out[list(part)] = places + np.array([x + width, y])
        x, tallest = x + 2 * width, max(tallest, height)
    return out


def _part_layout(adjacency: Adjacency) -> Array:
    """Layout (n, 2) of a connected graph inside the unit circle, turned to be wider than tall."""
    import networkx as nx

    n = adjacency.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    graph = nx.from_numpy_array(dense(adjacency))
    found = nx.kamada_kawai_layout(graph, weight=None) if n <= MOST_EXACT else nx.spring_layout(graph, seed=0)
    places = np.stack([found[i] for i in range(n)])
    places = places - places.mean(axis=0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    return places / np.linalg.norm(places, axis=1).max()
