"""The graph of a panel: its checks, its normalised shift and its modes.

An adjacency is a dense float64 array (N, N) of weights >= 0 in the panel's sensor order; `A[i, j]` is the weight of
the edge from sensor i to sensor j and 0 means no edge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jointset.contracts import Array
from jointset.errors import InputError, require

BLOCK = 1000  # rows of a matrix that are looked at together
ROUNDING = 1e-6  # a float32 file may be asymmetric by its rounding, relative to its largest weight


def symmetrize(adjacency: ArrayLike) -> Array:
    """(A + A') / 2: both directions of an edge get their mean weight.

    >>> symmetrize([[0.0, 1.0], [0.0, 0.0]])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    A = np.asarray(adjacency, dtype=np.float64)
    return (A + A.T) / 2.0


def normalized_shift(adjacency: ArrayLike) -> Array:
    """D^-1/2 (A + I) D^-1/2 (N, N), D the row sums of A + I: symmetric, eigenvalues in (-1, 1], the largest 1.

    Self loops of A are dropped first, so that a file with ones on its diagonal (METR-LA) does not count them twice;
    a directed A is replaced by (A + A') / 2.

    >>> normalized_shift([[0.0, 1.0], [1.0, 0.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    A = symmetrize(adjacency)
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
    adjacency: ArrayLike, n: int, directed: bool = False, *, sensors: Sequence[str] | None = None
) -> Array:
    """The adjacency as float64 (n, n), refused when it is of another size, not finite, negative or asymmetric.

    Asymmetry is allowed when `directed`, and up to float32 rounding always. `sensors` only serves the messages.

    >>> check_adjacency([[0, 1], [1, 0]], 2).dtype
    dtype('float64')
    """
    A = np.asarray(adjacency)
    require(A.dtype.kind in "biuf", f"adjacency must hold numbers, got dtype {A.dtype}: give edge weights")
    require(
        A.shape == (n, n),
        f"adjacency has shape {A.shape}, expected ({n}, {n}) for {n} sensors: give one row and column per sensor",
    )
    A = A.astype(np.float64)
    for wrong, fault in ((~np.isfinite(A), "not a finite number"), (A < 0, "negative")):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            edge = f"({i}, {j})" if sensors is None else f"from {sensors[i]!r} to {sensors[j]!r}"
            raise InputError(f"adjacency is {fault} {edge}: {A[i, j]:g}; use 0 for no edge, weights > 0 otherwise")
    blocks = [slice(first, first + BLOCK) for first in range(0, n, BLOCK)]
    gap = max((np.abs(A[rows] - A[:, rows].T).max() for rows in blocks), default=0.0)
    require(
        directed or gap <= ROUNDING * A.max(initial=0.0),
        f"adjacency is not symmetric, max |A - A'| = {gap:.4g}: use symmetrize=True (--symmetrize) for (A + A')/2, "
        "or directed=True (--directed)",
    )
    return A
