"""The pool of the instant experts: seconds on a CPU, nothing trained."""

from __future__ import annotations

from typing import Any

from jointset.backbones.var import DENSE
from jointset.contracts import Filter
from jointset.filters.bounded import BoundedFilter
from jointset.filters.kalman import GraphLGSSM
from jointset.filters.pool import PooledFilter
from jointset.filters.residual import ResidualFilter
from jointset.filters.var import VARFilter
from jointset.residuals.correlations import FactorCorrelations, FactorShape
from jointset.residuals.shapes import EWMA

SHRINK = 0.001  # of the EWMA covariance: more would hide that a sensor is the sum of others, or one of them again
FARTHEST = 20.0  # standard deviations that a residual counts for in it: one glitch would widen it for days


def quick() -> PooledFilter:
    """The instant experts alone."""
    return PooledFilter(experts(), alone_above=DENSE)


def experts(*, low_rank: bool = False) -> tuple[Filter[Any], ...]:
    """The vector autoregression with moving scales, the graph autoregression with an EWMA covariance, and Kalman.

    With laws of low rank: the first two, with a few fixed factors.
    """
    shape = FactorShape() if low_rank else EWMA(half_life=500.0, shrink=SHRINK, farthest=FARTHEST)
    plain = BoundedFilter(ResidualFilter(shape=shape, name="ewma"))
    if low_rank:
        return VARFilter(FactorCorrelations()), plain
    return VARFilter(), plain, BoundedFilter(GraphLGSSM(tune=True))
