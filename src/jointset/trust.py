"""A live verdict on a calibrated predictor: what its calibration is worth, the coverage to expect, signs of drift.

Drift is watched by a two-sided CUSUM on conformal ranks. A score of rank r among the m calibration scores has
u = r / m - 1/2; under the calibration regime u has mean 0 and, summed over time, variance tau / 12 a step, tau the
integrated time of the calibration ranks. With an allowance c,

    S_t = max(0, S_{t-1} + u_t - c),    the same for -u_t,

and drift is announced while one of them is above a limit h. The allowance is 0.05 plus two standard errors
sqrt(tau / (12 m)) of the calibration itself, so that a block that happens to be off does not count as drift; with
k = 0.05 + one standard error, the limit h = tau / (24 k) log(48 H k^2 / (tau p)) makes a random walk of that variance
alarm with probability about p = 0.01 within H = 1,000 steps. tau enters with one standard error added. Dependent scores
thus get a higher limit, where a test that takes scores for exchangeable would alarm on the dependence alone.

Ranks are counted in whole numbers: stepping and whole panels give the same state to the last bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jointset.audits.dependence import LAGS, IntegratedTime, integrated_time
from jointset.audits.theory_coverage import bernstein_interval
from jointset.contracts import Array
from jointset.storage import storable

DELTA = 0.1  # the band holds with probability 1 - DELTA
ALLOWANCE = 0.05  # shift of the mean rank that never counts as drift
HORIZON = 1_000  # steps within which a false alarm has probability about FALSE_ALARM
FALSE_ALARM = 0.01
RECENT = 200  # steps behind `recent_coverage`
CAP = 2  # the CUSUM stops at so many limits, so that an alarm ends soon after the drift does


class Trust(NamedTuple):
    """What to think of the next set. Shares are of steps; `band` and `verdict` hold with confidence 90 %."""

    n_calibration: int
    tau_int: float  # integrated autocorrelation time of the hits of calibration, at least 1
    effective_size: float  # n_calibration / tau_int
    coverage: float  # expected, from the calibration block
    band: tuple[float, float]  # long-run coverage of this calibration while its regime lasts (Bernstein form)
    drift: float  # CUSUM over its limit: 1 or more is an alarm; negative where scores have become smaller
    drift_alarm: bool
    recent_coverage: float  # of the last 200 readings since calibration, NaN before the first
    infinite_share: float  # of steps whose radius was infinite or had to be clipped
    verdict: str


@storable
class Reference(NamedTuple):
    """What the calibration scores say once for all. Ranks count double, so that the middle of a tie is a whole one."""

    scores: Array  # (m,) ascending
    tau_int: float
    coverage: float
    half_width: float  # of the band
    slack: int  # allowance and limit of the CUSUM in such ranks
    limit: int


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

    def trust(self, infinite_share: float) -> Trust:
        """The verdict now."""
        reference, m = self.reference, len(self.reference.scores)
        drift = (self.high if self.high >= self.low else -self.low) / reference.limit
        middle, half, count = reference.coverage, reference.half_width, min(self.steps, RECENT)
        recent = self.recent.bit_count() / count if count else math.nan
        return Trust(
            m,
            reference.tau_int,
            m / reference.tau_int,
            middle,
            (max(middle - half, 0.0), min(middle + half, 1.0)),
            drift,
            abs(drift) >= 1.0,
            recent,
            infinite_share,
            _sentence(reference, drift, recent, count, infinite_share),
        )


_MASK = (1 << RECENT) - 1


def start_watch(scores: Array, radius: float) -> Watch:
    """The watch after calibration scores (m,) in time order; a hit is a score of at most `radius`.

    tau_int is the larger of two estimates, over 30 lags and over a window chosen from the series, as in the audits.

    >>> scores = np.random.default_rng(0).random(1000)
    >>> start_watch(scores, 0.9).trust(0.0).verdict
    'calibration of 1,000 steps is worth about 642 independent ones; expect coverage 0.90 ± 0.03; no drift'
    """
    m = len(scores)
    hits = scores <= radius
    tau_int = max(_at_least_one(integrated_time(hits.astype(float), lags).tau) for lags in (None, LAGS))
    coverage = float(hits.sum()) / (m + 1)
    low, high = bernstein_interval(min(1.0 - coverage, m / (m + 1)), m / tau_int, DELTA, clip=False)
    ordered = np.sort(scores)
    slack, limit = cusum_design(integrated_time(_ranks(ordered, scores).astype(float)), m)
    whole = math.ceil(slack * 2 * m), math.ceil(limit * 2 * m)
    return Watch(Reference(ordered, tau_int, coverage, (high - low) / 2, *whole))


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


def _sentence(reference: Reference, drift: float, recent: float, count: int, infinite_share: float) -> str:
    m, expected = len(reference.scores), f"coverage {reference.coverage:.2f} ± {reference.half_width:.2f}"
    worth = f"calibration of {m:,} steps is worth about {m / reference.tau_int:,.0f} independent ones"
    inside = f"{100 * recent:.0f} % of the last {count} readings were inside"
    if drift >= 1.0:
        now = f"drift: scores have grown since, so {expected} is no longer to be expected; {inside}"
    elif drift <= -1.0:
        now = f"drift: scores have shrunk since, so the sets are larger than they need to be; {inside}"
    else:
        now = f"expect {expected}; no drift"
    limited = f"; the radius was infinite or clipped at {100 * infinite_share:.1f} % of the steps"
    return f"{worth}; {now}{limited if infinite_share else ''}"
