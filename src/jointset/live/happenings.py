"""What an alarm engine sees of one row, and what it tells: plain values without behaviour."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from jointset.contracts import Array
from jointset.streaming import Step
from jointset.trust import Trust

KINDS = ("sustained", "sensor", "silent", "stuck", "coverage")
Names = tuple[str, ...]
GREEN, AMBER, RED = "green", "amber", "red"


class Happening(NamedTuple):
    """One row: the score against its radius, who is to blame, which sensors are ill, and the light of the model.

    A row without any reading has the score NaN.
    """

    time: float  # epoch seconds
    score: float
    radius: float
    inside: bool | None
    rank: float  # p-value of the score among the calibration scores; NaN: the engine finds it itself
    shares: Array  # (N,) how much of the score each sensor accounts for; 0 or NaN where missing
    silent: tuple[str, ...]
    stuck: tuple[str, ...]
    trust: str  # GREEN, AMBER or RED
    errors: Array | None = None  # (N,) in sd of the law, NaN where missing; without them nobody looks for jumps


class Alarm(NamedTuple):
    """One open alarm: what it is about, since when, and what people did about it."""

    id: str
    kind: str
    since: float
    changed: float  # time of the last change that was told
    who: tuple[str, ...]  # most to blame first
    neighbourhood: tuple[str, ...]  # its centre first
    severity: str  # "warning" or "critical"
    words: str
    acknowledged: bool = False
    silenced_until: float | None = None
    calm: int = 0  # rows in a row without the cause
    rows: int = 0  # rows since it was raised, or came again
    local: bool = False  # one neighbourhood's own, found by a jump


class Change(NamedTuple):
    """What to tell the world about an alarm. `muted` ones are kept and shown, but sent to nobody."""

    id: str
    kind: str
    event: str
    since: float
    time: float
    who: tuple[str, ...]
    neighbourhood: tuple[str, ...]
    severity: str
    words: str
    acknowledged: bool
    muted: bool


def change(alarm: Alarm, event: str, time: float) -> Change:
    """An event of an alarm; silenced ones are muted until the silence ends."""
    muted = alarm.silenced_until is not None and time < alarm.silenced_until and event != "silenced"
    kept = (alarm.who, alarm.neighbourhood, alarm.severity, alarm.words, alarm.acknowledged)
    return Change(alarm.id, alarm.kind, event, alarm.since, time, *kept, muted)


def light_of(trust: Trust) -> str:
    """The traffic light of a verdict: red where coverage is lost, amber where scores drift.

    Coverage that lies above what was promised costs size, not safety: amber.
    """
    return light(trust.drift_alarm, trust.coverage_alarm)


def light(drifted: bool, lost: bool) -> str:
    """The traffic light of scores that have drifted, and of coverage that is lost."""
    return RED if lost else AMBER if drifted else GREEN


def happening(step: Step, time: float, trust: str, silent: Names = (), stuck: Names = ()) -> Happening:
    """What a row came to, as alarms see it."""
    score, radius, inside, observed = step.outcome
    facts = (time, score, radius, inside if observed else None, math.nan, step.shares)
    return Happening(*facts, silent, stuck, trust, step.errors)


def plain(one: Alarm | Change) -> dict[str, Any]:
    """The fields by name, as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in one._asdict().items()}


def alarm_of(read: list[Any]) -> Alarm:
    """An alarm as JSON gives it; older ones lack the last fields."""
    fields: list[Any] = [tuple(one) if isinstance(one, list) else one for one in read]
    return Alarm(*fields)
