"""Static covariance: the graph autoregression as mean and one covariance of its residuals for all steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from jointset.contracts import Array
from jointset.filters.residual import ResidualFilter
from jointset.residuals.shapes import Constant
from jointset.storage import storable


@storable
@dataclass(frozen=True)
class StaticFilter(ResidualFilter):
    """Reference row: the mean follows the data, the shape never does (covariance of the training residuals)."""

    shape: Constant = field(default_factory=Constant)

    @property
    def covariance(self) -> Array | None:
        """The covariance (N, N), None before `fit`."""
        return self.shape.covariance
