"""The shift of a graph as a model keeps it: a matrix, or the list of its edges where sensors are many and edges few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from jointset.contracts import Array
from jointset.graph import normalized_shift
from jointset.inputs.adjacency import correlation_knn
from jointset.inputs.graph_edges import Edges
from jointset.panel import Panel

Shift = Array | Edges
MANY = 1000  # sensors from which it is a list of edges,
SPARSE = 0.1  # where no larger share of all pairs has one
SMALL = 64  # sensors below which a full matrix multiplies sooner


def shift_of(panel: Panel) -> Shift | None:
    """The shift of the panel's graph, or of one of its strongest correlations; None for a single sensor."""
    if panel.n_sensors < 2:
        return None
    return kept_shift(correlation_knn(panel.values) if panel.adjacency is None else panel.adjacency)


def kept_shift(adjacency: Array) -> Shift:
    """The normalised shift (N, N) of an adjacency (N, N), see `normalized_shift`."""
    n = len(adjacency)
    if n < MANY or np.count_nonzero(adjacency) > SPARSE * n**2:
        return normalized_shift(adjacency)
    from scipy.sparse import csr_array  # here, so that importing jointset stays fast

    A = csr_array(adjacency)
    A = (A + A.T) / 2.0
    each = np.arange(n)
    A = (A + csr_array((1.0 - A.diagonal(), (each, each)), shape=(n, n))).tocoo()
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    i, j = A.row, A.col
    kept = A.data != 0
    return Edges(np.stack([i, j], axis=1)[kept], (A.data * scale[i] * scale[j])[kept])


def quick_operator(shift: Shift | None, dtype: DTypeLike = float) -> Any:
    """The same in the form that multiplies soonest, sparse where that pays; None without a graph."""
    found = None if shift is None else operator(shift, dtype)
    if not isinstance(found, np.ndarray) or len(found) < SMALL or np.count_nonzero(found) > SPARSE * found.size:
        return found
    from scipy.sparse import csr_array

    return csr_array(found)


def operator(shift: Shift, dtype: DTypeLike = float) -> Any:
    """What multiplies readings: the matrix, or a sparse one of the edges (every sensor has one, to itself)."""
    if not isinstance(shift, Edges):
        return np.asarray(shift, dtype)
    from scipy.sparse import csr_array

    return csr_array((shift.weights.astype(dtype), tuple(shift.ends.T)))
