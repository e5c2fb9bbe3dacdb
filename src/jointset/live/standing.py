"""Where a served network stands: a plain value, moved on by rows and by what an operator does.

`taken` is the one way on, live and when a store is replayed; so both come to the same bits.

Which rows count: a row counts when it is later than the last one that counted. One that is not is late: it is kept, and
does not move the predictor. Three late rows one after another, each later than the one before it, say that the clock
was set back: from the third they count; several of one time, as of sensors that report one by one, are as one there. A
row far ahead counts; when the next one falls between it and the row before it, the leap was a wild time stamp, and rows
count on from there. So a wrong clock stops nothing for longer than two rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.calibration.any_rule import one_score
from jointset.contracts import Array
from jointset.errors import InputError
from jointset.inputs.sensor_health import Health, Usual, ailing, observe, start_health, unknown_usual
from jointset.joint_predictor import JointPredictor
from jointset.live.alarms import Alarms, Config, State, state_from_json, state_to_json
from jointset.live.formats import Whole
from jointset.live.happenings import GREEN, Change, Happening, happening, light
from jointset.live.store import ACTION, LATE, ROW, Entry
from jointset.predicting.limits import UNLIMITED, Limits
from jointset.predicting.stored_models import STORED
from jointset.streaming import Step, expecting, take_step

SET_BACK = 3  # late rows in order that make another clock
LEAP = 1_000  # usual steps that are far ahead
DAY = 86_400
FROZEN = {  # parts that rows and actions leave alone
    *("filter", "warmup", "standardize", "sensors", "fitted_rows", "shift", "scale", "left_out", "places", "graph")
}
NUMBERS = ("score", "radius", "inside", "observed")  # of an answer that a replay must come to again
TOP = 3  # sensors that an answer names


class Clock(NamedTuple):
    """Times, in epoch seconds, of the last rows of a network."""

    latest: int | None = None  # of the last row that counted
    before: int | None = None  # of the one before it, where the last one leapt far ahead
    late: int | None = None  # of the last late row, where rows are late one after another
    behind: int = 0  # how many are so in order


def judge(clock: Clock, seconds: int, cadence: int | None) -> tuple[bool, Clock]:
    """Whether a row of this time counts, and the clock after it.

    >>> clock = Clock(latest=1000)
    >>> judge(clock, 1060, 60)[0], judge(clock, 940, 60)[0]
    (True, False)
    """
    latest = clock.latest
    if latest is None or seconds > latest:
        far = latest is not None and seconds - latest > max(LEAP * (cadence or 0), DAY)
        return True, Clock(seconds, latest if far else None)
    if clock.before is not None and seconds > clock.before:
        return True, Clock(seconds)
    if seconds == clock.late:  # another sensor of that step
        return False, clock
    behind = clock.behind + 1 if clock.late is not None and seconds > clock.late else 1
    if behind == SET_BACK:
        return True, Clock(seconds)
    return False, clock._replace(late=seconds, behind=behind)


class Standing(NamedTuple):
    """The state after a number of the log."""

    number: int
    predictor: JointPredictor
    health: Health
    clock: Clock
    alarms: State
    scored: int = 0  # rows since the store began that had a score, and those inside
    inside: int = 0

    @property
    def usual(self) -> Usual:
        """How long each sensor is usually silent, or stands still."""
        return self.predictor.usual or unknown_usual(len(self.predictor.sensors))

    @property
    def horizon(self) -> int | None:
        """Steps ahead that the model has sets for, beside the next one."""
        return None if self.predictor.horizon is None else self.predictor.horizon.steps

    def ailing(self) -> dict[str, list[str]]:
        """Names of the sensors that are silent, and of those that are stuck."""
        return ailing(self.health, self.usual, self.predictor.sensors)


def engine_for(predictor: JointPredictor, cadence: float | None, config: Config | None = None) -> Alarms:
    """The alarms of a model."""
    usual = predictor.usual.cadence if predictor.usual else None
    names, graph = predictor.sensors, predictor.graph
    adjacency = None if graph is None else graph.adjacency(len(names))
    jumps = predictor.usual.jumps if predictor.usual else None
    return Alarms(config or Config(), names, adjacency, cadence or usual, jumps)


def usual_scores(predictor: JointPredictor) -> Array:
    """Calibration scores (m,) as rows will have theirs: of several radii on the scale of the rule."""
    return one_score(predictor.calibration, predictor.calibration_state, predictor.calibration_scores)


def start(predictor: JointPredictor, engine: Alarms) -> Standing:
    """Before the first row."""
    alarms = engine.start(usual_scores(predictor))
    predictor = predictor.copy()
    predictor.health = None  # of the calibration rows; the service counts from its own first row
    return Standing(0, predictor, start_health(len(predictor.sensors)), Clock(), alarms)


def taken(
    standing: Standing, engine: Alarms, row: Whole, limits: Limits = UNLIMITED
) -> tuple[Standing, Entry, list[Change]]:
    """After one more row: it counts, or is kept as late. With it come its entry and what became of alarms."""
    number = standing.number + 1
    counts, clock = judge(standing.clock, row.seconds, standing.usual.cadence)
    if not counts:
        entry = Entry(number, LATE, row.seconds, row.time, row.values, {})
        return standing._replace(number=number, clock=clock), entry, []
    step = take_step(expecting(standing.predictor, row.seconds), row.values, TOP, limits)
    step.after.last_time = row.seconds
    inside, health = step.facts["inside"], observe(standing.health, row.values)
    alarms, changes = engine.step(standing.alarms, _happening(step, row, health, standing.usual))
    scored, hits = standing.scored + (inside is not None), standing.inside + (inside is True)
    after = Standing(number, step.after, health, clock, alarms, scored, hits)
    shares = (step.shares / (float(np.abs(step.shares).sum()) or 1.0)).astype(np.float32)
    answer = {**step.facts, "top": step.top}
    entry = Entry(number, ROW, row.seconds, row.time, row.values, answer, np.array(step.bounds), shares)
    return after, entry, changes


def replayed(standing: Standing, engine: Alarms, entry: Entry) -> tuple[Standing, bool]:
    """After an entry of the log, and whether it came to the same numbers as when it was written."""
    if entry.kind == ACTION:
        try:
            return acted(standing, engine, entry.answer)[0], True
        except InputError:  # another cadence or version: the alarm that it was about is not open
            return standing._replace(number=entry.number), False
    if entry.answer.get("single"):
        return standing._replace(number=entry.number), True
    assert entry.values is not None and entry.seconds is not None
    after, again, _ = taken(standing, engine, Whole(entry.values, entry.seconds, entry.time))
    return after, all(again.answer.get(name) == entry.answer.get(name) for name in NUMBERS)


def _happening(step: Step, row: Whole, health: Health, usual: Usual) -> Happening:
    """What the alarms see of a row."""
    ill = ailing(health, usual, step.after.sensors)
    return happening(step, row.seconds, _light(step.after), tuple(ill["silent"]), tuple(ill["stuck"]))


def _light(predictor: JointPredictor) -> str:
    """The light of a model; green where it has no verdict on itself."""
    return GREEN if predictor.watch is None else light(*predictor.watch.alarms())


def acted(standing: Standing, engine: Alarms, action: dict[str, Any]) -> tuple[Standing, list[Change]]:
    """After an operator's action on an alarm."""
    given = (action["id"], action["action"], action["time"], action.get("until"))
    alarms, changes = engine.act(standing.alarms, *given)
    return standing._replace(number=standing.number + 1, alarms=alarms), changes


def parts_of(standing: Standing) -> dict[str, Any]:
    """What a snapshot holds: everything that moves."""
    parts = {f"predictor.{name}": getattr(standing.predictor, name) for name in STORED if name not in FROZEN}
    counts = (standing.number, standing.scored, standing.inside)
    state = {"health": tuple(standing.health), "clock": tuple(standing.clock), "counts": counts}
    return {**parts, **state, "alarms": state_to_json(standing.alarms)}


def of_parts(parts: dict[str, Any], model: JointPredictor) -> Standing:
    """The standing of a snapshot of this model."""
    predictor = JointPredictor(model.filter, warmup=model.warmup)
    for name in STORED:
        own = getattr(model, name)  # also of what an older version did not keep
        setattr(predictor, name, own if name in FROZEN else parts.get(f"predictor.{name}", own))
    number, scored, inside = parts["counts"]
    health, clock = Health(*parts["health"]), Clock(*parts["clock"])
    return Standing(number, predictor, health, clock, state_from_json(parts["alarms"]), scored, inside)
