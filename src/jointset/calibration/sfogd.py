"""Scale-free online gradient descent (SF-OGD): steps shrink with the gradients seen, no step size is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores
from jointset.calibration.sequence import Stepwise, replay
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable


@storable
class SFOGDState(NamedTuple):
    """The radius, the sum of squared gradients, and the largest radius D that the steps are made for."""

    tracked: float
    squares: float
    scale: float


@storable
@dataclass(frozen=True)
class SFOGD(Stepwise[SFOGDState]):
    """q <- max(0, q - D g_t / sqrt(3 sum g^2)), g_t the pinball subgradient (Bhatnagar et al. 2023).

    D is sqrt(3) times the largest finite calibration score, or `scale`, or 1 with neither. Calibration scores are
    replayed from q = 0 as ordinary steps. The radius is finite and 0 or more.

    >>> rule = SFOGD(alpha=0.5, scale=3**0.5)
    >>> rule.run(rule.start(np.empty(0)), np.array([2.0, 2.0, 0.5]))[0].round(3)
    array([0.   , 1.   , 1.707])
    """

    alpha: float = 0.1
    scale: float | None = None
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require_scale(self.scale)

    def start(self, scores: Array) -> SFOGDState:
        """State after the calibration scores (m,)."""
        values = calibration_scores(scores)
        return replay(self, SFOGDState(0.0, 0.0, radius_scale(self.scale, values)), values)[1]

    def radius(self, state: SFOGDState) -> float:
        """The tracked quantile."""
        return state.tracked

    def _after(self, state: SFOGDState, score: float) -> SFOGDState:
        if score == state.tracked:
            return state
        alpha = 1.0 - (1.0 - self.alpha)
        g = -(1.0 - self.alpha) if score > state.tracked else alpha
        squares = state.squares + g * g
        step = state.scale / math.sqrt(3.0) / math.sqrt(squares) * g
        return SFOGDState(max(0.0, state.tracked - step), squares, state.scale)


def require_scale(scale: float | None) -> None:
    """Refuse a scale that no radius can have."""
    require(scale is None or 0.0 < scale < math.inf, f"scale must be a positive finite radius or None, got {scale}")


def radius_scale(scale: float | None, scores: Array) -> float:
    """D: as given, or sqrt(3) times the largest finite score, or 1 where there is none above 0."""
    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    return scale if scale is not None else math.sqrt(3.0) * largest or 1.0
