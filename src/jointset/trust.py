"""A live verdict on a calibrated predictor: what its calibration is worth, the coverage to expect, signs of drift.

The band speaks of what an operator will count: the share of hits among the next n readings. Calibration and these
readings both err, and hits that repeat each other err more: with m calibration scores, c the share of hits among them
and tau the integrated time of those hits, that share lies with confidence 90 % within

    c -+ (w sqrt(1 + m / n) + 1 / (2 n)),    w = 1.64 sqrt(c (1 - c) tau / m),

w the half-width for the long run, 1 / (2 n) half a reading, as shares move by whole ones. tau enters with one standard
error added, here and below; for w it is at least what the slow part of hits and ranks makes of it
(`jointset.predicting.slow_time`).

A rule that adapts steers the share of hits towards its target c, whatever its first radius was, so that only the n
readings err: c -+ (w sqrt(m / n) + 1 / (2 n)). tau is then that of the rule's own hits, on the second half of the
calibration scores after a start on the first, and at least what makes the band of these hits hold their share.

Two detectors watch. The first counts hits: the last 200 readings (n of them, h hits) are an alarm while they lack too
many, c n - h >= 200 d, where d is 2.5 half-widths of the band of 200 readings, at most 0.15. The bound holds whatever
tau: coverage 15 points too low over 200 readings is always an alarm, and the alarm is over once coverage is back.

The second sees all scores grow or shrink, those inside too: a two-sided CUSUM on conformal ranks. A score of rank r
among the m calibration scores has u = r / m - 1/2; under the calibration regime u has mean 0 and, summed over time,
variance tau / 12 a step, tau the integrated time of the calibration ranks. With an allowance a,

    S_t = max(0, S_{t-1} + u_t - a),    the same for -u_t,

and drift is announced while one of them is above a limit h. The allowance is 0.05 plus two standard errors
sqrt(tau / (12 m)) of the calibration itself, so that a block that happens to be off does not count as drift; with
k = 0.05 + one standard error, the limit h = tau / (24 k) log(48 H k^2 / (tau p)) makes a random walk of that variance
alarm with probability about p = 0.01 within H = 1,000 steps. Dependent scores thus get a higher limit, where a test
that takes scores for exchangeable would alarm on the dependence alone.

Ranks and hits are counted in whole numbers: stepping and whole panels give the same state to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import some
from jointset.predicting.integrated_time import LAGS, IntegratedTime, integrated_time
from jointset.predicting.slow_time import slow_time
from jointset.storage import storable

CONFIDENT = 1.645  # standard errors either side of the band: confidence 90 %
ALLOWANCE = 0.05  # shift of the mean rank that never counts as drift
HORIZON = 1_000  # readings the band speaks of; a false alarm within them has probability about FALSE_ALARM
FALSE_ALARM = 0.01
RECENT = 200  # steps behind `recent_coverage`
FAR = 2.5  # so many half-widths of the band of RECENT readings too low is an alarm,
TOO_LOW = 0.15  # and so is a coverage lower by this, however wide the band
CAP = 2  # the CUSUM stops at so many limits, so that an alarm ends soon after the drift does


class Trust(NamedTuple):
    """What to think of the next set. Shares are of steps; `band`, `band_over` and `verdict` have confidence 90 %."""

    n_calibration: int
    tau_int: float  # integrated autocorrelation time of the hits of calibration, at least 1
    effective_size: float  # n_calibration / tau_int
    coverage: float  # expected: that of the calibration block, of a rule that adapts its target
    half_width: float  # of the band in the long run, while nothing changes; where `steers`, over n_calibration readings
    band: tuple[float, float]  # of the share inside among the next 1,000 readings: band_over(1000)
    drift: float  # CUSUM over its limit: 1 or more is an alarm; negative where scores have become smaller
    drift_alarm: bool  # of the scores, or of coverage
    recent_coverage: float  # of the last 200 readings since calibration, NaN before the first
    coverage_alarm: bool  # far too few of them were inside
    infinite_share: float  # of steps whose radius was infinite or had to be clipped
    verdict: str
    silent: tuple[str, ...] = ()  # sensors without a reading, or with one value, for far longer than they usually are
    stuck: tuple[str, ...] = ()
    steers: bool = False  # the rule adapts, and was watched doing so: in the long run it comes to `coverage`

    def naming(self, silent: Sequence[str], stuck: Sequence[str]) -> Trust:
        """The same with the sensors that are not to be trusted, in words too."""
        words = [f"{kind}: {some(names)}" for kind, names in (("silent", silent), ("stuck", stuck)) if names]
        return self._replace(verdict="; ".join([self.verdict, *words]), silent=tuple(silent), stuck=tuple(stuck))

    def band_over(self, steps: float) -> tuple[float, float]:
        """Where the share inside of so many readings lies with confidence 90 % if nothing changes; inf: the long run.

        Held against the coverage of a test block of that length, it says whether the block is like the calibration.
        """
        return band_over(steps, self.coverage, self.half_width, self.n_calibration, self.steers)


def band_over(steps: float, coverage: float, half_width: float, m: int, steers: bool = False) -> tuple[float, float]:
    """Band of the share inside among so many readings, from the half-width in the long run and m scores.

    >>> [round(end, 3) for end in (*band_over(math.inf, 0.9, 0.02, 800), *band_over(800, 0.9, 0.02, 800))]
    [0.88, 0.92, 0.871, 0.929]
    """
    half = half_over(steps, half_width, m, steers)
    return max(coverage - half, 0.0), min(coverage + half, 1.0)


def half_over(steps: float, half_width: float, m: int, steers: bool = False) -> float:
    """Half-width of that band before it is cut at 0 and 1; without the error of the radius where the rule steers."""
    return half_width * math.sqrt((0.0 if steers else 1.0) + m / steps) + 0.5 / steps


@storable
class Reference(NamedTuple):
    """What the calibration scores say once for all. Ranks count double, so that the middle of a tie is a whole one."""

    scores: Array  # (m,) ascending
    tau_int: float
    coverage: float
    half_width: float  # as in `Trust`
    slack: int  # allowance and limit of the CUSUM in such ranks
    limit: int
    adapts: bool = False  # the radius follows the scores
    steers: bool = False  # and its own hits gave the band

    def too_few(self, count: int) -> int:
        """So many hits or fewer among the last `count` readings, RECENT at most, are an alarm."""
        far = min(FAR * half_over(RECENT, self.half_width, len(self.scores), self.steers), TOO_LOW)
        return math.floor(self.coverage * count - far * RECENT)


@storable
class Watch(NamedTuple):
    """The live part: both CUSUMs in ranks, scored steps since calibration, the last outcomes as bits."""

    reference: Reference
    high: int = 0
    low: int = 0
    steps: int = 0
    recent: int = 0

    def update(self, score: float, inside: bool) -> Watch:
        """After one more score; NaN is no score."""
        if math.isnan(score):
            return self
        reference = self.reference
        shift = int(_ranks(reference.scores, score)) - len(reference.scores)
        cap = CAP * reference.limit
        high = min(max(self.high + shift - reference.slack, 0), cap)
        low = min(max(self.low - shift - reference.slack, 0), cap)
        return Watch(reference, high, low, self.steps + 1, (self.recent << 1 | bool(inside)) & _MASK)

    def run(self, scores: Array, inside: Array) -> Watch:
        """After all scores (T,): the same as that many updates, ranks found at once."""
        seen = ~np.isnan(scores)
        reference, high, low, recent = self.reference, self.high, self.low, self.recent
        slack, cap = reference.slack, CAP * reference.limit
        shifts = _ranks(reference.scores, scores[seen]) - len(reference.scores)
        for shift in shifts.tolist():
            high = min(max(high + shift - slack, 0), cap)
            low = min(max(low - shift - slack, 0), cap)
        for hit in inside[seen][-RECENT:].tolist():
            recent = (recent << 1 | hit) & _MASK
        return Watch(reference, high, low, self.steps + len(shifts), recent)

    def alarms(self) -> tuple[bool, bool]:
        """Whether scores have drifted, and whether too few of the last readings were inside."""
        too_few = self.recent.bit_count() <= self.reference.too_few(min(self.steps, RECENT))
        return max(self.high, self.low) >= self.reference.limit or too_few, too_few

    def trust(self, infinite_share: float) -> Trust:
        """The verdict now."""
        reference, m, count = self.reference, len(self.reference.scores), min(self.steps, RECENT)
        drift = (self.high if self.high >= self.low else -self.low) / reference.limit
        hits, too_few = self.recent.bit_count(), reference.too_few(count)
        drifted, lost = self.alarms()
        found = Trust(
            n_calibration=m,
            tau_int=reference.tau_int,
            effective_size=m / reference.tau_int,
            coverage=reference.coverage,
            half_width=reference.half_width,
            band=band_over(HORIZON, reference.coverage, reference.half_width, m, reference.steers),
            drift=drift,
            drift_alarm=drifted,
            recent_coverage=hits / count if count else math.nan,
            coverage_alarm=lost,
            infinite_share=infinite_share,
            verdict="",
            steers=reference.steers,
        )
        return found._replace(verdict=_sentence(found, hits, count, too_few, reference.adapts))


_MASK = (1 << RECENT) - 1


def start_watch(scores: Array, radius: float, coverage: float | None = None, ratios: Array | None = None) -> Watch:
    """The watch after calibration scores (m,) in time order; a hit is a score of at most `radius`.

    The coverage to expect is the share of hits, or that given: the one a rule that adapts its radius works towards,
    and `ratios` (k,) are scores over the radii it had for them, a hit where at most 1.
    tau_int is the larger of two estimates, over 30 lags and over a window chosen from the series, as in the audits.

    >>> scores = np.random.default_rng(0).random(1000)
    >>> start_watch(scores, 0.9).trust(0.0).verdict.split("; ")
    ['calibration of 1,000 steps is worth about 642 independent ones',
     'expect coverage 0.90 (0.87 to 0.94 over 1,000 steps)']
    """
    m = len(scores)
    hits = scores <= radius
    times = _times(hits)
    tau_int = max(_at_least_one(time.tau) for time in times)
    ordered = np.sort(scores)
    ranks = _ranks(ordered, scores).astype(float)
    adapts = coverage is not None
    coverage = float(hits.sum()) / (m + 1) if coverage is None else coverage
    tau = _safe_time(hits, ranks, times) if ratios is None else _own_time(ratios, coverage)
    half_width = CONFIDENT * math.sqrt(coverage * (1.0 - coverage) * tau / m)
    slack, limit = cusum_design(integrated_time(ranks), m)
    whole = math.ceil(slack * 2 * m), math.ceil(limit * 2 * m)
    return Watch(Reference(ordered, tau_int, coverage, half_width, *whole, adapts, ratios is not None))


def _times(hits: Array) -> list[IntegratedTime]:
    """Both estimates of the integrated time of hits."""
    return [integrated_time(hits.astype(float), lags) for lags in (None, LAGS)]


def _safe_time(hits: Array, ranks: Array, times: list[IntegratedTime]) -> float:
    """The integrated time of hits as the band takes it: on the safe side, and with their slow part."""
    return max(
        slow_time(hits.astype(float), ranks, CONFIDENT),
        *(_at_least_one(time.tau + time.standard_error) for time in times),
    )


def _own_time(ratios: Array, coverage: float) -> float:
    """The same for the hits of a rule that adapts; at least so large that their band holds their share."""
    hits = ratios <= 1.0
    off = (float(hits.mean()) - coverage) / CONFIDENT
    seen = len(hits) * off * off / (coverage * (1.0 - coverage))
    return max(_safe_time(hits, _ranks(np.sort(ratios), ratios).astype(float), _times(hits)), seen)


def cusum_design(time: IntegratedTime, m: int) -> tuple[float, float]:
    """Allowance c and limit h of the CUSUM from the integrated time of m calibration ranks; see the module.

    >>> [round(x, 3) for x in cusum_design(IntegratedTime(1.0, 5, 0.0, True), 1000)]
    [0.068, 6.855]
    """
    tau = _at_least_one(time.tau + time.standard_error)
    error = math.sqrt(tau / (12 * m))
    k = ALLOWANCE + error
    crossings = max(48 * HORIZON * k * k / tau, 1.0)
    return k + error, tau / (24 * k) * math.log(crossings / FALSE_ALARM)


def _at_least_one(tau: float) -> float:
    """Integrated time as it is used: scores that repel each other, or do not vary, count as independent."""
    return max(tau, 1.0) if tau == tau else 1.0


def _ranks(ordered: Array, scores: Array | float) -> Any:
    """Twice the middle rank of scores: how many are smaller, plus how many are not larger."""
    return ordered.searchsorted(scores) + ordered.searchsorted(scores, side="right")


def _sentence(found: Trust, hits: int, count: int, too_few: int, adapts: bool) -> str:
    """What the calibration is worth, what it makes one expect, and how the last `count` readings compare with that.

    Scores that drift void the promise of a radius that stands still; that of one that follows them, only lost coverage.
    """
    low, high = found.band
    seen = f"{hits} of the last {count} readings were inside"
    fewest = max(math.ceil(found.band_over(count)[0] * count), too_few + 1) if count else 0
    few, void = hits < fewest, found.coverage_alarm if adapts else found.drift_alarm
    m, size = found.n_calibration, found.effective_size
    parts = [f"calibration of {m:,} steps is worth about {size:,.0f} independent ones"]
    if not void:
        parts.append(f"expect coverage {found.coverage:.2f} ({low:.2f} to {high:.2f} over {HORIZON:,} steps)")
    if few:
        grade = "too few inside" if void else "too few inside, though not yet an alarm"
        parts.append(f"{grade}: {seen}, where at least {fewest} were to be expected")
    if abs(found.drift) >= 1.0:
        parts.append(_drift(found.drift > 0.0, few, adapts))
    if count and not few:
        chance = ", which is little but may be chance" if found.recent_coverage < low else ""
        parts.append(f"{'' if found.drift_alarm or chance else 'no drift: '}{seen}{chance}")
    if found.infinite_share:
        parts.append(
            f"the radius was infinite, clipped or extrapolated at {100 * found.infinite_share:.1f} % of the steps"
        )
    return "; ".join(parts)


def _drift(grown: bool, few: bool, adapts: bool) -> str:
    """What it means that the scores are no longer like those of calibration."""
    told = f"drift: {'scores have grown' if grown else 'most scores have shrunk'} since"
    if adapts:
        follow = f"; the sets follow and are {'larger' if grown else 'smaller'} than at calibration"
        return told + (", and the sets do not keep up" if few and grown else "" if few else follow)
    if grown:
        return f"{told}, so that calibration no longer speaks for what comes"
    return told + ("" if few else ", so the sets hold more readings than at calibration")
