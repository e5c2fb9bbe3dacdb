"""One level for several components: any calibration rule moves alpha_t, and each component gets its share of it.

At level a component j is held to the order statistic of level shares_j a of its own past scores. A reading with
component scores s lies in the set of level a exactly when a is at most

    level(s) = min_j beta_j / shares_j,    beta_j = 1 - #{pool_j < s_j} / (m + 1),

so 1 - level(s) is its score on the nominal scale, where the radius is 1 - a. The rule works on that scale: it starts
from the scores 1/M .. (M - 1)/M, for which its radius at alpha is 1 - alpha, so that a split rule gives the plain
Bonferroni set and ACI moves alpha_t as it always does. A rule for which the order of the calibration scores counts
(`ordered`) starts from those of the calibration rows themselves, so that its first set is theirs and not Bonferroni's.
Such a rule steers sizes, so it sees the size of the set of that level instead, the geometric mean of its radii. Its
scale goes on below the smallest of these sets, that of level 1, whose radii are then all multiplied by one factor.

Past 1 the scale goes on beyond the pools: a component score above all of its pool has the nominal score
s_j / max pool_j, and a nominal radius r > 1 holds every component to r max pool_j, an infinite one to nothing. So a
rule whose radius may exceed every past score (AgACI, PID) emits the set it believes in: `contains` is
`score <= radius` at every step.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, insort_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from jointset.abilities import expecting, follows_clock
from jointset.calibration.pool import ScorePool, slide, start_pool
from jointset.calibration.quantiles import GUARD, minimum_scores
from jointset.calibration.sequence import share, stepping, times_for
from jointset.calibration.split import Split
from jointset.contracts import Array, Calibration
from jointset.errors import require
from jointset.storage import storable

GRID = 10_000  # levels are multiples of 1e-4, where ACI clips them too
NOMINAL = np.arange(1, GRID) / GRID
LEVELS = np.arange(GRID + 1) / GRID
SMALLEST = 1e-9  # of the largest score of a component: one below counts as so large in a size
RISE = 1e-3  # of sizes from the first level to the last, where scores are tied
TIE = 1e-10  # a score equal to the radius on the nominal scale is outside


class Course(NamedTuple):
    """T steps of a rule: radii of the sets (T,) or (T, K), and score and radius of each as one number (T,)."""

    radii: Array
    score: Array
    radius: Array


Step = Callable[[list[float]], tuple[float, float]]  # component scores (K,) to score and radius as one number each


@storable
class SharedState(NamedTuple):
    """State of the rule, the pool of every component, and counts; the sizes that an ordered rule sees."""

    rule: object
    pools: tuple[ScorePool, ...]
    steps: int
    limited: int
    sizes: Array | None = None


Ending = Callable[[], tuple[Course, SharedState]]


@storable
@dataclass(frozen=True)
class SharedLevel:
    """A calibration rule for vectors of component scores (K,).

    `lookback` is that of `ACI`: the pools hold the calibration scores and the last so many test scores.
    `infinite_share` counts the steps at which a radius was at or past the largest score of its pool.
    """

    rule: Calibration[Any] = field(default_factory=Split)
    shares: tuple[float, ...] = (1.0,)
    lookback: int = 0

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.rule.alpha)

    @property
    def needed(self) -> int:
        """Smallest number of calibration scores for a finite radius in every component."""
        return minimum_scores(min(self.shares) * self.alpha)

    @property
    def follows_clock(self) -> bool:
        """Whether the radii depend on the time of the reading."""
        return follows_clock(self.rule)

    def expect(self, state: SharedState, when: int) -> SharedState:
        """The state when the next reading is known to come at this time."""
        rule = expecting(self.rule, state.rule, when)
        return state if rule is state.rule else state._replace(rule=rule)

    def start(self, scores: Array, times: Array | None = None) -> SharedState:
        """State after the calibration scores (m, K), which have these times where the rule follows the clock."""
        scores = np.asarray(scores, dtype=float)
        require(
            scores.ndim == 2 and scores.shape[1] == len(self.shares),
            f"calibration scores need shape (m, {len(self.shares)}), got {scores.shape}",
        )
        pools = tuple(start_pool(column, "frozen", self.lookback) for column in scores.T)
        if not getattr(self.rule, "ordered", False):
            return SharedState(self.rule.start(NOMINAL), pools, 0, 0)
        require(not self.lookback, f"{type(self.rule).__name__} follows the scores by itself: leave lookback out")
        sizes = self._sizes(pools)
        seen = self.score(SharedState(None, pools, 0, 0, sizes), scores)
        return SharedState(self.rule.start(seen, *times_for(self.rule, times)), pools, 0, 0, sizes)

    def radius(self, state: SharedState) -> float:
        """Radius on the scale of the rule: the nominal one, 1 - alpha_t, or the size of its set."""
        return float(self.rule.radius(state.rule))

    def radii(self, state: SharedState) -> Array:
        """Radii of the components (K,)."""
        return self._cut(state, np.array([self.radius(state)]))[0][0]

    def score(self, state: SharedState, scores: Array) -> Array:
        """Scores (T,) of component scores (T, K) on the scale of the rule.

        The nominal score is above 1 where a component exceeds every score of its pool.
        """
        score, scores = np.zeros(len(scores)), np.asarray(scores)
        for pool, part, column in zip(state.pools, self.shares, scores.T, strict=True):
            m = len(pool.scores)
            below = pool.scores.searchsorted(column)
            own = 1.0 - (1.0 - below / (m + 1)) / part + TIE
            score = np.maximum(score, np.where(below == m, _beyond(pool.scores[-1], column), own))
        return np.where(np.isnan(scores).any(axis=1), np.nan, self._seen(state, score, scores))

    def update(self, state: SharedState, scores: Array) -> SharedState:
        """State after the component scores (K,) of one step; NaN moves nothing but a clock."""
        if np.isnan(scores).any():
            return state._replace(rule=self.rule.update(state.rule, math.nan))
        seen = float(self.score(state, scores[None])[0])
        limited = bool(self._cut(state, np.array([self.radius(state)]))[1][0])
        rule = self.rule.update(state.rule, seen)
        pools = tuple(slide(pool, float(s), self.lookback) for pool, s in zip(state.pools, scores, strict=True))
        return SharedState(rule, pools, state.steps + 1, state.limited + limited, state.sizes)

    def run(self, state: SharedState, scores: Array, times: Array | None = None) -> tuple[Course, SharedState]:
        """Radii (T, K), nominal scores and radii (T,), and the state after the last step; `times` as in `start`."""
        if self.lookback:
            step, after = self.stepping(state)
            for row in np.asarray(scores, dtype=float).tolist():
                step(row)
            return after()
        score = self.score(state, scores)
        radius, rule = self.rule.run(state.rule, score, *times_for(self.rule, times))
        radii, limited = self._cut(state, radius)
        return Course(radii, score, radius), _counted(state._replace(rule=rule), score, limited)

    def stepping(self, state: SharedState, clock: Sequence[int] | None = None) -> tuple[Step, Ending]:
        """Row by row on plain numbers; `clock` has the times of the rows where the rule follows it.

        The first function takes the component scores (K,) of a row to its score and its radius on the scale of the
        rule, the second gives the course of all rows handed in and the state after them.
        """
        move, moved = stepping(self.rule, state.rule, clock)
        pools = [pool.scores.tolist() for pool in state.pools]
        recent = [deque(pool.recent.tolist()) for pool in state.pools]
        size = None if state.sizes is None else self._size(state, state.sizes)
        scores: list[float] = []
        levels: list[float] = []
        cuts: list[tuple[list[float], bool]] = []  # radii, and whether they were limited, where pools move

        def step(row: list[float]) -> tuple[float, float]:
            score = 0.0
            for pool, part, one in zip(pools, self.shares, row, strict=True):
                if one != one:
                    score = math.nan
                    break
                m, below = len(pool), bisect_left(pool, one)
                own = _past(pool[-1], one) if below == m else 1.0 - (1.0 - below / (m + 1)) / part + TIE
                if own > score:
                    score = own
            if size is not None and score == score:
                score = size(score, row)
            radius = move(score)
            scores.append(score)
            levels.append(radius)
            if self.lookback:
                cuts.append(self._radii_of(pools, radius))
                if score == score:
                    _slide(pools, recent, row, self.lookback)
            return score, radius

        def after() -> tuple[Course, SharedState]:
            score, radius, ended = np.array(scores), np.array(levels), state
            if self.lookback:
                radii, limited = np.array([cut for cut, _ in cuts]), np.array([bound for _, bound in cuts], dtype=bool)
                kept = zip(pools, recent, strict=True)
                ended = state._replace(pools=tuple(ScorePool(np.array(pool), np.array(last)) for pool, last in kept))
            else:
                radii, limited = self._cut(state, radius)
            return Course(radii, score, radius), _counted(ended._replace(rule=moved()), score, limited)

        return step, after

    def _sizes(self, pools: tuple[ScorePool, ...]) -> Array:
        """Geometric mean radius (M + 1,) at the nominal levels 0, 1/M .. 1, rising strictly."""
        radii = self._radii(pools, LEVELS)[0]
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(radii, SMALLEST * radii.max(axis=0))).mean(axis=1)
        finite = logs[np.isfinite(logs)].max(initial=0.0)
        return np.exp(np.nan_to_num(logs, nan=0.0, neginf=0.0, posinf=finite)) * (1.0 + RISE * LEVELS)

    def _seen(self, state: SharedState, nominal: Array, scores: Array) -> Array:
        """Nominal scores (T,) of component scores (T, K) on the scale of the rule."""
        if state.sizes is None:
            return nominal
        nominal = np.where(nominal < 1.0, np.round(nominal, 12), nominal)  # rounding, which sizes may magnify
        least = self._radii(state.pools, np.zeros(1))[0][0]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.nan_to_num(scores / least, nan=1.0).max(axis=1)  # of the smallest set, for scores within it
        size = np.interp(nominal, LEVELS, state.sizes) * np.maximum(nominal, 1.0)
        return np.where((scores <= least).all(axis=1), part * state.sizes[0], size)

    def _size(self, state: SharedState, sizes: Array) -> Callable[[float, list[float]], float]:
        """`_seen` of one row for a rule that sees sizes."""
        least, smallest = self._radii(state.pools, np.zeros(1))[0][0].tolist(), float(sizes[0])

        def size(nominal: float, row: list[float]) -> float:
            if all(map(operator.le, row, least)):
                return smallest * max(one / edge if edge else 1.0 for one, edge in zip(row, least, strict=True))
            nominal = round(nominal * 1e12) / 1e12 if nominal < 1.0 else nominal
            return float(np.interp(nominal, LEVELS, sizes)) * max(nominal, 1.0)

        return size

    def _cut(self, state: SharedState, radius: Array) -> tuple[Array, Array]:
        """Radii (T, K) at radii (T,) on the scale of the rule, and whether any had to be limited (T,)."""
        sizes = state.sizes
        if sizes is None:
            return self._radii(state.pools, radius)
        nominal = np.interp(radius, sizes, LEVELS) * np.maximum(radius / sizes[-1], 1.0)
        radii, limited = self._radii(state.pools, nominal)
        part = np.clip(radius / sizes[0], 0.0, 1.0)[:, None]
        return np.where(radius[:, None] >= 0.0, radii * part, -1.0), limited & (radius > sizes[0])

    def _radii_of(self, pools: list[list[float]], nominal: float) -> tuple[list[float], bool]:
        """`_radii` of one step."""
        alpha = 0.0 if nominal == math.inf else 1.0 - nominal if math.isfinite(nominal) else 1.0
        limited, radii = nominal > 1.0 - 1.0 / GRID + GUARD or nominal < 1.0 / GRID - GUARD, []
        for pool, part in zip(pools, self.shares, strict=True):
            m = len(pool)
            rank = math.floor((m + 1) * (1.0 - GUARD - part * alpha))  # counted from 0
            limited |= rank >= m
            radii.append(pool[min(max(rank, 0), m - 1)] * max(nominal, 1.0) if nominal >= 0.0 else -1.0)
        return [math.inf] * len(pools) if nominal == math.inf else radii, limited

    def _radii(self, pools: tuple[ScorePool, ...], nominal: Array) -> tuple[Array, Array]:
        """Radii (T, K) at nominal radii (T,), and whether any had to be limited (T,)."""
        alphas = 1.0 - np.nan_to_num(nominal, nan=0.0, posinf=1.0, neginf=0.0)
        limited = (nominal > 1.0 - 1.0 / GRID + GUARD) | (nominal < 1.0 / GRID - GUARD)
        columns = []
        for pool, part in zip(pools, self.shares, strict=True):
            m = len(pool.scores)
            rank = np.floor((m + 1) * (1.0 - GUARD - part * alphas)).astype(int)  # counted from 0
            limited |= rank >= m
            with np.errstate(invalid="ignore"):  # 0 times infinity
                columns.append(pool.scores[np.clip(rank, 0, m - 1)] * np.maximum(nominal, 1.0))
        radii = np.where(nominal[:, None] >= 0.0, np.stack(columns, axis=-1), -1.0)
        return np.where(nominal[:, None] == math.inf, math.inf, radii), limited

    def infinite_share(self, state: SharedState) -> float:
        """Share of the steps so far at which a radius had to be limited."""
        return max(share(state.limited, state.steps), float(self.rule.infinite_share(state.rule)))


def _counted(state: SharedState, score: Array, limited: Array) -> SharedState:
    """The state with the steps that had a reading counted, and those of them at which a radius was limited."""
    read = ~np.isnan(score)
    return state._replace(steps=state.steps + int(read.sum()), limited=state.limited + int(limited[read].sum()))


def _slide(pools: list[list[float]], recent: list[deque[float]], row: list[float], lookback: int) -> None:
    """The pools after one more score each, in place; the oldest of more than `lookback` recent ones leaves."""
    for pool, last, one in zip(pools, recent, row, strict=True):
        if len(last) == lookback:
            del pool[bisect_left(pool, last.popleft())]
        insort_left(pool, one)
        last.append(one)


def _past(largest: float, score: float) -> float:
    """`_beyond` of a score that is larger."""
    return score / largest if largest else math.inf


def _beyond(largest: float, score: Array | float) -> Array:
    """Nominal score of a component score above the largest of its pool, and so above 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(score) > largest, score / np.float64(largest), 1.0)
