"""Strongly adaptive online conformal prediction (SAOCP): SF-OGD learners born at every step, each with a life time.

The order of the sums is that of the authors: a learner starts at the mixture, so that rounding decides its first sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores
from jointset.calibration.sequence import Stepwise, replay
from jointset.calibration.sfogd import radius_scale, require_scale
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

LARGEST = 1e300  # an infinite score counts as this one: losses must have differences
TINY = 1e-300  # in place of no squares at all, where there is no gradient either


@storable
class SAOCPState(NamedTuple):
    """Learners (8, K) by rows prior, life, age, radius x, sums z and y of bets, squared gradients, bet w; then counts.

    `mixed` is the radius of the mixture, `scale` is D.
    """

    learners: Array
    mixed: float
    scale: float
    steps: int


@storable
@dataclass(frozen=True)
class SAOCP(Stepwise[SAOCPState]):
    """Mixture of SF-OGD learners weighted by coin betting on what each saves (Bhatnagar et al. 2023).

    At step t the mixture is issued, learners past their life leave, and one is born at the mixture with the life
    `lifetime` times the largest power of two that divides t. Each has the weight prior x max(0, w) with the bet
    w = (z / age)(1 + y) on its normalised savings, all the prior where no w is positive. D, `scale` and the replay of
    the calibration scores are those of `SFOGD`. The radius is finite and 0 or more.

    >>> rule = SAOCP(alpha=0.5, scale=3**0.5)
    >>> rule.run(rule.start(np.empty(0)), np.array([2.0, 2.0, 0.5]))[0].round(3)
    array([0.  , 1.  , 1.74])
    """

    alpha: float = 0.1
    lifetime: int = 8
    scale: float | None = None
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.lifetime >= 1, f"lifetime must be 1 step or more, got {self.lifetime}")
        require_scale(self.scale)

    def start(self, scores: Array) -> SAOCPState:
        """State after the calibration scores (m,)."""
        values = calibration_scores(scores)
        return replay(self, SAOCPState(np.empty((8, 0)), 0.0, radius_scale(self.scale, values), 0), values)[1]

    def radius(self, state: SAOCPState) -> float:
        """The mixture of the learners, 0 before the first."""
        return state.mixed

    def _after(self, state: SAOCPState, score: float) -> SAOCPState:
        score = min(max(score, -LARGEST), LARGEST)
        level, learners = 1.0 - self.alpha, self._renewed(state)
        prior, _, age, x, z, y, squares, bets = learners
        shares = prior / np.add.accumulate(prior)[-1]
        mixed = _mixture(shares, bets, x)
        meta = max(level * (score - mixed), (1.0 - level) * (mixed - score))
        below = score - x
        saved = (meta - np.maximum(level * below, (level - 1.0) * below)) / state.scale / level
        saved = np.minimum(np.maximum(saved, -1.0 * (bets > 0.0)), 1.0)
        g = np.where(below > 0.0, -level, 1.0 - level) * (below != 0.0)
        squares += g * g
        x -= state.scale / math.sqrt(3.0) / np.sqrt(np.maximum(squares, TINY)) * g
        np.maximum(0.0, x, out=x)
        y += saved * bets
        z += saved
        age += 1.0
        np.multiply(z / age, 1.0 + y, out=bets)
        return SAOCPState(learners, _mixture(shares, bets, x), state.scale, state.steps + 1)

    def _renewed(self, state: SAOCPState) -> Array:
        """A copy of the learners with one more, born at the mixture; those past their life have left."""
        t, old = state.steps + 1, state.learners
        kept = (old[2] <= old[1]).nonzero()[0]
        learners = np.empty((8, len(kept) + 1))
        learners[:, :-1] = old.take(kept, axis=1)
        born = 1.0 / (t * t * t.bit_length()), self.lifetime * (t & -t), 0.0, state.mixed
        learners[:, -1] = (*born, 0.0, 0.0, 0.0, 0.0)
        return learners


def _mixture(shares: Array, bets: Array, x: Array) -> float:
    """Mean of the radii weighted by shares of the prior and bets, summed one by one."""
    weights = shares * np.maximum(bets, 0.0)
    total = float(np.add.accumulate(weights)[-1])
    weights = weights / total if total > 0.0 else shares
    return float(np.add.accumulate(weights * x)[-1])
