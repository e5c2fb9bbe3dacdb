"""The shift of a graph as a model keeps it: a matrix, or the list of its edges where sensors are many and edges few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from jointset.contracts import Array
from jointset.graph import (
    SPARSE,
    Adjacency,
    is_sparse,
    normalized_shift,
    of_edges,
    symmetrize,
    thinned,
    weighted_edges,
)
from jointset.inputs.adjacency import correlation_knn
from jointset.inputs.graph_edges import Edges
from jointset.panel import Panel

Shift = Array | Edges
SMALL = 64  # sensors below which a full matrix multiplies sooner


def shift_of(panel: Panel) -> Shift | None:
    """The shift of the panel's graph, or of one of its strongest correlations; None for a single sensor."""
    if panel.n_sensors < 2:
        return None
    return kept_shift(correlation_knn(panel.values) if panel.adjacency is None else panel.adjacency)


def kept_shift(adjacency: Adjacency) -> Shift:
    """The normalised shift (N, N) of an adjacency (N, N), see `normalized_shift`; edges where it is sparse."""
    A = thinned(adjacency)
    if not is_sparse(A):
        return normalized_shift(A)
    A, n = symmetrize(A), A.shape[0]
    each = np.arange(n)
    A = A + of_edges(np.stack([each, each], axis=1), 1.0 - A.diagonal(), n)
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    ends, weights = weighted_edges(A)
    return Edges(ends, weights * scale[ends[:, 0]] * scale[ends[:, 1]])


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
