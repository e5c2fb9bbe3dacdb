"""ResCP: past scores count by how alike the moments before them were, told by the states of a random reservoir.

    h_{t+1} = (1 - leak) h_t + leak tanh(W h_t + a x_t + b),    x_t = log score, centred, in spreads,

with W, a, b drawn once. The score that came after h_s has the weight exp(cos(h, h_s) / temperature) when h is the
present state, and the radius is the 1 - alpha quantile of the last scores under these weights. Nothing is trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import GUARD, calibration_scores, order_statistic
from jointset.calibration.sequence import Stepwise
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

UNITS, RADIUS, LEAK = 24, 0.9, 0.5  # size of the reservoir, spectral radius of W, leak
TEMPERATURES = (0.03, 0.1, 0.3, 1.0, 100.0)  # that are tried; the last: all scores alike
LEAST, FURTHEST = -50.0, 4.0  # log of a score of 0, and spreads that a score may be away


@storable
class ResCPState(NamedTuple):
    """The last scores (M,) and the directions of the states before them (M, H), the oldest at `place`.

    `order` sorts the scores; then the present state (H,) and its direction, temperature, centre and spread of log
    scores.
    """

    scores: Array
    states: Array
    order: Array
    place: int
    present: Array
    direction: Array
    temperature: float
    centre: float
    spread: float


@storable
@dataclass(frozen=True)
class ResCP(Stepwise[ResCPState]):
    """Quantile of past scores weighed by likeness of reservoir states (after Neglia et al. 2025; see the module).

    `temperature` None: the one of TEMPERATURES with the smallest pinball loss of log radii on the second half of the
    calibration scores, from the first. The radius is finite: at most the largest of the last `lookback` scores.

    >>> rule, rng = ResCP(), np.random.default_rng(0)
    >>> size = np.tile(np.repeat([1.0, 9.0], 20), 50)
    >>> radii, _ = rule.run(rule.start(rng.chisquare(9, 1000) * size[:1000]), rng.chisquare(9, 1000) * size[1000:])
    >>> bool(np.median(radii[size[1000:] == 9]) > 3 * np.median(radii[size[1000:] == 1]))
    True
    """

    alpha: float = 0.1
    temperature: float | None = None
    lookback: int = 500
    seed: int = 0
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.temperature is None or self.temperature > 0, f"temperature must be > 0, got {self.temperature}")
        require(self.lookback >= 1, f"lookback must be 1 score or more, got {self.lookback}")

    def start(self, scores: Array) -> ResCPState:
        """State after the calibration scores (m,), in order of time."""
        values = calibration_scores(scores)
        require(len(values) > 0, "rescp needs calibration scores: there are none")
        logs = np.array([_log(value) for value in values.tolist()])
        centre, upper = (order_statistic(np.sort(logs), p) for p in (0.5, 1.0 - self.alpha / 2.0))
        spread = max(upper - centre, 0.01)
        h, states = np.zeros(UNITS), np.empty((len(values), UNITS))
        for t, x in enumerate(logs.tolist()):
            states[t] = _direction(h)
            h = _moved(h, (x - centre) / spread, self.seed)
        chosen = self.temperature or self._chosen(logs, states)
        values, states = values[-self.lookback :].copy(), states[-self.lookback :]
        order = np.argsort(values, kind="stable")
        return ResCPState(values, states, order, 0, h, _direction(h), chosen, centre, spread)

    def radius(self, state: ResCPState) -> float:
        """Weighted quantile of the last scores."""
        likeness = (state.states @ state.direction)[state.order]
        sums = np.exp((likeness - 1.0) / state.temperature).cumsum()
        place = int(sums.searchsorted((1.0 - self.alpha - GUARD) * sums[-1]))
        return float(state.scores[state.order[min(place, len(sums) - 1)]])

    def _after(self, state: ResCPState, score: float) -> ResCPState:
        return self._learned(state, score, state.scores.copy(), state.states.copy())

    def run(self, state: ResCPState, scores: Array) -> tuple[Array, ResCPState]:
        """Radii (T,) and the state after the last score."""
        radii = np.empty(len(scores))
        kept, states = state.scores.copy(), state.states.copy()
        for t, score in enumerate(np.asarray(scores, dtype=float).tolist()):
            radii[t] = self.radius(state)
            if score == score:
                state = self._learned(state, score, kept, states)
        return radii, state

    def _learned(self, state: ResCPState, score: float, scores: Array, states: Array) -> ResCPState:
        """State after a score; that and the state before it take the place of the oldest, in these arrays."""
        place, rest = state.place, state.order[state.order != state.place]
        at = int(scores[rest].searchsorted(score))
        scores[place], states[place] = score, state.direction
        order = np.empty_like(state.order)
        order[:at], order[at], order[at + 1 :] = rest[:at], place, rest[at:]
        h = _moved(state.present, (_log(score) - state.centre) / state.spread, self.seed)
        return ResCPState(scores, states, order, (place + 1) % len(scores), h, _direction(h), *state[6:])

    def _chosen(self, logs: Array, states: Array) -> float:
        """The temperature with the smallest pinball loss of log radii on the second half, from the first."""
        half = len(logs) // 2
        if half < math.ceil(1.0 / self.alpha):
            return TEMPERATURES[-1]
        first = slice(max(half - self.lookback, 0), half)
        order = np.argsort(logs[first], kind="stable")
        likeness, ordered = states[half:] @ states[first][order].T - 1.0, logs[first][order]
        losses = []
        for temperature in TEMPERATURES:
            sums = np.cumsum(np.exp(likeness / temperature), axis=1)
            places = (sums < (1.0 - self.alpha) * sums[:, -1:]).sum(axis=1)
            over = logs[half:] - ordered[np.minimum(places, len(ordered) - 1)]
            losses.append(float(np.maximum((1.0 - self.alpha) * over, -self.alpha * over).mean()))
        return TEMPERATURES[int(np.argmin(losses))]


def _log(score: float) -> float:
    """Logarithm of a score within bounds."""
    return min(max(math.log(score), LEAST), -LEAST) if score > 0.0 else LEAST


def _direction(h: Array) -> Array:
    return h / (math.sqrt(float(h @ h)) + 1e-300)


def _moved(h: Array, x: float, seed: int) -> Array:
    """The reservoir after an input."""
    W, a, b = _reservoir(seed)
    return (1.0 - LEAK) * h + LEAK * np.tanh(W @ h + a * min(max(x, -FURTHEST), FURTHEST) + b)


@lru_cache(maxsize=8)
def _reservoir(seed: int) -> tuple[Array, Array, Array]:
    """W (H, H) of the spectral radius asked for, input weights and shifts (H,), uniform in [-1, 1] before."""
    rng = np.random.default_rng(seed)
    W, a, b = (rng.uniform(-1.0, 1.0, shape) for shape in ((UNITS, UNITS), UNITS, UNITS))
    return W * (RADIUS / np.abs(np.linalg.eigvals(W)).max()), a, 0.2 * b
