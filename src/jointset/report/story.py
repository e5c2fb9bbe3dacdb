"""The demonstration's story: a simulated city with an incident and a fault, and how they are found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jointset.datasets.city import CADENCE, DAY, Fault, Incident, simulate_city, with_trouble
from jointset.filters.telling import Told
from jointset.inputs.times import iso
from jointset.methods import predictor_for
from jointset.panel import Panel
from jointset.predicting.passes import Counting, silent
from jointset.report.model_page import Course, course_of

METHOD = "quick"
TRAIN, CALIBRATION, STORY = 7 * DAY, 3 * DAY, 2 * DAY  # rows
WITHIN = 30  # rows after something happened in which an alarm can be about it


class Event(NamedTuple):
    """Something that happened, and the alarm that found it, if any did."""

    what: str
    when: str
    sensor: str
    first: int
    rows: int
    alarm: dict[str, Any] | None = None

    @property
    def late(self) -> int | None:
        """Minutes from the event to its alarm."""
        return None if self.alarm is None else (self.alarm["row"] - self.first) * CADENCE // 60


class Story(NamedTuple):
    """A model that went through days of trouble, what happened in them, and the alarms that are about nothing."""

    course: Course
    events: list[Event]
    false_alarms: list[dict[str, Any]]


def tell_story(
    seed: int = 0,
    alpha: float = 0.1,
    started: Callable[[str], None] = lambda what: None,
    fitting: Told | None = None,
    going: Counting = silent,
) -> Story:
    """Simulate, fit, and go through two days with an incident in the evening and a detector that freezes at night.

    What begins is told to `started`, the steps of the fit to `fitting`, and rows of the two days to `going`.
    """
    started("simulating")
    city = simulate_city(TRAIN + CALIBRATION + STORY, seed)
    train, calibration, calm = city.split([part / len(city) for part in (TRAIN, CALIBRATION, STORY)])
    names = city.sensors
    incident = Incident(round(0.68 * DAY), 30, names[(28 + 7 * (seed + 1)) % len(names)])
    fault = Fault(DAY + 40, 70, names[(16 + 5 * seed) % len(names)], "stuck")
    days = with_trouble(calm, [incident], [fault])
    started("fitting")
    predictor = predictor_for(METHOD, alpha=alpha)
    predictor.fit(train, progress=fitting).calibrate(calibration)
    started("going through two days")
    course = course_of(predictor, days, going(len(days)))
    alarms = course.told.alarms()
    events = [_event("incident", incident, days), _event("stuck detector", fault, days)]
    found = [event._replace(alarm=_about(event, alarms)) for event in events]
    used = [event.alarm for event in found]
    return Story(course, found, [one for one in alarms if one not in used and not _explained(one, found)])


def _event(what: str, trouble: Incident | Fault, days: Panel) -> Event:
    assert days.timestamps is not None
    when = iso(days.timestamps[trouble.first])[:16].replace("T", " ")
    return Event(what, when, trouble.sensor, trouble.first, trouble.rows)


def _about(event: Event, alarms: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first alarm soon after an event that names its detector."""
    kinds = ("stuck",) if event.what.startswith("stuck") else ("sustained", "sensor")
    near = (one for one in alarms if one["kind"] in kinds and 0 <= one["row"] - event.first <= WITHIN)
    return next((one for one in near if event.sensor in (one["where"], *one["sensors"])), None)


def _explained(alarm: dict[str, Any], events: list[Event]) -> bool:
    """Whether an alarm falls into the time of an event, or just after it."""
    return any(event.first <= alarm["row"] <= event.first + event.rows + WITHIN for event in events)
