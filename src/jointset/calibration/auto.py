"""Auto: the radius without settings, one that follows drift, is calm without it, and is always finite and positive.

Everything happens on the logarithm x of the scores. Each of six trackers divides the scores by their own recent size,
the exponential mean of x over a time scale of 4 to 1024 steps, or over the calibration block, and adds the
split-conformal quantile of what is left: the slowest is `Split`. They are mixed by exponential weights on the pinball
loss, of which a small share is always spread evenly, so that a quicker one takes over within a few steps of a jump. The
calibration block, in order of time, sets quantiles and weights: on exchangeable scores the slowest has nearly all.

On top comes a push that depends on E, the misses so far beyond alpha a step, and on r, the exponential mean of the last
30 or so misses:

    log radius = mixture + gain (E_0 sinh(calm(E) / E_0) + calm(60 (r - alpha))),    calm(x) = x^3 / (x^2 + 4^2).

A few misses more or less, which are chance, hardly count; beyond them the first term is ACI's feedback (a miss moves
the level by about 0.0075), and far away it grows without end. calm(x) is at least x - 2, so where scores lie within a
factor e^R of the mixture, E stays below E_0 asinh(R / (gain E_0) + 12 alpha) + 3, and the miss rate of T steps, of any
sequence, is at most that over T above alpha. Downwards E ends at -6 E_0.

Scores of 0 can be missed by no set: they, and those that are nothing beside the calibration scores (by e^-DEPTH), say
nothing, and leave everything as it is. Else a network that stands still for a while would take trackers and E with it,
and the reading after that would meet a set without measure. So the miss rate is that of the other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from jointset.calibration.quantiles import calibration_scores, least_telling, order_statistic
from jointset.calibration.sequence import Limited
from jointset.calibration.tails import tail_quantile
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.storage import storable

# Chosen on simulated series and on validation blocks of the real cells; docs/drift.md says what test blocks prompted.
RATES = (1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 1024, 0.0)
LEARNING = 2.0  # of the weights, for losses in units of the spread
SHARED = 0.001  # of all weight, spread evenly at every step
FEEDBACK = 0.0075  # change of the level by a miss, as ACI's gamma
PROMPT, MEMORY = 60.0, 1 / 30  # misses that the recent miss rate counts for, and the rate of its mean
CALM = 4.0  # misses too many, or too few, from which they count
TURN = 5.0  # E_0: misses too many from which the push grows faster than linearly
LOWEST, HIGHEST = -6.0, 16.0  # bounds of E / E_0
JUMP = 3.0  # a score further away than so many spreads counts as so far
FAR = 600.0  # bound of logarithms: floats end at 709


@storable
class AutoState(NamedTuple):
    """Per tracker: log size, log quantile above it, gain of the push, weight. Then spread of x, E, r and counts.

    A score whose logarithm is below `least` says nothing.
    """

    sizes: tuple[float, ...]
    quantiles: tuple[float, ...]
    gains: tuple[float, ...]
    weights: tuple[float, ...]
    spread: float
    excess: float
    recent: float
    steps: int
    limited: int
    least: float = -math.inf


@storable
@dataclass(frozen=True)
class Auto(Limited[AutoState]):
    """Log radius = mixture of trackers over six time scales, and a push by the misses so far (see the module).

    A radius may pass every calibration score and needs no ceiling; with too few of them for alpha the quantiles come
    from the fitted tail of `jointset.calibration.tails`. `infinite_share` counts the steps at which E met its bounds.

    >>> rule, rng = Auto(), np.random.default_rng(0)
    >>> state = rule.start(rng.chisquare(30, 1000))
    >>> scores = rng.chisquare(30, 1000) * np.repeat([1.0, 4.0], 500)
    >>> radii, state = rule.run(state, scores)
    >>> bool(radii.max() < np.inf), float((scores <= radii).mean().round(2)), rule.infinite_share(state)
    (True, 0.9, 0.0)
    """

    alpha: float = 0.1
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def start(self, scores: Array) -> AutoState:
        """State after the calibration scores (m,), in order of time."""
        values = calibration_scores(scores)
        require(len(values) > 0, "auto needs calibration scores: there are none")
        x = np.array([_log(value) for value in values.tolist()])
        least = least_telling(x, self.alpha, -FAR)
        x = x[x >= least]
        upper, centre, lower = (order_statistic(np.sort(x), p) for p in (1 - self.alpha / 2, 0.5, (1 - self.alpha) / 2))
        spread = max(upper - lower, 0.01)
        sizes = _tracked(x, centre, JUMP * spread)
        left = np.sort(x[:, None] - sizes[:-1], axis=0)
        quantiles = tuple(math.log(tail_quantile(np.exp(column.clip(-FAR, FAR)), self.alpha)) for column in left.T)
        gains = tuple(FEEDBACK * self._inverse_density(column, spread) for column in left.T)
        weights = (1.0 / len(RATES),) * len(RATES)
        for own, one in zip((sizes[:-1] + quantiles).tolist(), x.tolist(), strict=True):
            weights = self._weigh(weights, own, one, spread)
        return AutoState(tuple(sizes[-1].tolist()), quantiles, gains, weights, spread, 0.0, self.alpha, 0, 0, least)

    def radius(self, state: AutoState) -> float:
        """The radius, finite and above 0."""
        logs, push = 0.0, 0.0
        for size, quantile, gain, weight in zip(*state[:4], strict=True):
            logs += weight * (size + quantile)
            push += weight * gain
        recent = calm(PROMPT * (state.recent - self.alpha), CALM)
        logs += push * (TURN * math.sinh(calm(state.excess, CALM) / TURN) + recent)
        return math.exp(min(max(logs, -FAR), FAR))

    def update(self, state: AutoState, score: float, lift: float = 1.0) -> AutoState:
        """State after one score; NaN or nothing leaves it as it is. The set had `lift` times the radius."""
        return state if math.isnan(score) else self._after(state, score, lift)

    def _after(self, state: AutoState, score: float, lift: float = 1.0) -> AutoState:
        if (x := _log(score)) < state.least:
            return state
        jump = JUMP * state.spread
        own = [size + quantile for size, quantile in zip(state.sizes, state.quantiles, strict=True)]
        miss = score > lift * self.radius(state)
        excess = state.excess + miss - self.alpha
        bounded = min(max(excess, LOWEST * TURN), HIGHEST * TURN)
        return AutoState(
            tuple(size + rate * min(max(x - size, -jump), jump) for size, rate in zip(state.sizes, RATES, strict=True)),
            state.quantiles,
            state.gains,
            self._weigh(state.weights, own, x, state.spread),
            state.spread,
            bounded,
            state.recent + MEMORY * (miss - state.recent),
            state.steps + 1,
            state.limited + (bounded != excess),
            state.least,
        )

    def _weigh(self, weights: tuple[float, ...], own: list[float], x: float, spread: float) -> tuple[float, ...]:
        """Weights after a score: exponential in the pinball losses of log radii, a share of all spread evenly."""
        mixed = sum(map(float.__mul__, weights, own))
        x = min(max(x, mixed - 2.0 * JUMP * spread), mixed + 2.0 * JUMP * spread)
        up, down = -LEARNING * (1.0 - self.alpha) / spread, -LEARNING * self.alpha / spread
        moved = [
            weight * math.exp(up * (x - one) if x > one else down * (one - x))
            for weight, one in zip(weights, own, strict=True)
        ]
        scale, even = (1.0 - SHARED) / sum(moved), SHARED / len(moved)
        return tuple([scale * weight + even for weight in moved])

    def _inverse_density(self, ordered: Array, spread: float) -> float:
        """1 / density of sorted values at their 1 - alpha quantile, by the slope of the quantiles around it."""
        half = min(self.alpha, 1.0 - self.alpha) / 2.0
        slope = order_statistic(ordered, 1.0 - self.alpha + half) - order_statistic(ordered, 1.0 - self.alpha - half)
        return min(max(slope / (2.0 * half), 0.1 * spread), 20.0 * spread)


def calm(excess: float, scale: float) -> float:
    """Little of an excess below the scale, which is chance; beyond it nearly all."""
    square = excess * excess
    return excess * square / (square + scale * scale)


def _log(score: float) -> float:
    """Logarithm of a score within bounds; those of 0 and below are at the lower one."""
    return min(max(math.log(score), -FAR), FAR) if score > 0.0 else -FAR


def _tracked(x: Array, centre: float, jump: float) -> Array:
    """Log sizes (m + 1, K) before every score, and after the last."""
    sizes, rates = np.full((len(x) + 1, len(RATES)), centre), np.array(RATES)
    for t, one in enumerate(x.tolist()):
        sizes[t + 1] = sizes[t] + rates * np.clip(one - sizes[t], -jump, jump)
    return sizes
