"""SPCI: one interval a sensor from the conditional quantiles of its signed residuals, put together as a box.

The shortest of five intervals between a beta and a 1 - alpha + beta quantile of the residual given its past, from a
quantile forest on the last w residuals (`forest`) or plainly from the last w residuals (`empirical`). The authors
predict one series; here every sensor is one, each at level alpha, so the box covers all sensors at once far less often
than 1 - alpha. `bonferroni=True` takes alpha / N a sensor instead.

Reference: Xu and Xie, "Sequential predictive conformal inference for time series", ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import IntervalRule, RowOptions, published
from jointset.published.forest import ForestSettings, ForestState, forest_intervals
from jointset.published.multidim import DEPTH, REFIT, TREES
from jointset.published.shortest_intervals import sliding_intervals
from jointset.storage import storable
from jointset.support.how_far import each

WINDOWS = {"forest": 10, "empirical": 100}


@storable
class SPCIState(NamedTuple):
    """The last residuals (n, N) and, for the forest, a ForestState a sensor."""

    recent: Array
    forests: tuple[Any, ...]


@storable
@dataclass(frozen=True)
class SPCIRule(IntervalRule):
    """Settings of SPCI and its sets."""

    variant: str = "forest"
    alpha: float = 0.1
    window: int | None = None  # by default 10 (forest) or 100 (empirical)
    refit: int = REFIT
    bonferroni: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        known = ", ".join(WINDOWS)
        require(self.variant in WINDOWS, f"spci: unknown variant {self.variant!r}, choose one of {known}")
        require(self.lags >= 1, f"spci: window must be at least 1, got {self.window}")
        require(self.refit >= 1, f"spci: refit must be at least 1, got {self.refit}")

    @property
    def lags(self) -> int:
        """Length of the window."""
        return WINDOWS[self.variant] if self.window is None else self.window

    @property
    def needed(self) -> int:
        """A window of residuals, and for the forest as many pairs as show the outer quantiles."""
        return self.lags + (int(np.ceil(2.0 / self.alpha)) if self.variant == "forest" else 0)

    def start(self, residuals: Array) -> SPCIState:
        """The last residuals, or all of them for the forests."""
        if self.variant == "empirical":
            return SPCIState(residuals[-self.lags :], ())
        return SPCIState(residuals[-1:], tuple(ForestState(column, 0, None) for column in residuals.T))

    def radii(self, state: SPCIState, residuals: Array) -> tuple[tuple[Array, ...], SPCIState]:
        """Lower and upper ends (T + 1, N) relative to the mean."""
        n = state.recent.shape[1]
        lower, upper = np.empty((2, len(residuals) + 1, n))
        alpha = self.each(n)
        forests = list(state.forests)
        for i in each(range(n)):
            if forests:
                settings = ForestSettings(alpha, self.lags, TREES, DEPTH, self.refit, self.seed + i)
                lower[:, i], upper[:, i], _, forests[i] = forest_intervals(forests[i], residuals[:, i], settings)
            else:  # whole per cents are too coarse for alpha / N
                past, new = state.recent[:, i], residuals[:, i]
                lower[:, i], upper[:, i], _ = sliding_intervals(past, new, alpha, rounded=not self.bonferroni)
        recent = np.concatenate([state.recent, residuals])[len(residuals) :]
        return (lower, upper), SPCIState(recent, tuple(forests))


def SPCI(
    variant: str = "forest",
    *,
    alpha: float = 0.1,
    window: int | None = None,
    refit: int = REFIT,
    bonferroni: bool = False,
    seed: int = 0,
    **row: Unpack[RowOptions],
) -> JointPredictor:
    """SPCI (Xu and Xie), a sensor at a time: `variant` is "forest" (the authors') or "empirical".

    >>> SPCI(bonferroni=True).filter.rule.lags
    10
    """
    rule = SPCIRule(variant, alpha, window, refit, bonferroni, seed)
    name = "spci" if variant == "forest" else f"spci-{variant}"
    return published(rule, name, **row)
