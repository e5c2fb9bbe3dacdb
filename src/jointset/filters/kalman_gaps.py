"""The Kalman update with missing sensors (C = I, Q = q I, R = nu I), exact and without the textbook's dense products.

With S = P + nu I the posterior of a complete reading is nu I - nu^2 S^-1, in any orthonormal basis. Leaving k sensors M
out of it adds rank k, Z Z' with Z = (I_M - nu S^-1 I_M) K^-T/2 and K = (S^-1)_MM. So on the graph modes, where the
filter at rest and the transition are diagonal, few gaps cost O(N^2 k) and remain a low rank (`posterior_excess`). With
many gaps the block of the sensors that were read is inverted, and F, as sparse as the graph, is applied to the result
(`block_step`).
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.covariance_gaps import Bordered
from jointset.algebra.covariance_modes import ModeCovariance
from jointset.algebra.triangles import add_to_diagonal, cholesky, solve_lower
from jointset.contracts import Array

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of these settings in glibc's malloc.h
LARGEST = 32 * 2**20  # bytes of a matrix that is taken from the process's own memory
KEPT = 512 * 2**20  # bytes of free memory that are not handed back


@cache
def keep_freed_memory() -> None:
    """Have the process keep what it frees, once for all; where its library knows no such setting nothing happens.

    Without it the system takes every large matrix back and clears it anew for the next row, which costs more than the
    algebra.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, LARGEST)
        library.mallopt(TRIM_THRESHOLD, KEPT)


NOTHING = 1e-20  # of the process noise: a covariance far below it is rounded to zero
WIDTH = 32  # rows of a matrix in one product
TURN = 16  # columns of an excess between two attempts to make them fewer
SMALL = 200  # sensors up to which dense products are the faster ones
SPARSE = 0.1  # share of entries up to which a product with a sparse transition is the faster one


def posterior_excess(S: ModeCovariance, seen: Bordered | None, nu: float) -> Array:
    """Factor (N, r + k) on the modes of what the posterior exceeds nu - nu^2 / d by; S is a `ModeCovariance`.

    Its diag(d) + V V' gives (nu / d) V R^-T with R R' = I + V' diag(1/d) V (Woodbury), the gaps add their Z.
    """
    before = solve_lower(S.capacitance_root, (nu * S.weights[:, None] * S.factor).T)
    if seen is None:
        return before.T
    return np.vstack([before, solve_lower(seen.root, seen.units - nu * seen.solved)]).T


def shortened(V: Array, least: float, before: int) -> Array | None:
    """V (N, r) without what adds less than `least` to V V'; None where nothing is left.

    Columns fade one by one. Those of a sensor that stays silent come to depend on one another: whenever their number
    has grown from `before` past a multiple of `TURN`, they are turned into orthogonal ones.
    """
    V = V[:, np.einsum("ij,ij->j", V, V) > least]
    if V.shape[1] // TURN > before // TURN:
        sizes, directions = np.linalg.eigh(V.T @ V)
        V = V @ directions[:, sizes > least]
    return V if V.shape[1] else None


class DenseTransition(NamedTuple):
    """F and F F of a graph in which most sensors are neighbours."""

    F: Array
    square: Array


def transition_form(F: Array) -> Any:
    """A symmetric transition in the form that makes `block_step` cheap: sparse, or dense with its square."""
    if len(F) <= SMALL or np.count_nonzero(F) > SPARSE * F.size:
        return DenseTransition(F, F @ F)
    from scipy.sparse import csr_array  # here, so that importing jointset stays fast

    return csr_array(F)


def block_step(
    transition: Any, S: Covariance, mean: Array, e: Array, missing: Array, q: float, nu: float
) -> tuple[Array, Array]:
    """Predicted mean (N,) and covariance (N, N) after a residual e (N,), 0 where missing; S = P + nu I is its law's."""
    if len(mean) > SMALL:
        keep_freed_memory()
    step = _dense_step if isinstance(transition, DenseTransition) else _sparse_step
    mean, P = step(transition, S, mean, e, missing, nu)
    P += NOTHING * q  # sensors far apart would have covariances so small that arithmetic with them is slow
    P -= NOTHING * q
    add_to_diagonal(P, q)
    return mean, P


def _blocks(S: Covariance, missing: Array) -> tuple[Covariance, Array, Array, Array, Array]:
    """Covariance S_oo of the sensors read, places of these and of the missing ones, S_oM and S_MM."""
    law: Any = S.observed(missing) if missing.any() else S
    seen, gone = np.flatnonzero(~missing), np.flatnonzero(missing)
    rows = S.rows(gone)
    return getattr(law, "block", law), seen, gone, rows.take(seen, axis=1).T, rows.take(gone, axis=1)


def _dense_step(
    transition: DenseTransition, S: Covariance, mean: Array, e: Array, missing: Array, nu: float
) -> tuple[Array, Array]:
    """F (mean + K e) and F P+ F' from the root L of S_oo; P+ = nu I_o + P_MM - Q' S_oo^-1 Q with Q = (nu I, -P_oM)."""
    from scipy.linalg.blas import dtrsm  # here, so that importing jointset stays fast

    F = transition.F
    block, seen, gone, cross, rest = _blocks(S, missing)
    right = nu * F.take(seen, axis=1)  # F Q' (N, o), its transpose in the order of Fortran
    P = nu * transition.square
    if len(gone):
        F_gone = F.take(gone, axis=1)
        right -= F_gone @ cross.T
        add_to_diagonal(rest, -2.0 * nu)  # P_MM - nu I
        P += F_gone @ (rest @ F_gone.T)
    mean = F @ (mean + e)
    if len(seen):
        solved = dtrsm(1.0, block.root.T, right.T, lower=0, trans_a=1, overwrite_b=1)  # L^-1 Q F' (o, N)
        P -= solved.T @ solved
        mean -= solve_lower(block.root, e[seen]) @ solved
    return mean, P


def _sparse_step(
    transition: Any, S: Covariance, mean: Array, e: Array, missing: Array, nu: float
) -> tuple[Array, Array]:
    """The same from G = S_oo^-1: the posterior is nu I - nu^2 G, nu G P_oM and P_MM - P_Mo G P_oM by blocks."""
    block, seen, gone, cross, rest = _blocks(S, missing)
    G, P, read = block.precision, np.empty(S.shape), len(seen)
    np.multiply(G, -(nu**2), out=P[:read, :read])
    add_to_diagonal(P[:read, :read], nu)
    if len(gone):
        solved = G @ cross
        rest -= cross.T @ solved
        S.__dict__["log_det"] = block.log_det + 2.0 * np.log(cholesky(rest).diagonal()).sum()
        add_to_diagonal(rest, -nu)
        np.multiply(solved, nu, out=P[:read, read:])
        P[read:] = np.hstack([P[:read, read:].T, rest])
    order = np.concatenate([seen, gone])
    F = transition[order].T  # symmetric: its columns in the order of P
    mean = F @ (mean[order] + P[:, :read] @ e[seen] / nu)
    for start in range(0, len(P), WIDTH):  # P F' in the place of the symmetric P: fresh memory costs more than sums
        P[start : start + WIDTH] = (F @ P[start : start + WIDTH].T).T
    return mean, F @ P


def law_sizes(values: Array, fastest: float, alone: bool, rest: float) -> Array:
    """Numbers (T,) that the law of each row (T, N) holds, at most; `fastest`: of the closed loop, the largest."""
    n = values.shape[1]
    life = 1 if fastest == 0 else int(np.ceil(np.log(rest) / (2.0 * np.log(fastest)))) + 1
    missing = np.isnan(values).sum(axis=1) * (not alone)
    missing[missing == n] = 0  # a row without any reading leaves no excess
    total = np.concatenate([np.zeros(life, int), np.cumsum(missing)])
    return n * np.minimum(4 + 4 * (total[life:] - total[:-life]), 4 * n)
