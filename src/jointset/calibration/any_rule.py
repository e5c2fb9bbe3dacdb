"""Any rule, of one radius or of several (`SharedLevel`), asked alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jointset.calibration.by_clock import ByClock, ByClockState
from jointset.calibration.fixed import Fixed
from jointset.calibration.quantiles import minimum_scores
from jointset.calibration.sequence import times_for
from jointset.calibration.shared_level import Course, SharedLevel, SharedState
from jointset.calibration.split import Split
from jointset.contracts import Array, Calibration

AnyRule = Calibration[Any] | SharedLevel


def started(rule: AnyRule, scores: Array, times: Array | None = None) -> Any:
    """State of any rule after calibration scores (m,) or (m, K), with their times where it follows the clock."""
    return rule.start(scores, *times_for(rule, times))


def course(rule: AnyRule, state: Any, scores: Array, times: Array | None = None) -> tuple[Course, Any]:
    """The course of any rule through scores (T,) or (T, K), and its state after the last."""
    if isinstance(rule, SharedLevel):
        return rule.run(state, scores, times)
    radii, state = rule.run(state, scores, *times_for(rule, times))
    return Course(radii, scores, radii), state


def moved(rule: AnyRule, state: Any, scores: Array) -> Any:
    """The state of any rule after the score of one step, or its scores (K,)."""
    return rule.update(state, scores) if isinstance(rule, SharedLevel) else rule.update(state, float(scores))


def next_radii(rule: AnyRule, state: Any) -> Array | float:
    """What cuts out the next set: one radius, or (K,)."""
    return rule.radii(state) if isinstance(rule, SharedLevel) else float(rule.radius(state))


def one_score(rule: AnyRule, state: Any, scores: Array) -> Array:
    """Scores of steps as one number each (T,)."""
    return rule.score(state, scores) if isinstance(rule, SharedLevel) else scores


def sharing(rule: AnyRule, shares: tuple[float, ...] | None) -> AnyRule:
    """The rule, told how its radii share the miss rate where it has several."""
    return replace(rule, shares=shares) if isinstance(rule, SharedLevel) and shares is not None else rule


def scores_needed(rule: AnyRule) -> tuple[int, str]:
    """Fewest calibration scores for finite radii, and what the miss rate is shared by."""
    if isinstance(rule, SharedLevel):
        return rule.needed, f" shared by {len(rule.shares)} components"
    return minimum_scores(rule.alpha), ""


def next_time(state: object) -> int | None:
    """When the state of a rule expects the next row (epoch seconds); None where it follows no clock."""
    if isinstance(state, SharedState):
        return next_time(state.rule)
    return state.next if isinstance(state, ByClockState) and state.cadence else None


def rule_within(rule: AnyRule) -> Calibration[Any]:
    """The rule that moves the level, without what shares it or divides by the clock; else the rule itself."""
    return rule_within(rule.rule) if isinstance(rule, SharedLevel | ByClock) else rule


def adapts(rule: AnyRule) -> bool:
    """Whether the rule moves its radius, towards the coverage asked for."""
    return not isinstance(rule_within(rule), Split | Fixed)
