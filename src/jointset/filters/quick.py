"""The pool of the instant experts: seconds on a CPU, nothing trained."""

from __future__ import annotations

from jointset.backbones.var import DENSE
from jointset.filters.kalman import GraphLGSSM
from jointset.filters.pool import PooledFilter
from jointset.filters.residual import ResidualFilter
from jointset.filters.var import VARFilter
from jointset.residuals.shapes import EWMA


def quick() -> PooledFilter:
    """The vector autoregression with moving scales, the graph autoregression with an EWMA covariance, and Kalman."""
    plain = ResidualFilter(shape=EWMA(half_life=500.0), name="ewma")
    return PooledFilter((VARFilter(), plain, GraphLGSSM(tune=True)), alone_above=DENSE)
