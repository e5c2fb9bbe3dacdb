"""CONTINA's rule: the level of ACI with steps of an own size, on the scores of a window that slides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jointset.calibration.pool import ScorePool, inside, slide, start_pool
from jointset.calibration.quantiles import calibration_scores, score_quantile
from jointset.calibration.sequence import Limited, at_edge
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

CLIP = (0.01, 0.99)  # of the level, and the constants below: those of the authors' code
DECAY, TINY = 0.99, 1e-8


@storable
class ContinaState(NamedTuple):
    """The level, the last scores, the moving mean of squared gradients, and counts."""

    level: float
    pool: ScorePool
    square: float
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class Contina(Limited[ContinaState]):
    """theta_{t+1} = theta_t + lr g_t / sqrt(v_t), g_t = alpha - miss_t (Yang, Huang, Qiu and Cheng 2025).

    v_t is the moving mean of g^2 (rate 0.01, corrected for its start at 0), theta stays in [0.01, 0.99], and the
    radius is the 1 - theta quantile (linear) of as many last scores as there were calibration scores. With
    `adaptive=False` steps are lr g_t: ACI on that window. Theirs has a level for each region; this is the rule for one
    score.

    >>> import numpy as np
    >>> rule = Contina(alpha=0.5, lr=0.1)
    >>> rule.run(rule.start(np.arange(5.0)), np.array([4.0, 4.0, 0.0]))[0].round(4)
    array([2. , 3.4, 4. ])
    """

    alpha: float = 0.1
    lr: float = 0.005
    adaptive: bool = True
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.lr >= 0.0, f"lr must be 0 or more, got {self.lr}")

    def start(self, scores: Array) -> ContinaState:
        """State after the calibration scores (m,), in order of time."""
        values = calibration_scores(scores)
        require(len(values) > 0, "contina needs calibration scores: there are none")
        return ContinaState(self.alpha, start_pool(values, "rolling", len(values)), 0.0, 0, 0)

    def radius(self, state: ContinaState) -> float:
        """Quantile of the window at the present level."""
        return inside(state.pool, score_quantile(state.pool.scores, state.level, "linear"))

    def _after(self, state: ContinaState, score: float) -> ContinaState:
        gradient, steps = self.alpha - (score > self.radius(state)), state.steps + 1
        square = DECAY * state.square + (1.0 - DECAY) * gradient**2
        size = math.sqrt(square / (1.0 - DECAY**steps)) + TINY if self.adaptive else 1.0
        level = min(max(state.level + self.lr * gradient / size, CLIP[0]), CLIP[1])
        limited = state.limited + at_edge(state.level, CLIP)
        return ContinaState(level, slide(state.pool, score, len(state.pool.recent)), square, steps, limited)
