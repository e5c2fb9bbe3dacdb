"""How dependent calibration scores are: autocovariance of hits, integrated time, effective calibration size.

A hit is X_j = 1{score_j <= u}. With hits that repeat each other, m calibration scores are worth fewer independent
ones: m / tau_int, tau_int = 1 + 2 sum_k Corr(X_j, X_{j+k}) (paper, integrated autocorrelation time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from jointset.audits.records import Record, curve, listed, steps_to_forget
from jointset.audits.subject import Subject
from jointset.audits.theory_coverage import bernstein_interval, chebyshev_interval
from jointset.calibration.any_rule import adapts
from jointset.contracts import Array
from jointset.errors import require
from jointset.predicting.integrated_time import LAGS, IntegratedTime, autocovariance, integrated_time

SPREAD = 0.02  # thresholds s* (1 - 0.02), s*, s* (1 + 0.02)
PERIODS = {"daily": 86_400, "weekly": 604_800}  # seconds
SEASONAL = 0.1  # correlation at a seasonal lag below which nothing is said
CLEAR = 3.0  # standard errors by which it has to stand out
BAND = 1.96  # correlations within BAND / sqrt(m) of zero are noise

FOLLOWS = " of a radius that stood still; this one follows its misses"
DELTA = 0.1  # the coverage band holds with probability 1 - DELTA, as in `JointPredictor.trust`


class Season(NamedTuple):
    """Correlation of hits one period apart, and whether it stands out of what half a period and noise explain."""

    lag: int
    correlation: float
    clear: bool


class EffectiveSizes(NamedTuple):
    """What m dependent calibration scores are worth, in the forms of the paper; none exceeds m."""

    m: int
    bernstein: float  # m / tau_int
    geometric: float  # m (1 - rho) / (1 + rho), rho the rate of the indicator autocovariance; NaN without a rate
    chebyshev: float  # m / (1 + 2 sum_k |Gamma_k|); NaN without autocovariances


class IndicatorDependence(NamedTuple):
    """Autocovariance of the hits at three thresholds around the radius; arrays have one row for each threshold."""

    thresholds: Array  # (3,) on the scale of the root score
    share: Array  # (3,) of hits
    lags: Array  # (K + 1,) 0 .. K
    autocovariance: Array  # (3, K + 1), Gamma_0 the variance
    noise: float  # correlations below this are indistinguishable from zero
    rho: Array  # (3,) rate fitted to the lags that stand out of the noise: rho_ind
    rho_all: Array  # (3,) rate fitted to all lags 1 .. K, noise included
    fitted_lags: Array  # (3,) how many lags `rho` rests on
    absolute_sum: Array  # (3,) sum_{k >= 1} |Gamma_k|
    tau: Array  # (3,) tau_int with K lags
    time: IntegratedTime  # at the radius, K lags: the paper's tau_int
    automatic: IntegratedTime  # at the radius, the window chosen from the series: sees longer memory than K lags
    sizes: EffectiveSizes  # from `time`, at the radius
    sizes_automatic: EffectiveSizes  # from `automatic`


def season_of(hits: Array, cadence: int | None) -> dict[str, Season]:
    """Daily and weekly correlation of hits (m,) at steps of `cadence` seconds; periods that do not fit in three times
    are left out, as are those that are no whole number of steps, at least two.

    The standard error of a correlation at a far lag is sqrt((1 + 2 sum r_k^2) / m) over the short lags (Bartlett).
    A week is clear only where it repeats more than the day does.

    >>> season_of(np.tile(np.arange(24.0) != 5, 30), 3600)["daily"]
    Season(lag=24, correlation=1.0, clear=True)
    """
    hits, found = np.asarray(hits, dtype=float), {}
    m = len(hits)
    if cadence is None or not m or np.ptp(hits) == 0:
        return {}
    gamma = autocovariance(hits)
    r = gamma / gamma[0] * m / (m - np.arange(m))
    explained = SEASONAL
    for name, period in PERIODS.items():
        lag = round(period / cadence)
        if lag >= 2 and 3 * lag <= m and abs(lag * cadence - period) <= 0.05 * period:
            noise = CLEAR * float(np.sqrt((1.0 + 2.0 * np.sum(r[1 : lag // 2] ** 2)) / m))
            clear = r[lag] > max(explained, float(r[lag // 2]) + noise)
            found[name] = Season(lag, round(float(r[lag]), 12), bool(clear))
            explained = max(explained, float(r[lag]) + noise)
    return found


def effective_sizes(
    m: int, tau: float, rho: float | None = None, autocovariances: Array | None = None
) -> EffectiveSizes:
    """The effective sizes of m scores from tau_int, the rate rho_ind and the autocovariances at lags 1 .. K.

    >>> effective_sizes(3500, 11.5, 0.85).bernstein
    304.3...
    """
    nan = float("nan")
    total = nan if autocovariances is None else float(np.sum(np.abs(autocovariances)))
    return EffectiveSizes(
        m,
        m / max(tau, 1.0) if tau == tau else nan,
        nan if rho is None else m * (1.0 - rho) / (1.0 + rho),
        m / (1.0 + 2.0 * total),
    )


def indicator_dependence(
    scores: Array, radius: float, *, squared: bool = True, lags: int = LAGS, spread: float = SPREAD
) -> IndicatorDependence:
    """Audit 3 of the paper: autocovariance of 1{root score <= u} at u = s* - 2 %, s*, s* + 2 % for lags 1 .. 30.

    `scores` (m,) in time order and `radius` are those of a calibrated predictor: squared distances (Mahalanobis) unless
    `squared=False` (boxes, root scores). The rate is the slope of log |Gamma_k| over the lags before the first one that
    drowns in the noise band 1.96 / sqrt(m); where fewer than two stand out, it is the lag-1 correlation or, if that
    drowns too, 0. The fit over all lags is reported beside it: on nearly independent hits it measures noise.
    """
    scores = np.asarray(scores, dtype=float)
    scores = scores[~np.isnan(scores)]
    require(scores.ndim == 1, f"indicator autocovariances need one score a step, got shape {scores.shape}")
    require(len(scores) > lags + 1, f"{len(scores)} scores are too few for {lags} lags: use more, or fewer lags")
    require(bool(np.isfinite(radius)), "the radius is infinite: there is no threshold to audit")
    roots, top = (np.sqrt(scores), float(np.sqrt(radius))) if squared else (scores, float(radius))
    thresholds = top * np.array([1.0 - spread, 1.0, 1.0 + spread])
    hits = (roots <= thresholds[:, None]).astype(float)
    gamma = np.stack([autocovariance(row, lags) for row in hits])
    noise = BAND / float(np.sqrt(len(scores)))
    rates = [_rate(row, noise) for row in gamma]
    taus = np.array([integrated_time(row, lags).tau for row in hits])
    # squaring rounds, so that a score at the radius may lie a bit above its own threshold: hits of s* are exact
    middle = (scores <= radius).astype(float)
    time, automatic = integrated_time(middle, lags), integrated_time(middle)
    rho, _, used = (np.array(column) for column in zip(*rates, strict=True))
    sizes = [effective_sizes(len(scores), t.tau, float(rho[1]), gamma[1, 1:]) for t in (time, automatic)]
    return IndicatorDependence(
        thresholds,
        hits.mean(axis=1),
        np.arange(lags + 1),
        gamma,
        noise,
        rho,
        np.array([every for _, every, _ in rates]),
        used,
        np.abs(gamma[:, 1:]).sum(axis=1),
        taus,
        time,
        automatic,
        *sizes,
    )


def _rate(gamma: Array, noise: float) -> tuple[float, float, int]:
    """Rate over the lags that stand out, rate over all lags, and how many stand out."""
    if gamma[0] <= 0:
        return float("nan"), float("nan"), 0
    correlation = np.abs(gamma[1:]) / gamma[0]
    drowned = np.flatnonzero(correlation <= noise)
    clear = int(drowned[0]) if len(drowned) else len(correlation)
    lag = np.arange(1, len(gamma))
    nonzero = correlation > 0

    def slope(chosen: Array) -> float:
        return float(np.exp(np.polyfit(lag[chosen], np.log(correlation[chosen]), 1)[0]))

    every = slope(nonzero) if nonzero.sum() > 1 else float("nan")
    if clear < 2:
        return (float(correlation[0]) if clear else 0.0), every, clear
    return min(slope(lag <= clear), 1.0), every, clear


def band(alpha: float, m_eff: float) -> float:
    """Half-width of the band of long-run coverage with this many independent scores, at 90 % confidence (Bernstein).

    >>> round(band(0.1, 310), 3)
    0.045
    """
    low, high = bernstein_interval(alpha, m_eff, DELTA, clip=False)
    return (high - low) / 2


def effective_size_words(m: int, m_eff: float, alpha: float) -> str:
    """What a calibration block is worth.

    >>> effective_size_words(3427, 310.2, 0.1)
    'calibration of 3,427 steps is worth about 310 independent ones; expect coverage 0.90 ± 0.05'
    """
    if not m_eff > 0:
        return f"calibration of {m:,} steps: all hits or none, so that nothing can be said on their dependence"
    told = f"calibration of {m:,} steps is worth about {m_eff:,.0f} independent ones"
    return f"{told}; expect coverage {1 - alpha:.2f} ± {band(alpha, m_eff):.2f}"


def seasons_words(season: Mapping[str, Season]) -> str:
    """What repeats with the clock; empty where nothing does.

    >>> seasons_words({"daily": Season(24, 0.5, True), "weekly": Season(168, 0.2, False)})
    'repeat every day (correlation 0.50 at lag 24)'
    """
    names = {"daily": "day", "weekly": "week"}
    clear = [(names[name], one) for name, one in season.items() if one.clear]
    told = [f"every {name} (correlation {one.correlation:.2f} at lag {one.lag})" for name, one in clear]
    return f"repeat {' and '.join(told)}" if told else ""


def integrated_time_words(
    tau: float, automatic: float, lags: int, season: Mapping[str, Season] = MappingProxyType({})
) -> str:
    """How long a hit or a miss lasts, and whether they repeat with the clock."""
    if tau != tau:
        return "all hits or none: there is no dependence to measure"
    repeats = seasons_words(season)
    if max(tau, automatic) < 1.5:
        if repeats:
            return (
                f"hits and misses {repeats}; from step to step they hardly depend (tau_int {tau:.1f} over {lags} lags)"
            )
        return f"hits and misses come almost independently (tau_int {tau:.1f} over {lags} lags)"
    told = f"hits and misses come in runs: {tau:.1f} steps are worth one (tau_int over {lags} lags)"
    told = f"{told}; {automatic:.0f} once longer memory is counted" if automatic > 1.5 * tau else told
    return f"{told}; they {repeats}" if repeats else told


def hits_words(rho: float, fitted: int, season: Mapping[str, Season] = MappingProxyType({})) -> str:
    """How hits decorrelate, and whether they repeat with the clock."""
    if rho != rho:
        return "all hits or none: there is no dependence to measure"
    if seasons_words(season):
        return f"hits and misses {seasons_words(season)}: no rate of decay can be read from the lags"
    if fitted == 0:
        return "hits at neighbouring steps are uncorrelated as far as the data can tell"
    steps = math.ceil(steps_to_forget(rho, 0.1))
    return f"a hit says {100 * rho:.0f} % as much a step later: after {steps} steps a tenth is left (rho_ind {rho:.2f})"


def rho_ind(subject: Subject) -> Record:
    """Rate of the autocovariance of hits at the radius and 2 % around it."""
    found = subject.dependence
    correlation = found.autocovariance[1] / max(float(found.autocovariance[1, 0]), 1e-300)
    return {
        "value": float(found.rho[1]),
        "rho": listed(found.rho),
        "rho_all_lags": listed(found.rho_all),
        "fitted_lags": listed(found.fitted_lags),
        "thresholds": listed(found.thresholds),
        "absolute_sum": listed(found.absolute_sum),
        "noise": found.noise,
        "curve": {**curve(found.lags, correlation, "autocorrelation of hits"), "xlabel": "lag"},
        "verdict": hits_words(float(found.rho[1]), int(found.fitted_lags[1]), subject.season),
    }


def tau_int(subject: Subject) -> Record:
    """Integrated autocorrelation time of the hits, over 30 lags and over a window chosen from the series."""
    found = subject.dependence
    correlation = found.autocovariance[1, 1:] / max(float(found.autocovariance[1, 0]), 1e-300)
    sums = 1.0 + 2.0 * np.cumsum(correlation)
    return {
        "value": found.time.tau,
        "standard_error": found.time.standard_error,
        "lags": found.time.window,
        "by_threshold": listed(found.tau),
        "automatic": found.automatic.tau,
        "automatic_window": found.automatic.window,
        "season": {name: one._asdict() for name, one in subject.season.items()},
        "curve": {**curve(found.lags[1:], sums, "tau_int over the lags summed"), "xlabel": "lag"},
        "verdict": integrated_time_words(found.time.tau, found.automatic.tau, found.time.window, subject.season),
    }


def m_eff(subject: Subject) -> Record:
    """Effective calibration size in all forms, and the coverage to expect of a radius that stands still."""
    found, alpha, follows = subject.dependence, subject.alpha, adapts(subject.predictor.calibration)
    paper, automatic = found.sizes, found.sizes_automatic
    size = float(np.fmin(paper.bernstein, automatic.bernstein))  # the window that sees more dependence counts
    gamma = found.autocovariance[1]
    cheb = chebyshev_interval(alpha, paper.m, gamma[1:], variance=float(gamma[0]))
    return {
        "value": size,
        "m": paper.m,
        "bernstein": paper.bernstein,
        "bernstein_automatic": automatic.bernstein,
        "geometric": paper.geometric,
        "chebyshev": paper.chebyshev,
        "coverage_band": listed(bernstein_interval(alpha, size)) if size > 0 else None,
        "chebyshev_band": listed(cheb),
        "adapts": follows,
        "verdict": effective_size_words(paper.m, size, alpha) + FOLLOWS * follows,
    }
