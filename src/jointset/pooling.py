"""One law from several: the moment-matched mixture, and the weights its members deserve.

The mixture of laws (m_k, S_k) with weights w_k has mean m = sum w_k m_k and covariance sum w_k S_k plus the spread of
the means, sum w_k (m_k - m)(m_k - m)'. Of low-rank laws it is of low rank again: their diagonals add up, their factors
stand side by side, and the spread adds one factor less than there are members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.covariance import Covariance
from jointset.errors import require
from jointset.laws import LOG_2PI, DenseLaw, LowRankLaw

FREEDOM = (2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 200.0)  # degrees of freedom that are tried
ROUNDS = 200  # of the iterations below, each of which converges long before
SMALLEST = 1e-3  # a weight below it is none
STEADY = 1e-10  # share that variances are enlarged by


def pooled(laws: Sequence[Any], weights: Array, sizes: Array | None = None) -> LowRankLaw | DenseLaw:
    """The law with the moments of the mixture; `weights` (K,), or (T, K) where they move.

    `sizes` (K,) multiply the members' covariances.
    """
    w = np.asarray(weights, dtype=float)
    c = w if sizes is None else w * sizes
    means = np.stack([law.mean for law in laws], axis=-2)  # (..., K, N)
    spread = _spread(means, w)
    mean = (w[..., None] * means).sum(-2)
    if all(isinstance(law, LowRankLaw) for law in laws):
        diagonal = sum(c[..., k, None] * law.diagonal for k, law in enumerate(laws))
        factors = [np.sqrt(c[..., k, None, None]) * law.factor for k, law in enumerate(laws)]
        return LowRankLaw(mean, diagonal, np.concatenate([*factors, spread], axis=-1))
    S = spread @ spread.swapaxes(-1, -2)
    for k, law in enumerate(laws):
        S = S + c[..., k, None, None] * matrix_of(law)
    return DenseLaw(mean, Covariance(steady(S)))


def matrix_of(law: Any) -> Array:
    """The covariance of a law as a matrix: (..., N, N), or (N, N) where all steps share one."""
    return law.dense() if isinstance(law, LowRankLaw) else law.covariance.matrix


def steady(S: Array) -> Array:
    """Covariances (..., N, N), every variance larger by a share far below what matters.

    After an absurd reading members disagree so much that rounding makes a sum of theirs indefinite: this share is more.
    """
    return S * (1.0 + STEADY * np.eye(S.shape[-1]))


def _spread(means: Array, w: Array) -> Array:
    """Factors (..., N, K - 1) of the spread of means (..., K, N) around their weighted mean.

    With u = sqrt(w), a unit vector, the spread is M'u (I - uu') uM; all columns but the first of the reflection that
    takes the first axis to -u span what is orthogonal to u.
    """
    u = np.sqrt(w)
    v = u.copy()
    v[..., 0] += 1.0
    reflection = np.eye(w.shape[-1]) - v[..., :, None] * v[..., None, :] / (1.0 + u[..., 0])[..., None, None]
    return means.swapaxes(-1, -2) @ (u[..., :, None] * reflection[..., 1:])


class Tails(NamedTuple):
    """How the readings of a block spread under the laws of a filter: a Student-t of S times `size`."""

    freedom: float
    size: float


def log_scores(law: Any, y: Array, tails: Tails | None = None) -> tuple[Array, Tails]:
    """Student-t log density (T,) of readings (T, N) under laws, and its tails, fitted to them unless given.

    The size of the laws is fitted too: sets get theirs from calibration. NaN where nothing was read.
    """
    return student_scores(*distances(law, y), tails)


def distances(law: Any, y: Array) -> tuple[Array, Array, Array]:
    """Squared distances, log-determinants and numbers (T,) of what was read of readings (T, N)."""
    law = law.dense() if hasattr(law, "pieces") else law
    distance, count = law.mahalanobis(y), (~np.isnan(y)).sum(-1)
    return distance, 2.0 * law.nll(y) - distance - count * LOG_2PI, count


def student_scores(distance: Array, log_det: Array, count: Array, tails: Tails | None = None) -> tuple[Array, Tails]:
    """The log densities (T,) of `log_scores` from what `distances` gives."""
    seen = count > 0
    if tails is None:
        require(bool(seen.any()), "no reading to weigh the members by")
        tails = max(
            (Tails(freedom, _size(distance[seen], count[seen], freedom)) for freedom in FREEDOM),
            key=lambda one: float(_log_density(distance[seen], log_det[seen], count[seen], one).sum()),
        )
    return np.where(seen, _log_density(distance, log_det, count, tails), np.nan), tails


def log_size(law: Any, y: Array, share: float = 0.9) -> float:
    """Logarithm of the mean size, det(q S)^(1/2N), of the ellipsoids of laws that hold this share of readings (T, N).

    What was read of a row stands for all of it, sensor for sensor.
    """
    distance, log_det, count = (part[~np.isnan(y).all(axis=-1)] for part in distances(law, y))
    scores = np.sort(distance * y.shape[-1] / count)
    radius = scores[min(int(np.ceil(share * (len(scores) + 1))), len(scores)) - 1]
    return float(np.log(np.mean(np.exp(0.5 * log_det / count))) + 0.5 * np.log(radius))


def _log_density(distance: Array, log_det: Array, count: Array, tails: Tails) -> Array:
    """Student-t log density from squared distances and log-determinants (T,) of `count` (T,) readings each."""
    from scipy.special import gammaln  # here, so that importing jointset stays fast

    df, size = tails
    top = gammaln(0.5 * (df + count)) - gammaln(0.5 * df) - 0.5 * count * np.log(df * np.pi)
    return top - 0.5 * (log_det + count * np.log(size)) - 0.5 * (df + count) * np.log1p(distance / (size * df))


def _size(distance: Array, count: Array, freedom: float) -> float:
    """The size of a Student-t with the highest likelihood, by EM: a mean of squares that outliers hardly move."""
    size = float(np.median(distance / count)) or 1.0
    for _ in range(ROUNDS):
        weight = (freedom + count) / (freedom + distance / size)
        before, size = size, float((weight * distance).sum() / count.sum()) or size
        if abs(size - before) < 1e-6 * size:
            break
    return size


def mixture_weights(scores: Array) -> Array:
    """Weights (K,) of the mixture with the highest likelihood, from log densities (T, K), by EM."""
    scores = scores[~np.isnan(scores).any(axis=1)]
    density = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = np.full(scores.shape[1], 1.0 / scores.shape[1])
    for _ in range(ROUNDS):
        share = density * weights
        weights = (share / share.sum(axis=1, keepdims=True)).mean(axis=0)
    weights = np.where(weights < SMALLEST, 0.0, weights)
    return weights / weights.sum()


def some_rows(rows: int, most: int) -> Array:
    """Positions of at most so many of the rows, ascending: drawn, as every k-th row may be one hour of the day."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
