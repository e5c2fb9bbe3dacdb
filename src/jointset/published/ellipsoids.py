"""Covariances of MultiDimSPCI: the local and shrunk forms of the sample covariance, and the ridge."""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array
from jointset.residuals.shrinkage import is_singular, ridge_of

LOCAL_SHARE = 0.95  # weight of the neighbours' covariance, the rest is the global one


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


def invertible(covariance: Array, name: str = "multidim-spci") -> tuple[Array, float]:
    """The covariance and the ridge that was added to its diagonal (with a warning): 0 unless it is singular.

    Duplicate sensors, or fewer residuals than sensors, need one: `jointset.residuals.shrinkage`.
    """
    covariance = np.atleast_2d(covariance)
    if not is_singular(covariance):
        return covariance, 0.0
    ridge = ridge_of(float(np.mean(np.diag(covariance))), name)
    return covariance + ridge * np.eye(len(covariance)), ridge
