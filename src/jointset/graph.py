"""The graph of a panel: its checks, its normalised shift and its modes.

An adjacency is a float64 array (N, N) of weights >= 0 in the panel's sensor order, dense or sparse (of scipy.sparse);
`A[i, j]` is the weight of the edge from sensor i to sensor j and 0 means no edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from jointset.contracts import Array
from jointset.errors import InputError, require, some

Adjacency: TypeAlias = Any  # (N, N), an array or of scipy.sparse

BLOCK = 1000  # rows of a matrix that are looked at together
ROUNDING = 1e-6  # a float32 file may be asymmetric by its rounding, relative to its largest weight
MANY = 1000  # sensors from which a graph is kept as its edges,
SPARSE = 0.1  # where no larger share of all pairs has one


def is_sparse(adjacency: Adjacency) -> bool:
    """Whether it is of scipy.sparse, which importing jointset does not import."""
    return type(adjacency).__module__.startswith("scipy.sparse")


def dense(adjacency: Adjacency) -> Array:
    """The adjacency as a matrix of all pairs."""
    found: Array = adjacency.toarray() if is_sparse(adjacency) else np.asarray(adjacency, dtype=np.float64)
    return found


def thinned(adjacency: Adjacency) -> Adjacency:
    """The same, sparse where sensors are many and edges few, dense where sensors are few.

    >>> is_sparse(thinned(np.eye(999))), is_sparse(thinned(np.eye(1000)))
    (False, True)
    """
    n = adjacency.shape[0]
    if n < MANY:
        return dense(adjacency)
    if is_sparse(adjacency) or np.count_nonzero(adjacency) > SPARSE * n**2:
        return adjacency
    from scipy.sparse import csr_array

    return csr_array(adjacency)


def weighted_edges(adjacency: Adjacency) -> tuple[Array, Array]:
    """Ends (E, 2) and weights (E,) of all edges, self loops among them, row by row.

    >>> weighted_edges(np.array([[0.0, 0.5], [2.0, 0.0]]))
    (array([[0, 1],
           [1, 0]]), array([0.5, 2. ]))
    """
    if not is_sparse(adjacency):
        A = np.asarray(adjacency, dtype=np.float64)
        ends = np.argwhere(A)
        return ends, A[ends[:, 0], ends[:, 1]]
    A = adjacency.tocsr().sorted_indices().tocoo()
    kept = A.data != 0
    return np.stack([A.row[kept], A.col[kept]], axis=1).astype(int), A.data[kept]


def by_label(array: Any, sensors: Sequence[str], *axes: str) -> Any:
    """A data frame whose axes (`index`, `columns`) name sensors, brought into their order; anything else as it is.

    Labels that are 0, 1, .. or that no sensor has say nothing. Others are left out.
    """
    if not (hasattr(array, "iloc") and hasattr(array, "columns")):
        return array
    known, named = set(sensors), {}
    for axis in axes:
        labels = [str(label) for label in getattr(array, axis)]
        if not known.isdisjoint(labels) and [*getattr(array, axis)] != [*range(len(labels))]:
            named[axis] = labels
    for axis in axes:
        if not named or (len(array.index) != len(array.columns) and axis not in named):
            continue
        labels = named.get(axis) or next(iter(named.values()))  # a square of which one side is named
        place = {label: i for i, label in enumerate(labels)}
        lacking = [name for name in sensors if name not in place]
        require(not lacking, f"the data frame has no {some(lacking)} in its {axis}: name all sensors, or none")
        twice = sorted(name for name in known if labels.count(name) > 1) if len(place) < len(labels) else []
        require(not twice, f"the data frame names {some(twice)} more than once in its {axis}: keep one")
        array = array.take([place[name] for name in sensors], axis=("index", "columns").index(axis))
    return array.to_numpy()


def edge_count(adjacency: Adjacency) -> int:
    """How many edges it has, self loops left out; one that goes both ways counts twice."""
    ends, _ = weighted_edges(adjacency)
    return int((ends[:, 0] != ends[:, 1]).sum())


def stored(adjacency: Adjacency) -> dict[str, Array]:
    """The arrays that files keep of it."""
    if not is_sparse(adjacency):
        return {"adjacency": adjacency}
    ends, weights = weighted_edges(adjacency)
    return {"edges": ends, "weights": weights}


def of_edges(ends: Array, weights: Array, n: int) -> Adjacency:
    """The sparse adjacency (n, n) of edges with these ends (E, 2)."""
    from scipy.sparse import csr_array

    return csr_array((np.asarray(weights, dtype=np.float64), tuple(np.asarray(ends).T)), shape=(n, n))


def without_edges(n: int) -> Adjacency:
    """The sparse adjacency (n, n) of a graph of sensors that stand alone."""
    return of_edges(np.empty((0, 2), dtype=int), np.empty(0), n)


def symmetrize(adjacency: Adjacency) -> Adjacency:
    """(A + A') / 2: both directions of an edge get their mean weight; sparse where A is.

    >>> symmetrize([[0.0, 1.0], [0.0, 0.0]])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    A = adjacency.tocsr() if is_sparse(adjacency) else np.asarray(adjacency, dtype=np.float64)
    return (A + A.T) / 2.0


def asymmetry(adjacency: Adjacency) -> float:
    """Largest |A - A'|."""
    n = adjacency.shape[0]
    if is_sparse(adjacency):
        return float(abs(adjacency - adjacency.T).max()) if n else 0.0
    blocks = [slice(first, first + BLOCK) for first in range(0, n, BLOCK)]
    return float(max((np.abs(adjacency[rows] - adjacency[:, rows].T).max() for rows in blocks), default=0.0))


def is_symmetric(adjacency: Adjacency) -> bool:
    """Whether both directions of every edge have one weight, up to the rounding of a float32 file."""
    weights = adjacency.data if is_sparse(adjacency) else adjacency
    return asymmetry(adjacency) <= ROUNDING * float(weights.max(initial=0.0))


def without_loops(adjacency: Adjacency) -> Adjacency:
    """The same without edges from a sensor to itself."""
    if not is_sparse(adjacency):
        A = np.array(adjacency, dtype=np.float64)
        np.fill_diagonal(A, 0.0)
        return A
    ends, weights = weighted_edges(adjacency)
    kept = ends[:, 0] != ends[:, 1]
    return of_edges(ends[kept], weights[kept], adjacency.shape[0])


def normalized_shift(adjacency: Adjacency) -> Array:
    """D^-1/2 (A + I) D^-1/2 (N, N), D the row sums of A + I: symmetric, eigenvalues in (-1, 1], the largest 1.

    Self loops of A are dropped first, so that a file with ones on its diagonal (METR-LA) does not count them twice;
    a directed A is replaced by (A + A') / 2.

    >>> normalized_shift([[0.0, 1.0], [1.0, 0.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    A = dense(symmetrize(adjacency))
    np.fill_diagonal(A, 1.0)
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    return A * np.outer(scale, scale)


def modes(shift: ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues (N,), ascending, and orthonormal eigenvectors (N, N) in columns, of a symmetric shift.

    >>> modes([[0.5, 0.5], [0.5, 0.5]])[0].round(12) + 0.0
    array([0., 1.])
    """
    values, vectors = np.linalg.eigh(np.asarray(shift, dtype=np.float64))
    return values, vectors


def check_adjacency(
    adjacency: Adjacency, n: int, directed: bool = False, *, sensors: Sequence[str] | None = None
) -> Adjacency:
    """The adjacency as float64 (n, n), refused when it is of another size, not finite, negative or asymmetric.

    Asymmetry is allowed when `directed`, and up to float32 rounding always. `sensors` serve the messages, and the order
    of a data frame that names them. What is sparse comes back sparse.

    >>> check_adjacency([[0, 1], [1, 0]], 2).dtype
    dtype('float64')
    """
    given = adjacency if sensors is None else by_label(adjacency, sensors, "index", "columns")
    A: Adjacency = given.tocsr() if is_sparse(given) else np.asarray(given)
    require(A.dtype.kind in "biuf", f"adjacency must hold numbers, got dtype {A.dtype}: give edge weights")
    require(
        A.shape == (n, n),
        f"adjacency has shape {A.shape}, expected ({n}, {n}) for {n} sensors: give one row and column per sensor",
    )
    A = A.astype(np.float64)
    if is_sparse(A):
        A.sum_duplicates()
        A.eliminate_zeros()
    weights: Array = A.data if is_sparse(A) else A
    for wrong, fault in ((~np.isfinite(weights), "not a finite number"), (weights < 0, "negative")):
        if wrong.any():
            i, j = weighted_edges(A)[0][np.flatnonzero(wrong)[0]] if is_sparse(A) else np.argwhere(wrong)[0]
            edge = f"({i}, {j})" if sensors is None else f"from {sensors[i]!r} to {sensors[j]!r}"
            raise InputError(f"adjacency is {fault} {edge}: {A[i, j]:g}; use 0 for no edge, weights > 0 otherwise")
    if not directed and not is_symmetric(A):
        raise InputError(
            f"adjacency is not symmetric, max |A - A'| = {asymmetry(A):.4g}: use symmetrize=True (--symmetrize) for "
            "(A + A')/2, or directed=True (--directed)"
        )
    return A
