"""From calibration rows to scores, and from these to what a predictor starts with: gaps, radius, watch."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.abilities import OwnSetting, Shaped, expecting, follows_clock, message_start, shares_of
from jointset.algebra.partial import GapScale
from jointset.calibration import ACI, Auto, ByClock, Split
from jointset.calibration.any_rule import (
    AnyRule,
    adapts,
    course,
    next_radii,
    next_time,
    one_score,
    rule_within,
    scores_needed,
    sharing,
    started,
)
from jointset.calibration.fixed import Fixed
from jointset.calibration.gap_levels import (
    at_another_level,
    restarted_strata,
    shares_of_strata,
    told_of_outages,
)
from jointset.calibration.late import LateACI
from jointset.calibration.own_bands import own_quantiles, studentised
from jointset.calibration.quantiles import score_quantile
from jointset.calibration.shared_level import SharedLevel
from jointset.contracts import Array, Calibration, Score
from jointset.errors import InputError, require, some
from jointset.inputs.jumps import usual_jumps
from jointset.inputs.outliers import warn_absurd, warn_codes
from jointset.panel import Panel
from jointset.predicting.passes import laws_of
from jointset.predicting.reuse import Reuse, reuse, shared_rows
from jointset.score_abilities import followed, lean_restarted, sets_of
from jointset.trust import Watch, start_watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

FEWEST_OWN = 200  # hits of its own that a rule that adapts is judged by


def calibrate_next(predictor: JointPredictor, panel: Panel) -> None:
    """Take a predictor through its calibration rows, and start its rule, its watch and the bands of its sensors."""
    warn_absurd(panel, "calibration")
    warn_codes(panel, "calibration")
    rule, values = predictor.calibration, panel.values
    before, shares = predictor.score, shares_of_strata(values[predictor.warmup - 1 :])
    predictor.score = lean_restarted(predictor.score).with_gaps(GapScale(1.0 - predictor.alpha, shares=shares))
    gaps = bool(np.isnan(values).any())
    try:
        measured, times, after, own = measured_rows(predictor, panel, gaps)
        scores = predictor.score.place(measured) if gaps else measured
        of = f"(of {len(values)} rows, warm-up {predictor.warmup})"
        require_enough(rule, len(scores), of, message_start(predictor.filter))
    except InputError:
        predictor.score = before
        raise
    predictor.calibration_scores, predictor.calibration_times = scores, times
    predictor.scale_gaps()
    if scores.ndim == 1 and gaps:  # of rows with gaps they stay at the radius, and move beside it
        predictor.calibration_scores = predictor.score.place(measured)
        predictor.score = told_of_outages(predictor.score, predictor.calibration_scores, values[predictor.warmup - 1 :])
    predictor.moved_to(after, _at_end(rule, started(rule, predictor.calibration_scores, times), panel), panel)
    predictor.start_watch()
    if predictor.usual is not None:
        quantiles = None if own is None else own_quantiles(own[~np.isnan(own).all(axis=1)], predictor.alpha)
        jumps = None if own is None else usual_jumps(own, predictor.graph, panel.cadence)
        predictor.usual = predictor.usual._replace(own=quantiles, jumps=jumps)
    predictor.reuse = _reused(predictor, panel)


def measured_rows(
    predictor: JointPredictor, panel: Panel, gaps: bool
) -> tuple[Array, Array | None, object, Array | None]:
    """What scores are made from, without gaps the scores, their times, and the state after the last row.

    The filter starts afresh. Of the rows with a reading after the warm-up; no times without stamps. The last is the
    studentised residuals of all rows after it, sensor by sensor; None where the law has no variances.
    """
    filter_, warmup, score = predictor.filter, predictor.warmup, predictor.score
    if isinstance(filter_, OwnSetting):  # its sets begin with these rows
        require_read(panel, warmup, message_start(filter_))
        scores, after = filter_.calibrate((panel.values - predictor.shift) / predictor.scale, warmup)
        empty = np.asarray(np.isnan(panel.values).all(axis=1))[warmup - 1 :]
        return scores, _last(panel, warmup, empty, len(scores)), after, None
    parts = []
    for law, rows, after in laws_of(predictor, panel, filter_.start()):
        known, score = followed(score, rows)
        parts.append((known.measure(law, rows) if gaps else known.score(law, rows), studentised(law, rows), after))
    measured = np.concatenate([part for part, _, _ in parts])[warmup - 1 :]
    scores = score.place(measured) if gaps else measured
    missing = np.asarray(np.isnan(scores).any(axis=tuple(range(1, scores.ndim))))
    own = [part for _, part, _ in parts if part is not None]
    studentised_rows = np.concatenate(own)[warmup - 1 :] if own else None
    return measured[~missing], _last(panel, warmup, missing, len(measured)), parts[-1][2], studentised_rows


def _last(panel: Panel, warmup: int, left_out: Array, count: int) -> Array | None:
    """Times of the last `count` rows after the warm-up, without those left out; None without stamps."""
    return None if panel.timestamps is None else np.asarray(panel.timestamps)[warmup - 1 :][~left_out][-count:]


def _at_end(rule: AnyRule, state: object, panel: Panel) -> object:
    """The state when the next row follows the last of a panel."""
    if panel.timestamps is None or not len(panel) or not panel.cadence:
        return state
    return expecting(rule, state, int(panel.timestamps[-1]) + panel.cadence)


def require_read(panel: Panel, warmup: int, who: str) -> None:
    """Refuse calibration rows in which a sensor has fewer than two readings: nothing is left to learn from."""
    few = np.flatnonzero((~np.isnan(panel.values[warmup - 1 :])).sum(axis=0) < 2)
    names = some([panel.sensors[i] for i in few])
    require(
        not len(few) or len(panel) <= warmup,
        f"{who}fewer than two readings of {names} in the calibration rows: leave them out with --drop, or give more",
    )


def _reused(predictor: JointPredictor, panel: Panel) -> Reuse | None:
    """What it costs, if anything, that these calibration rows gave the shape as well."""
    filter_, shaped_on = predictor.filter, predictor.shaped_on
    if shaped_on is None or not isinstance(filter_, Shaped):
        return None
    pieces = filter_.pieces(boxes=sets_of(predictor.score) == "boxes")
    rows = round(predictor.n_calibration * len(shaped_on) / len(panel))
    return reuse(pieces, panel.n_sensors, rows, predictor.alpha, shared_rows(shaped_on, panel))


def require_enough(rule: AnyRule, found: int, of: str, who: str) -> None:
    """Refuse fewer calibration scores than give a finite radius."""
    needed, shared = scores_needed(rule)
    require(
        found >= needed,
        f"{who}{found} calibration scores {of} are too few for alpha={rule.alpha}{shared}: at least "
        f"{needed} are needed; calibrate on more rows, or choose a larger alpha or a shorter warm-up",
    )


def gap_scale(scores: Array, alpha: float) -> GapScale:
    """The coverage and the radius that rows with gaps are scaled to."""
    radius = score_quantile(np.sort(scores), alpha) if scores.ndim == 1 else float("nan")
    return GapScale(1.0 - alpha, radius)


def at_level(predictor: JointPredictor, alpha: float) -> tuple[Score[Any], Array | float]:
    """The score, and what cuts out the next set, of a predictor with a split rule at another miss rate.

    From the same calibration scores; of rows with gaps they stay as they were placed for the level of the model.
    """
    rule = rule_within(predictor.calibration)
    who = "the method itself" if isinstance(rule, Fixed) else type(rule).__name__
    require(
        isinstance(rule, Split),
        f"{message_start(predictor.filter)}{who} keeps to alpha={rule.alpha:g}, for which it was made: "
        f"make a predictor with alpha={alpha:g}, or use the split rule",
    )
    whole, scores = _split_at(predictor.calibration, alpha), predictor.calibration_scores
    require_enough(whole, len(scores), "of the model", message_start(predictor.filter))
    when = next_time(predictor.calibration_state)
    require(
        when is None or predictor.calibration_times is not None,
        f"{message_start(predictor.filter)}an older jointset made this model, which keeps no times of its scores: "
        f"calibrate it again for alpha={alpha:g}",
    )
    state = started(whole, scores, predictor.calibration_times)
    radii = next_radii(whole, state if when is None else expecting(whole, state, when))
    return predictor.score.with_gaps(gap_scale(scores, alpha)), radii


def _split_at(rule: AnyRule, alpha: float) -> AnyRule:
    """A split rule at another miss rate, with the clock and the shares that it has."""
    if isinstance(rule, SharedLevel | ByClock):
        return replace(rule, rule=cast("Calibration[Any]", _split_at(rule.rule, alpha)))
    return replace(cast("Split", rule), alpha=alpha)


def rewrapped(predictor: JointPredictor, calibration: AnyRule) -> JointPredictor:
    """An independent predictor with another rule, started from the same calibration scores."""
    require(
        not isinstance(predictor.calibration, Fixed),
        f"{message_start(predictor.filter)}a row without a wrap has no scores for another one",
    )
    other = copy.copy(predictor)
    other.calibration, other._pending = sharing(calibration, shares_of(predictor.filter)), None
    state = started(other.calibration, predictor.calibration_scores, predictor.calibration_times)
    when = next_time(predictor.calibration_state)
    if when is None and predictor.last_time is not None and predictor.usual is not None and predictor.usual.cadence:
        when = predictor.last_time + predictor.usual.cadence
    other.calibration_state = state if when is None else expecting(other.calibration, state, when)
    other.score = restarted_strata(predictor.score)
    other.horizon = other.horizon and other.horizon.rewrapped(late_rule(calibration))
    if calibration.alpha != predictor.alpha:  # what was calibrated at the other level is no more
        other.score = at_another_level(predictor.score, gap_scale(predictor.calibration_scores, calibration.alpha))
        other.fill_quantiles = other.filling = None
        other.usual = other.usual and other.usual._replace(own=None)
        other.reuse = other.reuse and other.reuse._replace(loss=None)
    other.start_watch()
    return other


def note_of(predictor: JointPredictor) -> str:
    """What is to be known of a calibration, in words; empty where there is nothing."""
    rule, reuse_ = predictor.calibration, predictor.reuse
    notes = [] if reuse_ is None else [reuse_.note(predictor.alpha, adapts(rule))]
    asked = follows_clock(rule) and not isinstance(rule_within(rule), Auto)  # auto takes the clock where there is one
    if asked and predictor.n_calibration and predictor.calibration_times is None:
        notes.append(f"no time stamps, so no clock: the rule is {type(rule_within(rule)).__name__} alone")
    return "; ".join(notes)


def late_rule(rule: AnyRule) -> LateACI:
    """What the radii of the steps ahead follow: late outcomes where the one-step rule adapts, else nothing."""
    inner = rule_within(rule)
    gamma = inner.gamma if isinstance(inner, ACI) else LateACI.gamma
    return LateACI(float(rule.alpha), gamma if adapts(rule) else 0.0)


def watch_from(rule: AnyRule, state: object, scores: Array, times: Array | None = None) -> Watch:
    """What `trust` will compare later scores with: those of calibration (m,) or (m, K), and the rule's state.

    The times of the scores count where the rule follows the clock.
    """
    radius = 1.0 - rule.alpha
    if isinstance(rule, Fixed):
        radius = rule.value
    elif scores.ndim == 1:
        radius = score_quantile(np.sort(scores), rule.alpha)
    seen = one_score(rule, state, scores)
    if not adapts(rule):
        return start_watch(seen, radius)
    return start_watch(seen, radius, 1.0 - rule.alpha, ratios_of(rule, scores, times))


def ratios_of(rule: AnyRule, scores: Array, times: Array | None) -> Array | None:
    """The second half of calibration scores over the radii of a rule that adapts, started on the first half.

    None where there are too few to tell, or where the radius does not move.
    """
    middle = len(scores) // 2
    if middle < max(scores_needed(rule)[0], FEWEST_OWN):
        return None
    first, second = (None, None) if times is None else (times[:middle], times[middle:])
    run, _ = course(rule, started(rule, scores[:middle], first), scores[middle:], second)
    if np.ptp(run.radius) == 0.0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(run.radius > 0.0, run.score / run.radius, math.inf)
