"""Live rows in, one answer a reading out; a bad row is answered with an error and leaves the predictor as it was.

`jointset.inputs.live_rows` says what lines may look like.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.calibration.own_bands import studentised
from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.inputs.fleet import AS_IT_IS, LISTED, Fleet
from jointset.inputs.live_cells import Options, Reading
from jointset.inputs.live_rows import BAD, readings
from jointset.inputs.outliers import require_sane, too_large
from jointset.inputs.row_clock import Event, RowClock, span
from jointset.inputs.sensor_health import (
    LEAST,
    ailing,
    expecting_nothing,
    falling_ill,
    observe,
    start_health,
    unknown_usual,
)
from jointset.inputs.times import live_seconds
from jointset.joint_predictor import JointPredictor, Outcome
from jointset.predicting.attribution import explained
from jointset.predicting.clock_coverage import clock_coverage
from jointset.predicting.limits import UNLIMITED, Limits
from jointset.trust import Trust
from jointset.writing import json_ready

EMPTY = "rows without any reading"
PAST, LOOK = 10_000, 100  # scored rows kept for coverage by the clock, and between two looks at it
SENSORS_TOLD = 10  # rows in which sensors fall silent, or get stuck, that are told one by one


class Stream:
    """A predictor that is fed lines. `predictor` is always the state after the last good row.

    `notice` is told what the reader of the answers should know about the header, the times of the rows
    (`inputs.row_clock`) and the sensors (`inputs.sensor_health`): every kind of thing once, sensors that fall ill
    a few times; `closing` counts them all. With `trust` every answer holds the predictor's verdict on itself after
    the row, and which sensors are silent or stuck; with `impute` every answer to a row with gaps says what fills them.
    """

    def __init__(
        self,
        predictor: JointPredictor,
        *,
        format: str = "auto",
        layout: str = "auto",
        time_column: str | None = None,
        day_first: bool = False,
        fleet: Fleet = AS_IT_IS,
        limits: Limits = UNLIMITED,
        top: int = 3,
        trust: bool = False,
        impute: bool = False,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        fleet = fleet._replace(left_out=predictor.left_out)
        self.options = Options(format, layout, time_column, fleet, day_first).checked()
        require(top >= 0, f"top must be 0 or more sensors, got {top}")
        predictor.predict()  # refuses a predictor that is not calibrated before any row is read
        if trust:
            predictor.trust()  # likewise one that has no verdict to give
        if impute:
            predictor.impute(np.full(len(predictor.sensors), np.nan))  # and one that cannot fill gaps
        self.predictor, self.trust, self.impute, self.top, self.notice = predictor, trust, impute, top, notice
        self.limits = limits
        self.rows = self.scored = self.inside = self.bad = 0
        usual = predictor.usual or unknown_usual(len(predictor.sensors))
        self.usual = expecting_nothing(usual, np.array([fleet.called(name) is None for name in predictor.sensors]))
        self.health = predictor.health or start_health(len(predictor.sensors))
        self.clock = RowClock(self.usual.cadence, predictor.last_time)
        self.events: Counter[str] = Counter()  # what was unusual, by kind
        self.past: deque[tuple[int, bool]] = deque(maxlen=PAST)  # times and outcomes of scored rows
        self.by_clock = ""  # how coverage differs by the clock, looked at every so often
        for kind, names in self._ailing().items():
            if names:
                notice(f"{kind} since before the first row: {some(names, LISTED)}")

    def answers(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """One JSON-ready answer a reading, in order; blank lines are skipped."""
        for row, found in readings(lines, self.predictor.sensors, self.options, self.notice):
            self.rows = row
            yield self._answer(found)

    def closing(self) -> list[str]:
        """What was unusual, counted, and the sensors that are silent or stuck at the end."""
        told = [f"{kind}: {count}" for kind, count in self.events.items()]
        if self.by_clock:
            told.append(f"coverage differs by the clock: {self.by_clock}")
        if self.clock.longest_gap:
            told.append(f"the longest gap lasted {span(self.clock.longest_gap)}")
        return told + [f"{kind} at the end: {some(names, LISTED)}" for kind, names in self._ailing().items() if names]

    def _answer(self, found: Reading | Exception) -> dict[str, Any]:
        try:
            if isinstance(found, Exception):
                raise found
            seconds = live_seconds(found.time, self.options.day_first)
            if self.clock.repeated(seconds, found.values):
                self._tell(Event("repeated rows, skipped", f"row {self.rows} ({found.time}) repeats a row: skipped"))
                return {"row": self.rows, "time": found.time, "repeated": True}
            before = expecting(self.predictor, seconds)
            answer, after = advance(before, found.values, self.top, self.limits)
            if self.impute and np.isnan(found.values).any():
                answer["imputed"] = filled_cells(before, found.values, self.limits)
        except BAD as error:
            self.bad += 1
            return {"row": self.rows, "error": " ".join(str(error).split())}
        self._follow(after, seconds, found)
        self.scored += answer["inside"] is not None
        self.inside += answer["inside"] is True
        if seconds is not None and answer["inside"] is not None:
            self._remember(seconds, answer["inside"])
        if self.trust:
            answer["trust"] = json_ready(whole_verdict(after.trust(sensors=False), self.by_clock, self._ailing()))
        return {"row": self.rows, "time": found.time, **answer}

    def _follow(self, after: JointPredictor, seconds: int | None, reading: Reading) -> None:
        """Go on from the predictor after a row, and tell what is unusual about the row."""
        self.predictor = after
        for event in self.clock.tick(seconds, reading.values, reading.time, self.rows):
            self._tell(event)
        if seconds is not None:
            after.last_time = seconds
        before, self.health = self.health, observe(self.health, reading.values)
        if self.health.empty:
            self.events[EMPTY] += 1
            if self.health.empty == LEAST + 1:
                self.notice(f"no reading at all in {LEAST + 1} rows in a row, the last is row {self.rows}")
            return
        for event in falling_ill(before, self.health, self.usual, self.predictor.sensors, self.rows):
            self._tell(event, SENSORS_TOLD)

    def _tell(self, event: Event, times: int = 1) -> None:
        """Count an event, and tell the first few of its kind."""
        self.events[event.kind] += 1
        if self.events[event.kind] <= times:
            self.notice(event.text)

    def _ailing(self) -> dict[str, list[str]]:
        """Names of the sensors that are silent, and of those that are stuck."""
        return ailing(self.health, self.usual, self.predictor.sensors)

    def _remember(self, seconds: int, inside: bool) -> None:
        """Keep the outcome of a row and its time; every so often, look at coverage by the clock."""
        self.past.append((seconds, inside))
        if self.scored % LOOK == 0:
            times, hits = (np.array(part) for part in zip(*self.past, strict=True))
            found = clock_coverage(times, hits)
            self.by_clock = "" if found is None else found.words


def whole_verdict(trust: Trust, by_clock: str, ill: Mapping[str, list[str]]) -> dict[str, Any]:
    """The predictor's trust, how coverage differs by the clock, and the sensors that are not to be trusted."""
    told = [by_clock, *(f"{kind}: {some(names)}" for kind, names in ill.items() if names)]
    verdict = "; ".join([trust.verdict, *filter(None, told)])
    return {**trust._asdict(), "verdict": verdict, "by_clock": by_clock or None, **ill}


def expecting(predictor: JointPredictor, seconds: int | None) -> JointPredictor:
    """The predictor, told when the row is where it follows the clock."""
    if seconds is None or not (predictor.follows_clock or predictor.horizon):
        return predictor
    told = predictor.copy()
    told.expect(seconds)
    return told


def filled_cells(predictor: JointPredictor, y: Array, limits: Limits = UNLIMITED) -> dict[str, Any]:
    """What every missing sensor of a reading (N,) should have read, with its interval, by name."""
    filled = predictor.impute(y)
    ends = (limits.inside(filled.values), *limits.clip((filled.lower, filled.upper)))
    cells = {
        predictor.sensors[i]: dict(zip(("value", "lower", "upper"), (float(end[i]) for end in ends), strict=True))
        for i in np.flatnonzero(np.isnan(y)).tolist()
    }
    named: dict[str, Any] = json_ready(cells)
    return named


class Step(NamedTuple):
    """What one reading came to: the facts of its answer, the set that was announced, and the predictor after it."""

    facts: dict[str, Any]  # score, radius, inside, observed, what a null radius means, who is to blame
    bounds: tuple[Array, Array]  # of the set announced, as `Region.bounds_for` has them, (N,) each, clipped
    top: list[dict[str, Any]]  # the sensors that contribute most, largest first
    contributions: Array  # (N,) to the score
    shares: Array  # (N,) of the score, as `JointPredictor.attribution` has them
    given: tuple[Array, Array] | None  # mean and sd (N,) of each reading given all others, where there is a law
    errors: Array | None  # (N,) in sd of the law, NaN where missing, where the law has variances
    outcome: Outcome
    after: JointPredictor

    def answer(self) -> dict[str, Any]:
        """The JSON-ready answer."""
        names, ends = self.after.sensors, np.stack(self.bounds, axis=1)
        whole = bool(np.isfinite(ends).all())
        bounds = dict(zip(names, ends.tolist() if whole else json_ready(ends.tolist()), strict=True))
        return {**self.facts, "bounds": bounds, "top": self.top}


def advance(
    predictor: JointPredictor, y: Array, top: int = 3, limits: Limits = UNLIMITED
) -> tuple[dict[str, Any], JointPredictor]:
    """Answer to one reading (N,) and the predictor after it; the one given is not changed.

    The region is the one announced before the reading. A reading that would leave the filter without finite numbers
    is refused, and one absurdly far from those of training; an infinite score, of a reading off an interval of no
    length, is none of these.
    """
    step = take_step(predictor, y, top, limits)
    return step.answer(), step.after


def take_step(predictor: JointPredictor, y: Array, top: int = 3, limits: Limits = UNLIMITED) -> Step:
    """As `advance`, with the parts of the answer apart."""
    if predictor.standardize:
        require_sane(y, predictor.sensors, predictor.shift, predictor.scale)
    region, after = predictor.predict(), predictor.copy()
    with np.errstate(all="ignore"):
        outcome = after.update(y)
        law = predictor._ahead()[0]  # not by the methods: they would look at the labels of y again
        contributions, shares, given = explained(predictor, law, y, outcome.score)
        errors, own = studentised(law, y), predictor.own_bounds()
        scored, center = not math.isnan(outcome.score) or not outcome.observed, after._ahead()[0].mean
        finite = scored and np.count_nonzero(np.isfinite(center)) == len(center)
        around = predictor.neighbourhoods(y, shares, 1) if finite and not outcome.inside else []
    if not finite:
        worst = int(np.nanargmax(np.abs(y)))
        raise InputError(too_large(predictor.sensors[worst], y[worst]))
    lower, upper = limits.clip(region.bounds_for(y))
    facts = {
        "score": _or_null(outcome.score),
        "radius": _or_null(outcome.radius),
        "inside": outcome.inside if outcome.observed else None,
        "observed": outcome.observed,
        **_unusual(outcome.radius),
        **({"neighbourhood": json_ready(around[0]._asdict())} if around else {}),
    }
    ends = _unknown(y) if own is None else limits.clip(own)
    told = (contributions, shares, y, *(given or _unknown(y)), *ends, lower, upper)
    tops = _named(predictor.sensors, largest(contributions, y, top), told)
    return Step(facts, (lower, upper), tops, contributions, shares, given, errors, outcome, after)


def _named(sensors: Sequence[str], places: list[int], columns: Sequence[Array]) -> list[dict[str, Any]]:
    """What is told of the sensors at these places, from columns (N,): value, what was to be expected given all others,
    the sensor's own band, and that of the set.
    """
    told = []
    for i in places:
        numbers = [x if -math.inf < x < math.inf else None for x in [column.item(i) for column in columns]]
        contribution, share, value, expected, sd, own_lower, own_upper, lower, upper = numbers
        told.append(
            {
                "sensor": sensors[i],
                "contribution": contribution,
                "share": share,
                "value": value,
                "expected": expected,
                "expected_sd": sd,
                "own": [own_lower, own_upper],
                "lower": lower,
                "upper": upper,
            }
        )
    return told


def _unknown(y: Array) -> tuple[Array, Array]:
    return (np.full(len(y), np.nan),) * 2


def largest(contributions: Array, y: Array, count: int) -> list[int]:
    """Positions of the observed sensors that contribute most, largest first."""
    missing = np.isnan(y)
    if not np.count_nonzero(missing):
        whole: list[int] = (-contributions).argsort(kind="stable")[:count].tolist()
        return whole
    seen = (~missing).nonzero()[0]
    found: list[int] = seen[(-contributions[seen]).argsort(kind="stable")[:count]].tolist()
    return found


def _or_null(number: float) -> float | None:
    """A number as JSON has it."""
    return float(number) if math.isfinite(number) else None


def _unusual(radius: float) -> dict[str, bool]:
    """What a null radius means: the whole space, or the empty set."""
    if radius == math.inf:
        return {"infinite": True}
    return {"empty": True} if radius < 0 else {}
