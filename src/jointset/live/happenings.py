"""What an alarm engine sees of one row, and what it tells: plain values without behaviour."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from jointset.contracts import Array
from jointset.predictor import JointPredictor
from jointset.runs import Outcome
from jointset.trust import Trust

KINDS = ("sustained", "sensor", "silent", "stuck", "coverage")
EVENTS = ("raised", "updated", "cleared", "acknowledged", "silenced", "relearned")
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
    pulls: Array | None = None  # (N,) see `pulls_of`; without them no neighbourhood is watched by itself


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
    rows: int = 0  # rows since it was raised


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


def pulls_of(predictor: JointPredictor, y: Array) -> Array | None:
    """How far each reading (N,) is off what all others make of it, in sd, signed; NaN where missing.

    With P the precision of the next law and e the error under it, (P e)_i / sqrt(P_ii): what the rest of the network
    does as well is taken out. None where there is no law.
    """
    given = predictor.given_others(y)
    if given is None:
        return None
    mean, sd = given
    return (y - mean) / sd


def happening(
    predictor: JointPredictor,
    y: Array,
    time: float,
    outcome: Outcome,
    light: str = GREEN,
    silent: tuple[str, ...] = (),
    stuck: tuple[str, ...] = (),
) -> Happening:
    """What a row (N,) was to the predictor that had announced its set; call it with the one before the update."""
    inside = outcome.inside if outcome.observed else None
    shares, pulls = predictor.contributions(y), pulls_of(predictor, y)
    return Happening(time, outcome.score, outcome.radius, inside, math.nan, shares, silent, stuck, light, pulls)


def plain(one: Alarm | Change) -> dict[str, Any]:
    """The fields by name, as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in one._asdict().items()}
