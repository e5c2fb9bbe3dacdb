"""Theory of the linear filter: contraction rates of its closed loop and the exact RMS identity.

`closed_loop` is either the coefficients of the modes (N,), as `GraphLGSSM.steady.closed_loop`, or the matrix (N, N).
The closed-form steady state is `jointset.filters.riccati.steady_state`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require
from jointset.filters.riccati import rho_weighted


class RmsIdentity(NamedTuple):
    """(E |D_t|^2)^(1/2) for t = 1 .. T, computed three ways, each (T,)."""

    rms: Array  # sqrt tr(A^t M0 A^t'), by products of matrices
    identity: Array  # rho_M0(A, t)^t d0: equal to `rms`
    envelope: Array  # rho_M0(A, T)^t d0: never below, equal at t = T


def rho_tr(closed_loop: Array, t: int) -> float:
    """Trace rate (N^-1 sum_i |a_i|^2t)^(1/2t): the RMS rate after t steps when M0 is a multiple of I.

    >>> round(rho_tr(np.array([0.5, 0.1]), 50), 4)
    0.4965
    """
    return rho_weighted(_modes(closed_loop)[0], t)


def rho_m0(closed_loop: Array, t: int, second_moment: Array, basis: Array | None = None) -> float:
    """Initialisation-weighted RMS rate (sum_i w_i |a_i|^2t)^(1/2t), w_i = (U' M0 U)_ii / tr M0.

    M0 (N, N) is the second moment of the difference of two initial states, U (`basis`) the eigenbasis that belongs to
    coefficients (N,); a matrix (N, N) brings its own.

    >>> rho_m0(np.array([0.5, 0.1]), 50, np.diag([0.0, 1.0]))
    0.1
    """
    a, U = _modes(closed_loop)
    if basis is not None:
        require(np.ndim(closed_loop) == 1, "a matrix has its own eigenbasis: give `basis` with coefficients only")
        U = basis
    weights = np.einsum("ji,jk,ki->i", U.conj(), np.asarray(second_moment, dtype=float), U).real
    kept = weights > 1e-14 * weights.sum()  # the largest mode is factored out of a power: only one that is there
    return rho_weighted(a[kept], t, np.diag(weights[kept]))


def rms_identity(closed_loop: Array, second_moment: Array, horizon: int) -> RmsIdentity:
    """Initialisation-weighted RMS identity of a normal closed loop (N, N), and its envelope, for t = 1 .. `horizon`.

    (E |D_t|^2)^(1/2) = rho_M0(A, t)^t (E |D_0|^2)^(1/2) <= rho_M0(A, T)^t (E |D_0|^2)^(1/2), equal at t = T.

    >>> found = rms_identity(np.array([[0.4, 0.2], [0.2, 0.4]]), np.diag([3.0, 1.0]), 20)
    >>> bool(np.allclose(found.rms, found.identity, rtol=1e-12)), bool(np.all(found.rms <= 1.0001 * found.envelope))
    (True, True)
    """
    A, M0 = np.asarray(closed_loop, dtype=float), np.asarray(second_moment, dtype=float)
    require(A.ndim == 2 and M0.shape == A.shape, f"matrices (N, N) are needed, got shapes {A.shape} and {M0.shape}")
    require(horizon >= 1, f"the horizon must be at least 1 step, got {horizon}")
    squares, moment = [], M0
    for _ in range(horizon):
        moment = A @ moment @ A.T
        squares.append(np.trace(moment))
    d0, t = np.sqrt(np.trace(M0)), np.arange(1, horizon + 1)
    rates = np.array([rho_m0(A, int(s), M0) for s in t])
    return RmsIdentity(np.sqrt(squares), rates**t * d0, rates[-1] ** t * d0)


def no_go_prefactor(sigma: float, rate: float, horizon: int) -> float:
    """Lower bound (no horizon-free worst-case rate): |A^t x| <= c rate^t |x| for all x and t <= T needs this c.

    c >= (sigma_1 / rate)^T for a normal A.

    >>> f"{no_go_prefactor(0.44, 0.15, 50):.1e}"
    '2.3e+23'
    """
    require(sigma > 0 and rate > 0, "sigma_1 and the rate must be positive")
    return float(np.exp(min(horizon * np.log(sigma / rate), 709.0)))


def _modes(closed_loop: Array) -> tuple[Array, Array]:
    """Sizes of the eigenvalues (N,) and a unitary eigenbasis (N, N)."""
    A = np.asarray(closed_loop)
    if A.ndim == 1:
        return np.abs(A), np.eye(len(A))
    if np.allclose(A, A.T, rtol=0.0, atol=1e-13 * np.abs(A).max()):
        values, basis = np.linalg.eigh(0.5 * (A + A.T))
        return np.abs(values), basis
    from scipy.linalg import schur  # here, so that importing jointset stays fast

    triangle, basis = schur(A, output="complex")
    off = np.abs(triangle - np.diag(triangle.diagonal())).max()
    require(off <= 1e-10 * np.abs(A).max(), "the closed loop is not normal: the identity does not hold for it")
    return np.abs(triangle.diagonal()), basis
