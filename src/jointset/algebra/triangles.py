"""Triangles and square roots of matrices: factorisations, solutions, and the distance of Gaussian laws from them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require


@cache
def _lapack() -> Any:
    from scipy.linalg import lapack  # here, so that importing jointset stays fast

    return lapack


def solve_lower(root: Array, right: Array) -> Array:
    """L^-1 B of a lower triangle L (n, n) and B (n,) or (n, m)."""
    if not right.size:
        return right
    return _lapack().dtrtrs(root.T, right, lower=0, trans=1)[0].reshape(right.shape)


def add_to_diagonal(matrix: Array, number: float) -> None:
    """Add a number to the diagonal of a matrix (n, n), in its place."""
    np.einsum("ii->i", matrix)[:] += number


NOT_DEFINITE = "the covariance is not positive definite: remove duplicate or constant sensors, or add a ridge"


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor (..., N, N), refused where there is none."""
    if matrix.ndim == 2:
        return cholesky_in_place(matrix.copy())
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise InputError(NOT_DEFINITE) from None


def whitener(matrix: Array) -> Array:
    """Inverse of the lower Cholesky factor, of a matrix or a stack (..., N, N): in turn, faster than by inverses."""
    lapack, out = _lapack(), matrix.copy()
    for one in out.reshape(-1, *matrix.shape[-2:]).swapaxes(-1, -2) if matrix.size else []:  # its rows are columns
        root, failed = lapack.dpotrf(one, lower=0, clean=1, overwrite_a=1)
        require(failed == 0, NOT_DEFINITE)
        one[...] = lapack.dtrtri(root, lower=0, overwrite_c=1)[0]
    return out


def cholesky_in_place(matrix: Array) -> Array:
    """The same of one matrix (N, N), which it overwrites: a large one need not be fetched from memory again."""
    if not len(matrix):
        return matrix
    upper, failed = _lapack().dpotrf(matrix.T, lower=0, clean=1, overwrite_a=1)  # rows here are columns there
    require(failed == 0, NOT_DEFINITE)
    return upper.T


def mirrored(upper: Array) -> Array:
    """A matrix (n, n) with its lower triangle overwritten by the upper one."""
    for start in range(0, len(upper), 128):
        rows = slice(start, start + 128)
        corner = np.triu(upper[rows, rows])
        upper[rows, rows] = corner + np.triu(corner, 1).T
        upper[start + 128 :, rows] = upper[rows, start + 128 :].T
    return upper


def bures_wasserstein(mean_a: Array, root_a: Array, mean_b: Array, root_b: Array) -> float:
    """Distance of N(mean_a, A A') and N(mean_b, B B') from any square roots A, B (N, k).

    The covariance part tr(S + T - 2 (T^1/2 S T^1/2)^1/2) equals min_O |A - B O|_F^2 over orthogonal O (orthogonal
    Procrustes). Evaluating that norm, instead of the trace, keeps small distances exact: no cancellation.
    """
    U, _, Vt = np.linalg.svd(root_b.T @ root_a)
    gap = root_a - root_b @ (U @ Vt)
    return float(np.sqrt(np.sum((mean_a - mean_b) ** 2) + np.sum(gap**2)))
