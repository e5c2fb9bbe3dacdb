"""Covariances of residuals: second moments, shrinkage to the diagonal, and the ridge of a singular one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from jointset.contracts import Array

RIDGE = 1e-6  # of the mean variance of all residuals, added to a covariance that is not positive definite
SMALLEST = 1e-10  # smallest eigenvalue of the correlations below which a covariance counts as singular
WORKING = 1e-14  # the same in rotated coordinates, where less cannot be told from rounding


def second_moment(residuals: Array, *, ddof: int = 1) -> Array:
    """E'E / (n - ddof) (N, N) of residuals (n, N); they are not centred."""
    return gram(residuals) / max(len(residuals) - ddof, 1)


def gram(rows: Array) -> Array:
    """E'E (N, N) of rows (n, N), half the work of a product: it is symmetric."""
    from scipy.linalg.blas import dsyrk  # here, so that importing jointset stays fast

    if not len(rows):
        return np.zeros((rows.shape[1], rows.shape[1]))
    lower = dsyrk(1.0, np.ascontiguousarray(rows, dtype=float).T, lower=1)
    whole = lower + lower.T
    whole[np.diag_indices_from(whole)] *= 0.5
    return whole


def to_diagonal(covariance: Array, weight: float) -> Array:
    """(1 - weight) S + weight diag S, of one matrix or a stack (..., N, N).

    >>> to_diagonal(np.array([[2.0, 1.0], [1.0, 2.0]]), 0.5)
    array([[2. , 0.5],
           [0.5, 2. ]])
    """
    shrunk = (1.0 - weight) * covariance
    np.einsum("...ii->...i", shrunk)[...] = np.einsum("...ii->...i", covariance)
    return shrunk


def schaefer_strimmer(residuals: Array) -> Array:
    """Shrinkage to the diagonal with the weight that minimises the expected squared error, estimated from the data.

    weight = sum_{i != j} Var(s_ij) / sum_{i != j} s_ij^2, in [0, 1], with Var(s_ij) = n / (n - 1)^3 sum_t (w_tij -
    mean w_ij)^2 and w_tij = e_ti e_tj (Schaefer and Strimmer 2005, target D). Residuals (n, N) are centred already.
    """
    rows = len(residuals)
    covariance = second_moment(residuals)
    products = residuals.T @ residuals / rows  # mean of w_ij
    squares = (residuals**2).T @ residuals**2  # sum of w_ij^2
    spread = rows / (rows - 1) ** 3 * (squares - rows * products**2)
    off = ~np.eye(len(covariance), dtype=bool)
    strength = float((covariance[off] ** 2).sum())
    weight = float(np.clip(spread[off].sum() / strength, 0.0, 1.0)) if strength > 0 else 0.0
    return to_diagonal(covariance, weight)


def ledoit_wolf(residuals: Array) -> tuple[Array, float]:
    """Shrinkage to equal variances, (1 - w) S + w mean(diag S) I, and the weight w; it does not depend on the axes.

    w = sum_t |e_t e_t' - S|^2 / (n^2 |S - mean(diag S) I|^2), at most 1, minimises the expected squared error, also
    where rows (n, N) are fewer than directions (Ledoit and Wolf 2004). Here S = E'E / n; the result is on the scale of
    `second_moment`. Residuals are not centred.
    """
    rows, n = residuals.shape
    S = gram(residuals) / rows
    level = float(np.trace(S)) / n
    size = float((S**2).sum())
    spread = float((np.einsum("ij,ij->i", residuals, residuals) ** 2).sum()) / rows - size
    apart = size - n * level**2
    weight = min(spread / rows / apart, 1.0) if apart > 0 else 1.0
    S *= 1.0 - weight
    S[np.diag_indices_from(S)] += weight * level
    return S * (rows / max(rows - 1, 1)), weight


def mean_variance(residuals: Array) -> float:
    """Mean of the diagonal of `second_moment`."""
    return float((residuals**2).sum() / max(len(residuals) - 1, 1) / residuals.shape[1])


def correlations(covariance: Array) -> Array:
    """S_ij / sqrt(S_ii S_jj): the test for a singular covariance does not depend on units."""
    scale = _scale(covariance)
    return covariance / np.outer(scale, scale)


def _scale(covariance: Array) -> Array:
    """Square roots of the variances, above 0."""
    return np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))


def is_singular(covariance: Array, smallest: float = SMALLEST) -> bool:
    """Whether an eigenvalue of the correlations is `smallest` or less."""
    return not np.linalg.eigvalsh(correlations(covariance))[0] > smallest


def flat_spans(covariance: Array, bases: Sequence[Array]) -> list[bool]:
    """Which of the spaces, each spanned by the orthonormal columns of a basis (N, d), hold a flat direction.

    A direction x is flat when x'Sx is at most SMALLEST times its value for uncorrelated sensors, x' diag(S) x. For the
    whole space this is `is_singular`, and no part of the space is flat when the whole is not. A covariance in rotated
    coordinates cannot be judged by itself: the difference of two equal sensors may be one of its axes, and a single
    number has no correlations.
    """
    related, scale = correlations(covariance), _scale(covariance)
    if np.linalg.eigvalsh(related)[0] > SMALLEST:
        return [False] * len(bases)
    spans = (np.linalg.qr(scale[:, None] * basis)[0] for basis in bases)
    return [not np.linalg.eigvalsh(Q.T @ related @ Q)[0] > SMALLEST for Q in spans]


def ridge_of(variance: float, name: str) -> float:
    """RIDGE times the mean variance of the residuals, for what is singular, and the warning that tells the user so.

    Two sensors with the same readings, or fewer rows than sensors, make a covariance singular. Its set would be flat:
    of volume zero, and missed by the smallest new difference between the two.
    """
    ridge = RIDGE * variance
    warnings.warn(
        f"{name}: the covariance of the residuals is singular (duplicate sensors, or too few rows): "
        f"a ridge of {ridge:.3g} was added to its diagonal",
        stacklevel=3,
    )
    return ridge


def positive_definite(covariance: Array, name: str) -> Array:
    """The covariance, with `ridge_of` its mean variance on its diagonal where it is singular."""
    return all_positive_definite([covariance], float(np.mean(np.diag(covariance))), name)[0]


def all_positive_definite(covariances: Sequence[Array], variance: float, name: str) -> list[Array]:
    """The covariances, those that are singular with one ridge for all of them: `ridge_of` the variance given."""
    singular = [is_singular(S) for S in covariances]
    if not any(singular):
        return list(covariances)
    ridge = ridge_of(variance, name)
    return [S + ridge * np.eye(len(S)) if flat else S for S, flat in zip(covariances, singular, strict=True)]
