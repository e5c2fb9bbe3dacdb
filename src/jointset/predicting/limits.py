"""Physical limits of readings: where bounds are shown they are cut off there; sets, scores and sizes stay."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require
from jointset.runs import Run


class Limits(NamedTuple):
    """The smallest and the largest reading there can be, of any sensor.

    >>> [end.tolist() for end in Limits(0.0).clip((np.array([-3.0]), np.array([5.0])))]
    [[0.0], [5.0]]
    """

    lowest: float = -math.inf
    highest: float = math.inf

    def clip(self, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        """Lower and upper ends of bands (..., N), none of them outside the limits; NaN stays."""
        return self.inside(bounds[0]), self.inside(bounds[1])

    def inside(self, values: Array) -> Array:
        """Values, none of them outside the limits; NaN stays."""
        return values if self is UNLIMITED else np.clip(values, self.lowest, self.highest)

    def of(self, run: Run) -> Run:
        """The run with its bounds cut off."""
        lower, upper = self.clip((run.lower, run.upper))
        return dataclasses.replace(run, lower=lower, upper=upper)


UNLIMITED = Limits()


def limits_asked(lowest: float | None, highest: float | None) -> Limits:
    """The limits of two options, either of which may be absent."""
    if lowest is None and highest is None:
        return UNLIMITED
    limits = Limits(-math.inf if lowest is None else lowest, math.inf if highest is None else highest)
    require(limits.lowest < limits.highest, f"--min {limits.lowest:g} must be below --max {limits.highest:g}")
    return limits
