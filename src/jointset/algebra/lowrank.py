"""Algebra of covariances S = diag(d) + L L', written once for NumPy and PyTorch.

Shapes: L (..., N, r), e (..., N), and the weights w = 1/d (..., N). Nothing of size N x N is formed: every function
costs O(N r^2 + r^3) a step through the r x r capacitance C = I + L' W L (Woodbury identity, determinant lemma). A
weight of zero removes a sensor, which is exactly the marginal law on the others: so missing readings are scored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jointset.contracts import Array

if TYPE_CHECKING:
    import torch

Numbers = TypeVar("Numbers", Array, "torch.Tensor")  # arrays of NumPy or tensors of PyTorch, all of one kind


def namespace(x: object) -> Any:
    """The module (numpy or torch) that `x` belongs to."""
    if isinstance(x, np.ndarray) or type(x).__module__.split(".")[0] != "torch":
        return np
    import torch

    return torch


def transpose(x: Numbers) -> Numbers:
    """Swap the last two axes."""
    return x.swapaxes(-1, -2)


def apply(A: Numbers, x: Numbers) -> Numbers:
    """Matrices times vectors: (..., m, n), (..., n) -> (..., m)."""
    return (A @ x[..., None])[..., 0]


def capacitance(w: Numbers, L: Numbers) -> Numbers:
    """C = I + L' W L (..., r, r)."""
    xp = namespace(L)
    identity = xp.eye(L.shape[-1], dtype=L.dtype, **({} if xp is np else {"device": L.device}))
    return identity + transpose(L) @ (w[..., None] * L)


def factor_mean(e: Numbers, w: Numbers, L: Numbers, C: Numbers) -> Numbers:
    """z = C^-1 L' W e (..., r): the posterior mean of the factor given the residual."""
    b = apply(transpose(L), w * e)
    return b if C.shape[-1] == 0 else namespace(C).linalg.solve(C, b[..., None])[..., 0]


def solve(e: Numbers, w: Numbers, L: Numbers) -> Numbers:
    """S^-1 e (..., N), by Woodbury; entries of weight zero come back zero."""
    return w * (e - apply(L, factor_mean(e, w, L, capacitance(w, L))))


def mahalanobis(e: Numbers, w: Numbers, L: Numbers, C: Numbers | None = None) -> Numbers:
    """e' S^-1 e (...), as |e - L z|^2_W + |z|^2 at the posterior factor z: a sum of squares, never negative."""
    z = factor_mean(e, w, L, capacitance(w, L) if C is None else C)
    rest = e - apply(L, z)
    return (w * rest * rest).sum(-1) + (z * z).sum(-1)


def log_det(w: Numbers, L: Numbers, C: Numbers | None = None) -> Numbers:
    """log det S = log det C - sum log w (...); sensors of weight zero do not count."""
    xp = namespace(L)
    present = w > 0
    diagonal = -xp.log(xp.where(present, w, xp.ones_like(w))).sum(-1)
    C = capacitance(w, L) if C is None else C
    if C.shape[-1] == 0:
        return diagonal
    return diagonal + 2.0 * xp.log(xp.linalg.cholesky(C).diagonal(0, -2, -1)).sum(-1)


def nll(e: Numbers, w: Numbers, L: Numbers) -> Numbers:
    """Gaussian negative log-likelihood (...) less its constant (N/2) log 2 pi."""
    C = capacitance(w, L)
    return 0.5 * (mahalanobis(e, w, L, C) + log_det(w, L, C))


def precision_diagonal(w: Numbers, L: Numbers) -> Numbers:
    """Diagonal of S^-1 (..., N)."""
    if L.shape[-1] == 0:
        return w
    inner = namespace(L).linalg.solve(capacitance(w, L), transpose(L))  # (..., r, N)
    return w - w * w * (L * transpose(inner)).sum(-1)
