"""Chi-square laws and the largest of several: tails, quantiles, and the point of one law at the tail of another."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jointset.contracts import Array

MANY = 64  # points from which on steps of Halley pay
LOWEST = 0.999  # tails above are left to SciPy, as close to 1 they say little of the point
SETTLED = 1e-5  # of the spread of a law: after a step so small the error, its third power, is none


def chi_square_quantile(freedom: Array | float, level: Array | float) -> Array:
    """Quantile of the chi-square law with this many degrees of freedom, which need not be whole."""
    from scipy.special import gammainccinv  # here, so that importing jointset stays fast

    return 2.0 * gammainccinv(np.asarray(freedom) / 2.0, 1.0 - level)


def tail_of_largest(freedom: Array, x: Array) -> Array:
    """P(largest of independent chi-squares with these degrees of freedom (..., G) > x); those with none are 0."""
    from scipy.special import gammaincc  # here, so that importing jointset stays fast

    beyond = np.where(freedom > 0, gammaincc(np.maximum(freedom, 1.0) / 2.0, 0.5 * np.asarray(x)[..., None]), 0.0)
    with np.errstate(divide="ignore"):
        return beyond[..., 0] if beyond.shape[-1] == 1 else -np.expm1(np.log1p(-beyond).sum(-1))


def quantile_of_largest(freedom: Array, tail: Array | float) -> Array:
    """The x (...) with `tail_of_largest(freedom, x) = tail`; of one block the chi-square quantile."""
    from scipy.special import gammainccinv  # here, so that importing jointset stays fast

    high = 2.0 * gammainccinv(0.5 * freedom.sum(-1), tail)  # the largest is at most the sum
    if freedom.shape[-1] == 1:
        return high
    low = np.zeros_like(high)
    for _ in range(52):
        middle = 0.5 * (low + high)
        beyond = tail_of_largest(freedom, middle) > tail
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return high


def quantile_of_each(freedom: Array, tail: float) -> Array:
    """`quantile_of_largest` at one tail; of single blocks once for each number of degrees."""
    if freedom.shape[-1] > 1 or not freedom.size:
        return quantile_of_largest(freedom, tail)
    if freedom.size == 1:  # one row, as live ones come
        return np.full(freedom.shape[:-1], _single_quantile(float(freedom.item()), tail))
    degrees, place = np.unique(freedom[..., 0], return_inverse=True)
    return np.array([_single_quantile(k, tail) for k in degrees.tolist()])[place].reshape(freedom.shape[:-1])


@lru_cache(maxsize=4096)
def _single_quantile(freedom: float, tail: float) -> float:
    """`quantile_of_largest` of one block, kept: rows of a stream ask for few."""
    return float(quantile_of_largest(np.array([[freedom]]), tail)[0])


def carried(x: Array, start: Array, goal: Array, tail: Array) -> Array:
    """Where laws with `goal` degrees (T, G) have the tails (T,) that those with `start` degrees have at x (T,).

    Of single blocks two steps of Halley from the points that the cube roots of Wilson and Hilferty name, a third of the
    time of SciPy's inverse; what is not settled by then is left to it.
    """
    if goal.shape[-1] > 1 or len(x) < MANY:
        return quantile_of_largest(goal, tail)
    from scipy.special import gammaincc, gammaln  # here, so that importing jointset stays fast

    k, n = start[:, 0], goal[:, 0]
    spread = np.sqrt(n / k)  # of cube roots: 1 - c + z sqrt(c), c = 2 / 9k
    shape, log_gamma = 0.5 * n, gammaln(0.5 * n)
    with np.errstate(all="ignore"):
        u = shape * (1.0 - 2.0 / (9.0 * n) + ((x / k) ** (1.0 / 3.0) - 1.0 + 2.0 / (9.0 * k)) / spread) ** 3
        for _ in range(2):
            step = (gammaincc(shape, u) - tail) / np.exp((shape - 1.0) * np.log(u) - u - log_gamma)
            step /= 1.0 - 0.5 * step * (1.0 - (shape - 1.0) / u)
            u = u + step
        settled = (tail < LOWEST) & (np.abs(step) < SETTLED * np.minimum(u, np.sqrt(shape)))
    rest = np.flatnonzero(~settled)
    found = 2.0 * u
    found[rest] = quantile_of_largest(goal[rest], tail[rest])
    return found
