"""By the clock: any rule on scores that are divided by what the time of day, and the weekday, make of them.

    log multiplier = piecewise linear around the day, through NODES nodes, + one number a weekday.

`start` reads both off the calibration scores (`jointset.calibration.clock_course`), shrunk to 1 as far as chance
explains them. The rule works on the scores left, and its radius is multiplied back: a reading is inside when its score
is at most that. Then each node counts E, the misses at its time beyond alpha a row, and is raised by

    step calm(E),    step = RATE spreads of the logarithms left,    calm(E) = E^3 / (E^2 + c^2):

a few misses, which are chance, hardly count, and an hour that changes its ways is followed as by ACI. What is chance
goes by the calibration block: c is CALM where hours differ for certain, and STILL where chance explains all of it. A
row counts for the two nodes beside its time, for the nearer one more. A rule that does not adapt keeps the multiplier
as it is. `Auto`, which follows the size of the scores, is given them before nodes are raised, or it would take back
what they add.

Without time stamps there is no clock, and the rule is alone. Times are UTC; a row whose time is not told follows the
last one at the usual interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jointset.calibration.auto import Auto, AutoState, calm
from jointset.calibration.clock_course import DAY, NODES, course_of, weekday
from jointset.calibration.fixed import Fixed
from jointset.calibration.quantiles import calibration_scores
from jointset.calibration.split import Split
from jointset.contracts import Array, Calibration
from jointset.errors import require
from jointset.storage import storable

RATE, CALM, STILL = 0.2, 4.0, 12.0  # spreads for a miss, and misses from which they count; chosen on validation blocks
LOWEST, HIGHEST = -30.0, 80.0  # bounds of E
OFTEN = 300  # seconds; rows that come more often move them less, each


@storable
class ByClockState(NamedTuple):
    """State of the rule, log multipliers of the nodes and of the weekdays (Monday first) as calibrated, step, E and c.

    `next` is the time of the next row (epoch seconds), `cadence` the seconds between rows; 0: there is no clock.
    """

    rule: object
    day: tuple[float, ...]
    week: tuple[float, ...]
    step: float
    excess: tuple[float, ...]
    next: int
    cadence: int
    calm: float = CALM


@storable
@dataclass(frozen=True)
class ByClock:
    """A rule that knows the clock, around any rule for one radius.

    >>> times = 3600 * np.arange(24 * 60)
    >>> scores = np.random.default_rng(0).chisquare(20, len(times)) * np.where(times % DAY < DAY / 2, 1.0, 4.0)
    >>> rule = ByClock(Split())
    >>> state = rule.start(scores, times)
    >>> noon, midnight = (rule.radius(rule.expect(state, DAY * 60 + hour * 3600)) for hour in (18, 6))
    >>> round(noon / midnight, 1)  # 4, shrunk a little
    3.8
    """

    rule: Calibration[Any] = field(default_factory=Auto)
    ordered: ClassVar[bool] = True
    follows_clock: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(not isinstance(self.rule, Fixed | ByClock), "the clock goes around a rule that has none")

    @property
    def alpha(self) -> float:
        """Target miss rate."""
        return float(self.rule.alpha)

    def start(self, scores: Array, times: Array | None = None) -> ByClockState:
        """State after the calibration scores (m,), in order of time, and their times (m,) in epoch seconds."""
        values = calibration_scores(scores)
        cadence = 0 if times is None or len(times) < 2 else max(int(np.median(np.diff(times))), 0)
        if times is None or not cadence:
            return ByClockState(self.rule.start(values), (), (), 0.0, (), 0, 0)
        found = course_of(values, times, self.alpha)
        still = isinstance(self.rule, Split) or cadence > DAY // 2
        state = ByClockState(
            rule=None,
            day=found.day,
            week=found.week,
            step=0.0 if still else RATE * found.spread * min(cadence / OFTEN, 1.0),
            excess=(0.0,) * NODES,
            next=int(times[-1]) + cadence,
            cadence=cadence,
            calm=STILL + found.certain * (CALM - STILL),
        )
        left = values / np.array([_factors(state, state.excess, when)[0] for when in np.asarray(times).tolist()])
        return state._replace(rule=self.rule.start(left))

    def expect(self, state: ByClockState, when: int) -> ByClockState:
        """The state when the next row is known to come at this time (epoch seconds)."""
        return state if not state.cadence or state.next == when else state._replace(next=int(when))

    def radius(self, state: ByClockState) -> float:
        """Radius of the rule times the multiplier of the next row's time."""
        return float(self.rule.radius(state.rule)) * self.multiplier(state)

    def multiplier(self, state: ByClockState) -> float:
        """What the clock makes of the scores at the next row's time."""
        return math.prod(_factors(state, state.excess, state.next)) if state.cadence else 1.0

    def update(self, state: ByClockState, score: float) -> ByClockState:
        """State after one score; NaN moves nothing but the clock."""
        if not state.cadence:
            return state._replace(rule=self.rule.update(state.rule, score))
        after = state._replace(next=state.next + state.cadence)
        if math.isnan(score):
            return after
        course, lift = _factors(state, state.excess, state.next)
        radius = float(self.rule.radius(state.rule)) * (course * lift)
        inner = self._follow(state.rule, score, course, lift)
        if not state.step or inner is state.rule:  # what says nothing to the rule says nothing of the hour
            return after._replace(rule=inner)
        excess = list(state.excess)
        _count(excess, state.next, (score > radius) - self.alpha)
        return after._replace(rule=inner, excess=tuple(excess))

    def run(self, state: ByClockState, scores: Array, times: Array | None = None) -> tuple[Array, ByClockState]:
        """Radii (T,) and the state after the last score; rows come at `times` (T,), or at the usual interval."""
        values = np.asarray(scores, dtype=float)
        if not len(values):
            return values, state
        if not state.cadence:
            radii, inner = self.rule.run(state.rule, values)
            return radii, state._replace(rule=inner)
        when = state.next + state.cadence * np.arange(len(values)) if times is None else np.asarray(times)
        end = int(when[-1]) + state.cadence
        if not state.step:
            factors = np.array([_factors(state, state.excess, one)[0] for one in when.tolist()])
            radii, inner = self.rule.run(state.rule, values / factors)
            return radii * factors, state._replace(rule=inner, next=end)
        radii, rule, inner, excess = np.empty(len(values)), self.rule, state.rule, list(state.excess)
        for t, (score, one) in enumerate(zip(values.tolist(), when.tolist(), strict=True)):
            course, lift = _factors(state, excess, one)
            radii[t] = radius = float(rule.radius(inner)) * (course * lift)
            if score == score:
                before, inner = inner, self._follow(inner, score, course, lift)
                if inner is not before:
                    _count(excess, one, (score > radius) - self.alpha)
        return radii, state._replace(rule=inner, excess=tuple(excess), next=end)

    def infinite_share(self, state: ByClockState) -> float:
        """That of the rule."""
        return float(self.rule.infinite_share(state.rule))

    def _follow(self, inner: object, score: float, course: float, lift: float) -> object:
        """State of the rule after a score; one that follows sizes is told of the lift, others have it divided out."""
        if isinstance(self.rule, Auto) and isinstance(inner, AutoState):
            return self.rule.update(inner, score / course, lift)
        return self.rule.update(inner, score / (course * lift))


def _place(when: int) -> tuple[int, int, float]:
    """The nodes before and after a time, and how far it is from the first to the second."""
    place = when % DAY * NODES / DAY
    node = int(place)
    return node, (node + 1) % NODES, place - node


def _factors(state: ByClockState, excess: Sequence[float], when: int) -> tuple[float, float]:
    """What the clock makes of the scores at a time as calibrated, weekday included, and the lift by misses since."""
    before, after, beyond = _place(when)
    course = (1.0 - beyond) * state.day[before] + beyond * state.day[after]
    lift = (1.0 - beyond) * calm(excess[before], state.calm) + beyond * calm(excess[after], state.calm)
    return math.exp(course + state.week[weekday(when)] if state.week else course), math.exp(state.step * lift)


def _count(excess: list[float], when: int, miss: float) -> None:
    """Count a row for the nodes beside its time, in place."""
    before, after, beyond = _place(when)
    excess[before] = min(max(excess[before] + (1.0 - beyond) * miss, LOWEST), HIGHEST)
    excess[after] = min(max(excess[after] + beyond * miss, LOWEST), HIGHEST)
