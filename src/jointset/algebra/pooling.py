"""One law from several: the geometric mean of their densities, and the weights its members deserve.

The normalised product of Gaussian densities to the powers w_k, with sum 1, is Gaussian: its precision is the mean of
the precisions, sum w_k P_k, and its mean theirs weighted by precision. Who is sure of a moment has the say at it; a
mean of covariances would be as wide as its widest part. Of low-rank laws it is of low rank again: diag(d_k) + L_k L_k'
has the inverse diag(1/d_k) - V_k V_k', diagonals add up and factors stand side by side, and so back again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.law_tails import Tails
from jointset.algebra.lowrank import apply, transpose
from jointset.algebra.triangles import whitener
from jointset.contracts import Array
from jointset.errors import require
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw, matrix_of

if TYPE_CHECKING:
    from jointset.residuals.piecewise import PiecewiseLaw

FREEDOM = (2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 200.0)  # degrees of freedom that are tried
ROUNDS = 200  # of the iterations below, each of which converges long before
SMALLEST = 0.05  # a weight below it is none: every member that is heard costs time in each step
STEADY = 1e-10  # share that variances are enlarged by
HELD = (0.9, 0.95)  # shares of the rows whose sets are to be small
STEP = 0.1  # weight that goes from one member to another
GAIN = 0.002  # nats that it must bring: less may be chance


def pooled(laws: Sequence[AnyLaw], weights: Array, sizes: Array | None = None) -> AnyLaw:
    """The law whose density is the geometric mean of the members' with these weights (K,).

    `sizes` (K,) multiply the members' covariances.
    """
    weights = np.asarray(weights, dtype=float)
    return Precisions(laws).pooled(weights if sizes is None else weights / sizes)


class Precisions:
    """The precisions of laws, found once for pools of them under any weights: matrices, or all of low rank."""

    def __init__(self, laws: Sequence[AnyLaw]) -> None:
        self.first: Array = laws[0].mean  # means are taken from here: a level they share is not rounded away
        self.slim = all(isinstance(law, LowRankLaw) for law in laws)
        kinds: dict[Any, list[int]] = {}
        for k, law in enumerate(laws):  # those of one kind in one go: of matrices all of one row, of many rows each
            kind = law.factor.shape if isinstance(law, LowRankLaw) and self.slim else k * (self.first.ndim > 1)
            kinds.setdefault(kind, []).append(k)
        self.parts: list[tuple[list[int], Any]] = []
        for own in kinds.values():
            some: list[Any] = [laws[k] for k in own]
            self.parts.append((own, _slim_part(some, self.first) if self.slim else _part(some, self.first)))

    def pooled(self, shares: Array) -> AnyLaw:
        """The law whose precision is the sum of theirs, each times its share (K,)."""
        heard = [(shares[own], part) for own, part in self.parts]
        pull: Any = sum(_total(share, part.pull) for share, part in heard)
        if self.slim:
            diagonal: Any = sum(_total(share, part.diagonal) for share, part in heard)
            pairs = [pair for share, part in heard for pair in zip(np.sqrt(share), part.factor, strict=True)]
            factor = np.concatenate([root * one for root, one in pairs if root], axis=-1)
            side = factor / diagonal[..., None]
            side = side @ transpose(whitener(np.eye(side.shape[-1]) - transpose(factor) @ side))
            mean = self.first + pull / diagonal + apply(side, apply(transpose(side), pull))
            return LowRankLaw._made(mean, 1.0 / diagonal, side)
        P: Any = sum(_total(share, part.matrix) for share, part in heard)
        unit = 1.0 / np.sqrt(P.diagonal(0, -2, -1))  # sensors may differ by many magnitudes
        root = whitener(unit[..., :, None] * P * unit[..., None, :]) * unit[..., None, :]
        S = transpose(root) @ root
        return DenseLaw._made(self.first + apply(S, pull), Covariance(steady(S)))


def _total(shares: Array, parts: Array) -> Array:
    """Sum of parts (K, ...), each times its share (K,)."""
    return (shares @ parts.reshape(len(parts), -1)).reshape(parts.shape[1:])


class _Part(NamedTuple):
    """Precisions of laws (K, ..., N, N), and their products with the means."""

    matrix: Array
    pull: Array


def _part(laws: list[AnyLaw], first: Array) -> _Part:
    white = whitener(steady(np.array([matrix_of(law) for law in laws])))
    P = transpose(white) @ white
    return _Part(P, apply(P, np.array([law.mean for law in laws]) - first))


class _SlimPart(NamedTuple):
    """The same of low-rank laws, diag(diagonal) - factor factor' each."""

    diagonal: Array
    factor: Array
    pull: Array


def _slim_part(laws: list[LowRankLaw], first: Array) -> _SlimPart:
    """Of diag(d) + L L' it is W - W L C^-1 L' W with W = diag(d)^-1, C = I + L' W L."""
    L = np.array([law.factor for law in laws])
    mean, diagonal = np.array([(law.mean, law.diagonal) for law in laws]).swapaxes(0, 1)
    weight = 1.0 / (diagonal + STEADY * (diagonal + np.einsum("...ir,...ir->...i", L, L)))
    side = weight[..., None] * L
    factor = side @ transpose(whitener(np.eye(L.shape[-1]) + transpose(L) @ side))
    e = mean - first
    return _SlimPart(weight, factor, weight * e - apply(factor, apply(transpose(factor), e)))


def matched(laws: Sequence[LowRankLaw]) -> LowRankLaw:
    """The law with the mean and the covariance of a mixture in equal parts."""
    if len(laws) == 1:
        return laws[0]
    root = 1.0 / np.sqrt(len(laws))
    mean = np.mean([law.mean for law in laws], axis=0)
    columns = [root * law.factor for law in laws] + [root * (law.mean - mean)[..., None] for law in laws]
    return LowRankLaw(mean, np.mean([law.diagonal for law in laws], axis=0), np.concatenate(columns, axis=-1))


def steady(S: Array) -> Array:
    """Covariances (..., N, N), every variance larger by a share far below what matters.

    After an absurd reading members disagree so much that rounding makes a sum of theirs indefinite: this share is more.
    """
    return S * _lift(S.shape[-1])


@lru_cache(maxsize=8)
def _lift(n: int) -> Array:
    return 1.0 + STEADY * np.eye(n)


def log_scores(law: AnyLaw | PiecewiseLaw, y: Array, tails: Tails | None = None) -> tuple[Array, Tails]:
    """Student-t log density (T,) of readings (T, N) under laws, and its tails, fitted to them unless given.

    The size of the laws is fitted too: sets get theirs from calibration. NaN where nothing was read.
    """
    return student_scores(*distances(law, y), tails)


def distances(law: AnyLaw | PiecewiseLaw, y: Array) -> tuple[Array, Array, Array]:
    """Squared distances, log-determinants and numbers (T,) of what was read of readings (T, N)."""
    return (law if isinstance(law, (DenseLaw, LowRankLaw)) else law.dense()).terms(y)


def student_scores(distance: Array, log_det: Array, count: Array, tails: Tails | None = None) -> tuple[Array, Tails]:
    """The log densities (T,) of `log_scores` from what `distances` gives."""
    seen = count > 0
    if tails is None:
        require(bool(seen.any()), "no reading to weigh the members by")
        tails = max(
            (Tails(freedom, _size(distance[seen], count[seen], freedom)) for freedom in FREEDOM),
            key=lambda one: float(one.log_density(distance[seen], log_det[seen], count[seen]).sum()),
        )
    return np.where(seen, tails.log_density(distance, log_det, count), np.nan), tails


def cost(law: LowRankLaw | DenseLaw, y: Array) -> float:
    """What a pool should have little of, in nats: minus the log density a reading, plus the size of sets.

    The size is the mean of four logarithms: of ellipsoids, det(q S)^(1/2N) on average, and of boxes, the mean width of
    a sensor, each as large as to hold 90 % and 95 % of readings (T, N). What was read of a row stands for all of it.
    """
    seen = ~np.isnan(y).all(axis=-1)
    distance, log_det, count = (part[seen] for part in distances(law, y))
    density = float(student_scores(distance, log_det, count)[0].sum() / count.sum())
    sd = np.sqrt(law.variance[seen])
    farthest = np.nanmax(np.abs(y - law.mean)[seen] / sd, axis=-1)
    volume = float(np.log(np.mean(np.exp(0.5 * log_det / count))))
    width = float(np.log(sd.mean(axis=0)).mean())
    radii = [0.5 * np.log(_holding(distance * y.shape[-1] / count, share)) for share in HELD]
    reaches = [np.log(_holding(farthest, share)) for share in HELD]
    return 0.5 * (volume + width + float(np.mean(radii) + np.mean(reaches))) - density


def _holding(scores: Array, share: float) -> float:
    """The score that this share of the scores does not exceed."""
    place = min(int(np.ceil(share * (len(scores) + 1))), len(scores)) - 1
    return float(np.partition(scores, place)[place])


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


def best_weights(laws: Sequence[Any], sizes: Array, y: Array, tried: Sequence[Array]) -> Array:
    """Weights (K,) of the pool of laws that has the least `cost` on readings (T, N).

    From the best of those `tried`, a tenth goes from one member to another as long as that brings enough.
    """
    precisions = Precisions(laws)

    def found(weights: Array) -> float:
        return cost(precisions.pooled(weights / sizes), y)

    costs = [found(weights) for weights in tried]
    while True:
        weights, least = tried[int(np.argmin(costs))], min(costs)
        tried = [_moved(weights, i, j) for i, j in permutations(range(len(laws)), 2) if weights[i] > 0]
        costs = [found(other) for other in tried]
        if not costs or min(costs) > least - GAIN:
            return weights


def _moved(weights: Array, source: int, target: int) -> Array:
    """Weights of which a step went from one member to another; what would be left of less than half a step goes too."""
    after = weights.copy()
    share = STEP if weights[source] >= 1.5 * STEP else weights[source]
    after[source] -= share
    after[target] += share
    return after


def some_rows(rows: int, most: int) -> Array:
    """Positions of at most so many of the rows, ascending: drawn, as every k-th row may be one hour of the day."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
