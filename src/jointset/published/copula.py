"""CopulaCPTS: a box whose sides share the miss rate through the copula of the sensors' scores.

Score of sensor i at step t: s_ti = |residual|. The calibration rows are split at random: the first part gives the
marginal distributions F_i, the second the copula of u_ti = F_i(s_ti). Thresholds theta_i minimise
|mean_t prod_i sigmoid(1000 (theta_i - u_ti)) - (1 - alpha)|, a smooth share of rows below all thresholds, and the
half-width of sensor i is an order statistic of the first part near theta_i.

The thresholds are fitted to the second part without a finite-sample correction, so coverage is close to 1 - alpha
for large calibration blocks and few sensors and below it otherwise; it is not exact even for exchangeable rows.

Reference: Sun and Yu, "Copula conformal prediction for multi-step time series forecasting", ICLR 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import RowOptions, published
from jointset.published.sets import IntervalBox
from jointset.storage import storable
from jointset.support.how_far import each

VARIANTS = ("authors", "kde")
STEEPNESS = 1000.0
RATE, DECAY, BETA1, BETA2 = 1e-3, 1e-4, 0.9, 0.999
# In double precision sigmoid(x) is exactly 1 from x = 37 on, so such entries drop out of products and gradients.
# No Adam step is longer than RATE (1 - BETA1) / sqrt(1 - BETA2) = 3.17 RATE (Kingma and Ba, section 2.1).
FLAT = 37.5 / STEEPNESS
REFRESH = 8
LONGEST = 3.17 * RATE


def split_rows(m: int, share: float, seed: int) -> tuple[Array, Array]:
    """Random split of m rows: int(share m) for the marginals in drawn order, the rest ascending for the copula."""
    order = np.random.default_rng(seed).permutation(m)
    first = int(share * m)
    return order[:first], np.sort(order[first:])


def pseudo_values(scores: Array, marginal: Array) -> Array:
    """u (m2, N) = share of the marginal scores (m1, N) strictly below each score (m2, N)."""
    ordered = np.sort(marginal, axis=0)
    columns = [np.searchsorted(ordered[:, i], scores[:, i], side="left") for i in range(scores.shape[1])]
    return np.stack(columns, axis=1) / len(marginal)


def smooth_thresholds(u: Array, alpha: float, steps: int = 800, dtype: Any = np.float32) -> Array:
    """Thresholds (N,) by Adam on |mean_t prod_i sigmoid(1000 (theta_i - u_ti)) - (1 - alpha)|, from theta = 1.

    Thresholds and moments have type `dtype` (the authors' is float32), the loss is in double precision. Only entries
    within reach of their threshold are visited; the others are factors of exactly 1.
    """
    n = u.shape[1]
    theta, first, second = np.ones(n, dtype), np.zeros(n, dtype), np.zeros(n, dtype)
    reach = FLAT + REFRESH * LONGEST
    rows = columns = starts = np.empty(0, int)
    entries = np.empty(0)
    for step in each(range(steps)):
        if step % REFRESH == 0:
            rows, columns = np.nonzero(u > theta - reach)
            entries = u[rows, columns]
            starts = np.flatnonzero(np.diff(rows, prepend=-1))
        gradient = _gradient(theta, entries, rows, columns, starts, len(u), 1.0 - alpha).astype(dtype)
        gradient = gradient + dtype(DECAY) * theta
        first = first + dtype(1 - BETA1) * (gradient - first)
        second = dtype(BETA2) * second + dtype(1 - BETA2) * gradient * gradient
        size = dtype(RATE / (1 - BETA1 ** (step + 1)))
        theta = theta - size * first / (np.sqrt(second) / dtype(np.sqrt(1 - BETA2 ** (step + 1))) + dtype(1e-8))
    return theta


def _gradient(theta: Array, entries: Array, rows: Array, columns: Array, starts: Array, m: int, target: float) -> Array:
    """Gradient (N,) of the loss; d prod / d theta_i = 1000 prod (1 - sigmoid_i)."""
    if not len(entries):
        return np.zeros(len(theta))
    with np.errstate(over="ignore"):
        sigmoid = 1.0 / (1.0 + np.exp(-STEEPNESS * (theta.astype(float)[columns] - entries)))
    product = np.multiply.reduceat(sigmoid, starts)
    share = (product.sum() + (m - len(starts))) / m
    lengths = np.diff(starts, append=len(entries))
    slope = np.repeat(product, lengths) * (1.0 - sigmoid)
    sums = np.bincount(columns, weights=slope, minlength=len(theta))
    return np.sign(share - target) * STEEPNESS / m * sums


def threshold_radii(theta: Array, marginal: Array) -> Array:
    """Half-widths (N,): the sorted score of each sensor at 0-based place min(int(theta m) + 1, m - 1)."""
    m = len(marginal)
    places = np.minimum((np.asarray(theta) * m).astype(int) + 1, m - 1)
    return np.sort(marginal, axis=0)[np.maximum(places, 0), np.arange(marginal.shape[1])]


def copula_radii(scores: Array, alpha: float, share: float = 0.6, steps: int = 800, seed: int = 0) -> Array:
    """Half-widths (N,) of the authors' method from all calibration scores (m, N)."""
    marginal, copula = split_rows(len(scores), share, seed)
    theta = smooth_thresholds(pseudo_values(scores[copula], scores[marginal]), alpha, steps)
    return threshold_radii(theta, scores[marginal])


def kde_radii(scores: Array, alpha: float) -> Array:
    """Half-widths (N,) of the construction in the paper's text, a copula smoothed by a Gaussian kernel.

    U_ti = rank of s_ti / m. The copula is C(u) = mean_t prod_i Phi((u_i - U_ti) / h_i), with h_i by Silverman's rule,
    sd(U_i) (4 / (N + 2))^(1 / (N + 4)) m^(-1 / (N + 4)). Bisection gives the least common level u with
    C(u, .., u) >= 1 - alpha, at most 1; the half-width is the order statistic of rank ceil(u m). The bandwidth grows
    with N, so many sensors push the level to 1, that is every half-width to the largest score.
    """
    from scipy.special import ndtr

    m, n = scores.shape
    ordered = np.sort(scores, axis=0)
    ranks = np.stack([np.searchsorted(ordered[:, i], scores[:, i], side="right") for i in range(n)], axis=1) / m
    bandwidth = ranks.std(axis=0, ddof=1) * (4.0 / (n + 2)) ** (1.0 / (n + 4)) * m ** (-1.0 / (n + 4))
    low, high = 0.0, 1.0
    while high - low > 0.25 / m:
        level = 0.5 * (low + high)
        if np.mean(np.prod(ndtr((level - ranks) / bandwidth), axis=1)) >= 1.0 - alpha:
            high = level
        else:
            low = level
    return ordered[min(int(np.ceil(high * m)), m) - 1]


@storable
class CopulaState(NamedTuple):
    """Half-widths (N,), fixed at calibration."""

    radius: Array


@storable
@dataclass(frozen=True)
class CopulaRule:
    """Settings of CopulaCPTS and its sets."""

    still: ClassVar[bool] = True  # later residuals move nothing

    variant: str = "authors"
    alpha: float = 0.1
    share: float = 0.6  # of the calibration rows, for the marginals
    steps: int = 800
    seed: int = 0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.variant in VARIANTS, f"copula: unknown variant {self.variant!r}, choose one of {VARIANTS}")
        require(0.0 < self.share < 1.0, f"copula: share must lie strictly between 0 and 1, got {self.share}")

    @property
    def needed(self) -> int:
        """Rows such that the marginals can show a score above the 1 - alpha quantile."""
        return int(np.ceil(1.0 / self.alpha / min(self.share, 1.0 - self.share)))

    def start(self, residuals: Array) -> CopulaState:
        """Half-widths from the calibration residuals (m, N)."""
        scores = np.abs(residuals)
        if self.variant == "kde":
            return CopulaState(kde_radii(scores, self.alpha))
        return CopulaState(copula_radii(scores, self.alpha, self.share, self.steps, self.seed))

    def radii(self, state: CopulaState, residuals: Array) -> tuple[tuple[Array, ...], CopulaState]:
        """The same half-widths at every step."""
        return (np.broadcast_to(state.radius, (len(residuals) + 1, len(state.radius))),), state

    def shape(self, state: CopulaState, parameters: tuple[Array, ...], mean: Array) -> IntervalBox:
        """Boxes around the means; the authors count a score equal to the half-width as a miss."""
        return IntervalBox(mean - parameters[0], mean + parameters[0], closed=self.variant == "kde")


def CopulaCPTS(
    variant: str = "authors",
    *,
    alpha: float = 0.1,
    share: float = 0.6,
    steps: int = 800,
    seed: int = 0,
    **row: Unpack[RowOptions],
) -> JointPredictor:
    """CopulaCPTS (Sun and Yu): `variant="authors"`, or "kde" for the construction in the paper's text.

    >>> row = CopulaCPTS(alpha=0.2)
    >>> row.filter.rule.share, row.alpha
    (0.6, 0.2)
    """
    rule = CopulaRule(variant, alpha, share, steps, seed)
    name = "copula" if variant == "authors" else f"copula-{variant}"
    return published(rule, name, **row)
