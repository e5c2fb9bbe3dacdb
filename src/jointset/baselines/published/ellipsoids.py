"""Covariances of MultiDimSPCI: the local and shrunk forms of the sample covariance, and the ridge."""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array

LOCAL_SHARE = 0.95  # weight of the neighbours' covariance, the rest is the global one
RIDGE = 1e-8  # share of the mean variance added to a covariance that cannot be inverted


def local_covariances(series: Array, m: int, neighbors: int, overall: Array) -> Array:
    """0.95 of the covariance of the residuals that resemble the present + 0.05 of the global one, (T + 1, N, N).

    Of residuals (m + 1 + T, N) the set after the first m + 1 + j looks at the last m: those whose predecessors are
    nearest to the very last residual, in Euclidean distance.
    """
    out = np.empty((len(series) - m, *overall.shape))
    for j in range(len(out)):
        before, after = series[j : j + m], series[j + 1 : j + m + 1]
        nearest = np.argsort(((before - series[j + m]) ** 2).sum(axis=1), kind="stable")[:neighbors]
        out[j] = LOCAL_SHARE * np.cov(after[nearest].T) + (1.0 - LOCAL_SHARE) * overall
    return out


def shrunk(covariance: Array, share: float) -> Array:
    """(1 - share) S + share sigma^2 I, with sigma^2 the mean variance."""
    n = len(covariance)
    return (1.0 - share) * covariance + share * np.trace(covariance) / n * np.eye(n)


def invertible(covariance: Array) -> tuple[Array, float]:
    """The covariance and the ridge that was added to its diagonal: 0 unless it is singular to working precision.

    Duplicate sensors, or fewer residuals than sensors, need one: 1e-8 of the mean variance.
    """
    covariance = np.atleast_2d(covariance)
    values = np.linalg.eigvalsh(covariance)
    if values[0] > 1e-12 * values[-1]:
        return covariance, 0.0
    ridge = float(RIDGE * np.trace(covariance) / len(covariance))
    return covariance + ridge * np.eye(len(covariance)), ridge
