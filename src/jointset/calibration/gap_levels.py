"""Coverage that does not depend on how much is missing: rows with as many gaps are held to the same share of misses.

Rows fall into strata by the share of sensors they lack. Each stratum has a factor exp(l_s) on the radius, 1 at first: a
row is outside when its score is above exp(l_s) times the radius of the rule, and then

    l_s <- l_s + RATE (1 - p_s) (miss - alpha),

p_s the share of the last rows, some hundreds, that were of this stratum. What is common to all rows is so left to the
rule: where all rows are of one stratum, as where nothing is ever missing, nothing moves and the rule is alone. What
differs is learned in the strata: gaps that come when readings are rough, laws that know too little of what they missed,
tails that no normal law has. Sets are announced before it is known what a row will lack, as those of complete rows:
their radius is that of the rule times exp(l_0), and scores of rows with gaps are multiplied by exp(l_0 - l_s).

The first misses of a stratum count as much as later ones, so that n of them widen no set by more than exp(RATE n). They
may be chance, or a rough spell that the rule forgets as soon as it is over: the factor of a stratum that does not come
again stays, and where gaps are common complete rows are rare.

A row that follows one without any reading is met by a mean as old as the outage was long, and a filter takes some rows
to find back. Where the calibration rows have ten outages or more, the quantile of the first rows after them over the
radius is a factor on the radius of later such rows, which then follows their misses; so for rows 2 to 6, and 7 to 24.

Like the rule itself this needs no assumption for its long-run share of misses, stratum by stratum; within a stratum
nothing is promised for one pattern of gaps, or for one day.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, Generic, TypeVar

import numpy as np

from jointset.abilities import follows_clock
from jointset.algebra.partial import EDGES, RETURN, UNCALIBRATED, GapScale, returning, stratum
from jointset.calibration.any_rule import AnyRule, adapts, course, next_radii
from jointset.calibration.quantiles import score_quantile
from jointset.calibration.sequence import stepping
from jointset.calibration.shared_level import Course, SharedLevel
from jointset.contracts import Array, Score

RATE = 0.2  # of a logarithm, for a miss in a stratum that is rare
MEMORY = 500.0  # rows that the shares of the strata look back at
NEARLY = 1.0 - 1e-9  # the share of a stratum at most, once there was a row of another
OUTAGES = 10  # in the calibration rows from which on they have a factor
S = TypeVar("S", bound=Score[Any])  # of whatever law


def shares_of_strata(values: Array) -> tuple[float, ...]:
    """Share of the rows (T, N) with a reading that is in each stratum; as of complete ones where there are none."""
    counts = np.bincount(stratum(values[~np.isnan(values).all(axis=1)]), minlength=len(EDGES) + 1)
    return tuple((counts / counts.sum()).tolist()) if counts.any() else UNCALIBRATED.shares


def after_row(gaps: GapScale, place: int, inside: bool) -> GapScale:
    """The scale after a row of a stratum."""
    if gaps.shares[place] == 1.0:  # all rows so far were of this one
        return gaps
    logs, shares = list(gaps.logs), [share - share / MEMORY for share in gaps.shares]
    logs[place] += RATE * (1.0 - gaps.shares[place]) * ((not inside) - (1.0 - gaps.level))
    shares[place] = min(shares[place] + 1.0 / MEMORY, NEARLY)
    return gaps._replace(logs=tuple(logs), shares=tuple(shares))


def _return(logs: list[float], since: int, inside: bool, alpha: float) -> None:
    """What is known of rows after outages once one so many rows after it was seen, in place."""
    k = bisect_right(RETURN, since)
    if k < len(RETURN):
        logs[k - len(RETURN)] += RATE * ((not inside) - alpha)


def _rates(places: Array, read: Array, gaps: GapScale) -> tuple[Array, GapScale]:
    """How fast the stratum of each row (T,) moves, 0 without a reading, and the scale with the shares after them.

    What `after_row` does to shares, which do not depend on scores: by blocks of sums, as
    s_t = d^t (s_0 + sum_i x_i d^-i / MEMORY), d = 1 - 1 / MEMORY.
    """
    rates, shares = np.zeros(len(places)), np.array(gaps.shares)
    alone = shares[places] == 1.0  # all rows so far were of this one
    begin = len(places) if not (other := read & ~alone).any() else int(other.argmax())
    moving = np.flatnonzero(read[begin:]) + begin
    if not len(moving):
        return rates, gaps
    for rows in np.array_split(moving, len(moving) // int(MEMORY) + 1):
        own, t = places[rows], np.arange(len(rows))
        decay = (1.0 - 1.0 / MEMORY) ** np.arange(len(rows) + 1.0)
        arrived = np.zeros((len(shares), len(rows) + 1))
        arrived[own, t + 1] = 1.0 / (MEMORY * decay[1:])
        course = np.minimum(decay * (shares[:, None] + np.cumsum(arrived, axis=1)), NEARLY)
        rates[rows] = RATE * (1.0 - course[own, t])
        shares = course[:, -1]
    return rates, gaps._replace(shares=tuple(shares.tolist()))


def _trace(logs: tuple[float, ...], places: list[int], after: list[float]) -> Array:
    """Logs of the strata (T, S) before each row, from those of its own stratum after it."""
    t, strata = np.arange(len(places)), len(EDGES) + 1
    latest = np.zeros((strata, len(places) + 1), dtype=int)
    latest[places, t + 1] = t + 1
    latest = np.maximum.accumulate(latest, axis=1)[:, :-1]
    trace = np.array([0.0, *after])[latest]
    return np.where(latest > 0, trace, np.array(logs[:strata])[:, None]).T


def gaps_of(score: object) -> GapScale | None:
    """The scale of a score for rows with gaps; None where it keeps none."""
    found = getattr(score, "gaps", None)
    return found if isinstance(found, GapScale) else None


def rescaled_gaps(score: S, gaps: GapScale) -> S:
    """The score with another scale of the same strata."""
    known = gaps_of(score) or gaps
    kept = {name: getattr(known, name) for name in ("logs", "shares", "back", "since")}
    return score.with_gaps(gaps._replace(**kept))


def told_of_outages(score: S, scores: Array, rows: Array) -> S:
    """The score with the factors of rows after outages, from calibration scores of the rows (T, N) with a reading."""
    gaps, dark, place = gaps_of(score), np.asarray(np.isnan(rows).all(axis=1)), np.arange(len(rows))
    since = place - 1 - np.maximum.accumulate(np.where(dark, place, -RETURN[-1] - 1))  # rows from the outage to each
    back_again = since[~dark]
    if gaps is None or scores.shape != back_again.shape or (back_again == 0).sum() < OUTAGES:
        return score
    bracket = np.searchsorted(RETURN, back_again, side="right")
    own = (score_quantile(np.sort(scores[bracket == k]), 1.0 - gaps.level) for k in range(len(RETURN)))
    back = tuple(math.log(q / gaps.radius) if gaps.radius < q < math.inf else 0.0 for q in own)
    return score.with_gaps(gaps._replace(back=back, since=min(int(since[-1]) + 1, RETURN[-1])))


def restarted_strata(score: S) -> S:
    """The score before its strata have learned anything."""
    gaps = gaps_of(score)
    return score if gaps is None or not any(gaps.logs) else score.with_gaps(gaps._replace(logs=UNCALIBRATED.logs))


def at_another_level(score: S, scale: GapScale) -> S:
    """The score on the scale of another coverage, before strata and outages have told anything of it."""
    return score.with_gaps(scale._replace(shares=(gaps_of(score) or UNCALIBRATED).shares))


def shown_radii(score: S, rule: AnyRule, state: Any) -> tuple[Array | float, float]:
    """What cuts out the next set, and its radius as one number."""
    lift, radius = _lift(score, rule), float(rule.radius(state))
    return (next_radii(rule, state) * lift, radius) if isinstance(rule, SharedLevel) else (radius * lift, radius * lift)


def in_own_units(score: object, rule: AnyRule, scores: Array) -> Array:
    """Scores as the rule is to see them."""
    lift = _lift(score, rule)
    return scores if lift == 1.0 else scores / lift


def _lift(score: object, rule: AnyRule) -> float:
    """What the radius of a rule is multiplied by for the next row; one that does not adapt has the map alone."""
    gaps = gaps_of(score)
    return 1.0 if gaps is None or not adapts(rule) else gaps.lift


def after_reading(score: S, rule: AnyRule, y: Array, inside: bool) -> S:
    """The score after a reading (N,); one whose rule does not adapt only counts the rows since an outage."""
    gaps = gaps_of(score)
    if gaps is None:
        return score
    if not adapts(rule):
        return counted_since(score, y[None])
    missing = int(np.count_nonzero(np.isnan(y)))
    dark = missing == len(y)
    moved_on = gaps if dark else after_row(gaps, int(stratum(y)) if missing else 0, inside)
    if any(gaps.back):
        logs = list(moved_on.logs)
        if not dark:
            _return(logs, gaps.since, inside, 1.0 - gaps.level)
        moved_on = moved_on._replace(logs=tuple(logs), since=0 if dark else min(gaps.since + 1, RETURN[-1]))
    return score if moved_on is gaps else score.with_gaps(moved_on)


def counted_since(score: S, rows: Array) -> S:
    """The score that knows how long ago the last row without a reading was, after more rows (T, N)."""
    gaps = gaps_of(score)
    if gaps is None or not any(gaps.back) or not len(rows):
        return score
    dark = np.flatnonzero(np.isnan(rows).all(axis=1))
    since = min(len(rows) - 1 - int(dark[-1]) if len(dark) else gaps.since + len(rows), RETURN[-1])
    return score if since == gaps.since else score.with_gaps(gaps._replace(since=since))


class Strata(Generic[S]):
    """A rule through the rows of a run, with the factors of the strata: the numbers of stepping.

    `score` and `state` are those after the last row.
    """

    def __init__(self, score: S, rule: AnyRule, state: Any) -> None:
        self.score, self.rule, self.state = score, rule, state
        self.moving = gaps_of(score) is not None and adapts(rule)
        self.traces: list[Array] = []

    def course(self, scores: Array, rows: Array, times: Array | None = None) -> tuple[Course, Array]:
        """The course of the rule through scores (T,) or (T, K) without factors, and the scores as they are shown."""
        clock = None if times is None or not follows_clock(self.rule) else np.asarray(times).tolist()
        gaps = gaps_of(self.score)
        calm = gaps is None or (gaps.shares[0] == 1.0 and not any(gaps.logs) and gaps.since == RETURN[-1])
        still = not len(rows) or (calm and not np.isnan(rows).any())
        if gaps is None or still or not self.moving:
            found, self.state = course(self.rule, self.state, scores, times)
            self.score = self.score if self.moving else counted_since(self.score, rows)
            self.traces.append(np.tile(UNCALIBRATED.logs, (len(rows), 1)))
            return found, scores
        walk = self._several if isinstance(self.rule, SharedLevel) else self._single
        return walk(scores, stratum(rows).tolist(), gaps, clock)

    def _single(
        self, scores: Array, places: list[int], gaps: GapScale, clock: list[int] | None
    ) -> tuple[Course, Array]:
        """Row by row with one radius, on plain numbers; a row without a reading moves nothing."""
        alpha, exp, logs = 1.0 - gaps.level, math.exp, list(gaps.logs)
        assert not isinstance(self.rule, SharedLevel)
        step, after = stepping(self.rule, self.state, clock)
        rates, gaps = _rates(np.asarray(places), ~np.isnan(scores), gaps)
        radii, owns, moved_to = [], [], []
        back, since, told, factor = gaps.back, gaps.since, any(gaps.back), 0.0
        returns: list[tuple[float, ...]] = []
        falls, rises = (-alpha * rates).tolist(), ((1.0 - alpha) * rates).tolist()
        for score, place, fall, rise in zip(scores.tolist(), places, falls, rises, strict=True):
            if told:
                factor = returning(back, logs, since)
                returns.append((factor, *logs[-len(RETURN) :]))
            own = score * exp(-logs[place] - factor)
            radius = step(own)
            radii.append(radius)
            owns.append(own)
            logs[place] = log = logs[place] + (rise if own > radius else fall)
            moved_to.append(log)
            if told:
                read = own == own
                if read:
                    _return(logs, since, own <= radius, alpha)
                since = min(since + 1, RETURN[-1]) if read else 0
        unmoved = np.array([(0.0, *gaps.logs[-len(RETURN) :])])
        after_outages = np.array(returns) if told else unmoved.repeat(len(places), axis=0)
        trace = np.column_stack([_trace(gaps.logs, places, moved_to), after_outages[:, 1:]])
        lift = np.exp(trace[:, 0] + after_outages[:, 0])
        self.traces.append(trace)
        self.state, self.score = after(), self.score.with_gaps(gaps._replace(logs=tuple(logs), since=since))
        found = Course(np.array(radii) * lift, np.array(owns) * lift, np.array(radii) * lift)
        return found, found.score

    def _several(
        self, scores: Array, places: list[int], gaps: GapScale, clock: list[int] | None
    ) -> tuple[Course, Array]:
        """The same with a radius a component; rows after outages have no factor."""
        assert isinstance(self.rule, SharedLevel)
        step, after = self.rule.stepping(self.state, clock)
        alpha, exp, logs = 1.0 - gaps.level, math.exp, list(gaps.logs)
        rates, known = _rates(np.asarray(places), np.asarray(~np.isnan(scores).any(axis=1)), gaps)
        falls, rises = (-alpha * rates).tolist(), ((1.0 - alpha) * rates).tolist()
        shrunk, moved_to = [], []
        for row, place, fall, rise in zip(scores.tolist(), places, falls, rises, strict=True):
            part = exp(-logs[place])
            score, radius = step([part * one for one in row])
            shrunk.append(part)
            logs[place] = log = logs[place] + (rise if score > radius else fall)
            moved_to.append(log)
        found, self.state = after()
        self.score = self.score.with_gaps(known._replace(logs=tuple(logs)))
        strata = _trace(gaps.logs, places, moved_to)
        self.traces.append(np.column_stack([strata, np.tile(gaps.logs[-len(RETURN) :], (len(places), 1))]))
        lift = np.exp(strata[:, :1])
        return found._replace(radii=found.radii * lift), scores * np.array(shrunk)[:, None] * lift

    @property
    def traced(self) -> S:
        """The score that knows the factors of every row so far."""
        return self._knowing(np.concatenate(self.traces))

    @property
    def latest(self) -> S:
        """The score that knows the factors of the rows of the last course."""
        return self._knowing(self.traces[-1])

    def _knowing(self, trace: Array) -> S:
        plain = restarted_strata(self.score)
        gaps = gaps_of(plain)
        return plain if gaps is None or not trace.any() else plain.with_gaps(gaps._replace(trace=trace))
