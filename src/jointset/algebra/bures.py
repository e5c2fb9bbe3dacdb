"""Bures-Wasserstein distances from one Gaussian law to many, without an eigendecomposition for each of them.

The covariance part of the distance of N(m, S) and N(m', T) is tr(Z S Z), where I + Z > 0 is the optimal transport map:
(I + Z) S (I + Z) = T. In the eigenbasis of S (one decomposition for all T) this reads

    (l_i + l_j) Z_ij = (T - S)_ij - (Z L Z)_ij,   L = diag(l),

and iterating it costs one product of N x N matrices. It works on the difference T - S itself, so that distances keep
their digits however small they are. A converged symmetric solution with |Z| < 1 is the transport map, so the result
is exact; laws too far away for the iteration go through singular values (`bures_wasserstein`).

A closed form in the rank alone does not exist when the diagonals differ; where both covariances are diagonal, or the
same, it does and is used.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from jointset.algebra.lowrank import transpose
from jointset.algebra.triangles import bures_wasserstein
from jointset.contracts import Array
from jointset.errors import require
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw

CHUNK = 200_000  # numbers of a block of N x N matrices worked on together: they fit in the processor's cache
MOST = 25  # iterations before the singular values take over
TOLERANCE = 1e-10  # relative change of the squared distance at which the iteration has converged


def distances_from(law: AnyLaw, others: AnyLaw, threads: int = 1) -> Array:
    """Exact Bures-Wasserstein distances (K,) from one law (N,) to a batch of laws (K, N).

    With more threads blocks of laws are worked on side by side: for linear algebra that runs on one thread itself.

    >>> law = DenseLaw(np.zeros(2), np.eye(2))
    >>> distances_from(law, DenseLaw(np.ones((3, 2)), 4.0 * np.eye(2)))
    array([2., 2., 2.])
    """
    require(
        law.mean.ndim == 1 and others.mean.ndim == 2 and law.mean.shape == others.mean.shape[1:],
        f"one law (N,) and a batch (K, N) are needed, got means of shapes {law.mean.shape} and {others.mean.shape}",
    )
    between_means = np.sum((others.mean - law.mean) ** 2, axis=-1)
    return np.sqrt(between_means + _between_covariances(law, others, threads))


def _between_covariances(law: AnyLaw, others: AnyLaw, threads: int) -> Array:
    """Squared covariance part (K,)."""
    count = len(others.mean)
    if isinstance(law, LowRankLaw) and isinstance(others, LowRankLaw):
        if law.factor.shape[-1] == others.factor.shape[-1] == 0:
            return np.sum((np.sqrt(others.diagonal) - np.sqrt(law.diagonal)) ** 2, axis=-1)
        S = law.dense()
    elif isinstance(law, DenseLaw) and isinstance(others, DenseLaw):
        S = law.covariance.matrix
        if others.covariance is law.covariance or bool(np.all(others.covariance.matrix == S)):
            return np.zeros(count)
        if others.covariance.shared:
            spectrum = np.linalg.eigh(S)
            return np.full(count, _batch(S, spectrum, _turned(law, others[:1], spectrum[1])[None])[0])
    else:
        return _between_covariances(as_dense(law), as_dense(others), threads)
    spectrum = np.linalg.eigh(S)
    size = max(1, CHUNK // S.size)
    blocks = [slice(k, k + size) for k in range(0, count, size)]

    def squared(block: slice) -> Array:
        return _batch(S, spectrum, _turned(law, others[block], spectrum[1]))

    if threads == 1 or len(blocks) == 1:
        return np.concatenate([squared(block) for block in blocks])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate([*pool.map(squared, blocks)])


def as_dense(law: AnyLaw) -> DenseLaw:
    """The law with its covariance as a matrix."""
    if isinstance(law, DenseLaw):
        return law
    return DenseLaw(law.mean, law.dense())


def _turned(law: AnyLaw, others: AnyLaw, basis: Array) -> Array:
    """U' (T - S) U (K, N, N), from differences of the parts: small ones keep their digits."""
    if isinstance(law, DenseLaw) or isinstance(others, DenseLaw):
        return basis.T @ (as_dense(others).covariance.matrix - as_dense(law).covariance.matrix) @ basis
    if law.factor.shape[-1] != others.factor.shape[-1]:
        return basis.T @ (others.dense() - law.dense()) @ basis
    from_diagonal = (basis.T * (others.diagonal - law.diagonal)[:, None]) @ basis
    difference, total = basis.T @ (others.factor - law.factor), basis.T @ (others.factor + law.factor)
    half = (0.5 * difference) @ transpose(total)  # M M' - L L' is the symmetric part of (M - L)(M + L)'
    return from_diagonal + half + transpose(half)


def _batch(S: Array, spectrum: tuple[Array, Array], turned: Array) -> Array:
    """Squared covariance part (k,) for differences T - S (k, N, N) in the eigenbasis of S."""
    values, basis = spectrum
    share = 1.0 / (values[:, None] + values)
    squared = np.empty(len(turned))
    far = []
    for k, gap in enumerate(turned):
        found = _transported(gap, values, share)
        if found is None:
            far.append(k)
        else:
            squared[k] = found
    if far:
        zero, root = np.zeros(len(values)), np.linalg.cholesky(S)
        for k in far:
            other = np.linalg.cholesky(S + basis @ turned[k] @ basis.T)
            squared[k] = bures_wasserstein(zero, root, zero, other) ** 2
    return squared


def _transported(gap: Array, values: Array, share: Array) -> float | None:
    """tr(Z L Z) at the transport map of one difference (N, N), or None where the iteration does not settle."""
    Z = gap * share
    scaled, product = np.empty_like(Z), np.empty_like(Z)
    squared, below_one = _sizes(Z, values)
    for _ in range(MOST):
        if not below_one:
            return None
        np.multiply(Z, values, out=scaled)
        np.matmul(scaled, Z, out=product)
        np.subtract(gap, product, out=product)
        np.multiply(product, share, out=Z)
        before = squared
        squared, below_one = _sizes(Z, values)
        if abs(squared - before) <= TOLERANCE * squared:
            return squared if below_one else None
    return None


def _sizes(Z: Array, values: Array) -> tuple[float, bool]:
    """tr(Z L Z) of a symmetric matrix, and whether its spectral norm is surely below 1.

    The Frobenius norm and the largest row sum are upper bounds of that norm; the second is asked where needed.
    """
    rows = np.einsum("ij,ij->i", Z, Z)
    return float(rows @ values), bool(rows.sum() < 1.0) or bool(np.abs(Z).sum(axis=1).max() < 1.0)
