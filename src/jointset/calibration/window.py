"""Adaptive window: the radius of the longest recent window whose newest scores the older ones do not refute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores
from jointset.calibration.sequence import Limited
from jointset.calibration.tails import tail_edge, tail_radius
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable, storable_not_finite


@storable_not_finite("recent", "pool")
class WindowState(NamedTuple):
    """The level alpha_t, the last scores in order of arrival, the window in use in ascending order, and counts."""

    level: float
    recent: Array
    pool: Array
    steps: int
    limited: int


@storable
@dataclass(frozen=True)
class Window(Limited[WindowState]):
    """ACI on a window chosen by tests of recent p-values.

    Every `every` scores the windows of `longest`, half of that, and so on down to `shortest` scores are tried in turn.
    The newest `newest` scores have p-values among the older ones of the window, uniform while nothing changes: a window
    is refuted where their mean is more than `threshold` standard errors (Mann and Whitney 1947) from one half. The
    first one that stands gives the radius at alpha_t, which moves as in `ACI`; past its scores by their fitted tail
    (`jointset.calibration.tails`), counted by `infinite_share`. The idea is that of SPACE; its code was not at hand.

    >>> rule = Window(alpha=0.5)
    >>> radii, state = rule.run(rule.start(np.arange(200.0) % 10), np.arange(1000) % 10 + 50.0)
    >>> radii[[0, -1]]
    array([ 5., 55.])
    """

    alpha: float = 0.1
    gamma: float = 0.005
    longest: int = 4096
    shortest: int = 32
    newest: int = 16
    every: int = 8
    threshold: float = 3.0
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.gamma >= 0.0, f"gamma must be 0 or more, got {self.gamma}")
        require(1 <= self.newest < self.shortest, f"newest must lie in [1, shortest), got {self.newest}")
        require(self.shortest <= self.longest, f"longest must be at least shortest, got {self.longest}")
        require(self.every >= 1, f"every must be 1 score or more, got {self.every}")
        require(self.threshold > 0.0, f"threshold must be positive, got {self.threshold}")

    def start(self, scores: Array) -> WindowState:
        """State after the calibration scores (m,)."""
        recent = calibration_scores(scores)[-self.longest :].copy()
        return WindowState(self.alpha, recent, self._window(recent), 0, 0)

    def radius(self, state: WindowState) -> float:
        """Radius at the present level."""
        return tail_radius(state.pool, min(state.level, 1.0 - 1.0 / (len(state.pool) + 1)))

    def _after(self, state: WindowState, score: float) -> WindowState:
        level = state.level + self.gamma * (self.alpha - (score > self.radius(state)))
        recent = np.append(state.recent, score)[-self.longest :]
        steps = state.steps + 1
        pool = state.pool if steps % self.every else self._window(recent)
        limited = state.limited + (state.level < tail_edge(len(state.pool)))
        return WindowState(min(level, 1.0), recent, pool, steps, limited)

    def _window(self, recent: Array) -> Array:
        """Sorted scores of the longest window that is not refuted."""
        size, newest = len(recent), recent[-self.newest :]
        while size >= 2 * self.shortest and refuted(recent[-size : -self.newest], newest, self.threshold):
            size = max(size // 2, self.shortest)
        return np.sort(recent[len(recent) - size :])


def refuted(older: Array, newest: Array, threshold: float) -> bool:
    """Whether the mean p-value of the newest scores among the older ones is too far from one half.

    >>> refuted(np.arange(100.0), np.array([10.0, 50.0, 90.0]), 3.0), refuted(np.arange(100.0), np.full(9, 99.0), 3.0)
    (False, True)
    """
    ordered = np.sort(older)
    ties = ordered.searchsorted(newest, "left") + ordered.searchsorted(newest, "right")
    mean = float(ties.mean()) / (2 * len(older))
    variance = (len(older) + len(newest) + 1) / (12 * len(older) * len(newest))
    return bool(abs(mean - 0.5) > threshold * math.sqrt(variance))
