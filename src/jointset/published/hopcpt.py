"""HopCPT: one interval a sensor from past residuals weighted by how much their contexts resemble the present one.

The interval runs from the alpha / 2 to the 1 - alpha / 2 quantile of the residuals in memory under the attention
weights (the deterministic `cdf` mode). The memory is the last m residuals and moves with every step; the attention is
trained once, at calibration. Each sensor has its own model and level alpha, so the box covers all sensors at once far
less often than 1 - alpha; `bonferroni=True` takes alpha / N a sensor instead.

Reference: Auer, Gauch, Klotz and Hochreiter, "Conformal prediction for time series with modern Hopfield networks",
NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jointset.calibration.shared_level import AnyRule
from jointset.contracts import Array, MeanModel
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import published
from jointset.published.hopfield import Attention, attended_intervals, train
from jointset.published.sets import IntervalBox
from jointset.storage import storable


@storable
class HopCPTState(NamedTuple):
    """The memory (m, N) of residuals and the trained attention."""

    memory: Array
    attention: Attention


@storable
@dataclass(frozen=True)
class HopCPTRule:
    """Settings of HopCPT and its sets."""

    alpha: float = 0.1
    window: int = 64  # residuals in a context
    updates: int = 1000  # of the optimiser; the paper has 10,000, which cover less
    bonferroni: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.window >= 1, f"hopcpt: window must be at least 1, got {self.window}")
        require(self.updates >= 0, f"hopcpt: updates must be at least 0, got {self.updates}")

    @property
    def needed(self) -> int:
        """A context and as many pairs as show the outer quantiles."""
        return self.window + int(np.ceil(2.0 / self.alpha))

    def start(self, residuals: Array) -> HopCPTState:
        """Train on the calibration residuals (m, N), which are also the first memory."""
        return HopCPTState(residuals, train(residuals, self.window, self.updates, self.seed))

    def radii(self, state: HopCPTState, residuals: Array) -> tuple[tuple[Array, ...], HopCPTState]:
        """Lower and upper ends (T + 1, N) relative to the mean."""
        m, n = state.memory.shape
        alpha = self.alpha / n if self.bonferroni else self.alpha
        q = np.array([0.5 * alpha, 1.0 - 0.5 * alpha])
        series = np.concatenate([state.memory, residuals])
        ends = np.stack([attended_intervals(state.attention, i, series[:, i], m, q) for i in range(n)], axis=1)
        return (ends[..., 0], ends[..., 1]), HopCPTState(series[len(residuals) :], state.attention)

    def shape(self, state: HopCPTState, parameters: tuple[Array, ...], mean: Array) -> IntervalBox:
        """Boxes around the means, not symmetric in general."""
        return IntervalBox(mean + parameters[0], mean + parameters[1])


def HopCPT(
    *,
    alpha: float = 0.1,
    window: int = 64,
    updates: int = 1000,
    bonferroni: bool = False,
    seed: int = 0,
    backbone: MeanModel | None = None,
    wrap: AnyRule | None = None,
    warmup: int = 50,
    standardize: bool = True,
) -> JointPredictor:
    """HopCPT (Auer et al.), a sensor at a time.

    The attention is trained for 1,000 updates, where the paper that compares it has 10,000 (`updates=10_000`). More of
    them fit the calibration residuals, which are the memory too, and lose coverage later: `docs/fidelity.md`.

    >>> HopCPT(window=8).filter.rule.needed
    28
    """
    rule = HopCPTRule(alpha, window, updates, bonferroni, seed)
    name = "hopcpt"
    return published(rule, name, backbone, wrap=wrap, warmup=warmup, standardize=standardize)
