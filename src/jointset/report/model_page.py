"""The page of a fitted model: its verdict, scores against radius, who is to blame, bands, alarms, hours and sensors."""

from __future__ import annotations

import base64
import dataclasses
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jointset.calibration.own_bands import own_rule
from jointset.contracts import Array
from jointset.errors import InputError, some
from jointset.inputs.sensor_places import Places, drawing, places_of
from jointset.joint_predictor import JointPredictor
from jointset.live.formats import Whole
from jointset.live.happenings import Change
from jointset.live.standing import engine_for, start, taken
from jointset.next_set import announced
from jointset.pages.shell import render_page, write_text
from jointset.panel import Panel
from jointset.predicting.clock_coverage import ClockCoverage, clock_coverage
from jointset.predicting.passes import Progress
from jointset.predicting.promise import FAR, promise_of
from jointset.runs import Run
from jointset.writing import json_ready

UNTIMED = 300  # seconds between rows without time stamps, for alarms that count in days


class AlarmCourse(NamedTuple):
    """Shares of the score (T, N), changes of alarms, each with its row, and the sensors that are ill at the end."""

    shares: Array
    changes: list[tuple[int, Change]]
    ailing: dict[str, str]

    def alarms(self) -> list[dict[str, Any]]:
        """The alarms as they were raised, each with its first and last row; `until` is None while it lasts."""
        found: dict[str, dict[str, Any]] = {}
        for row, one in self.changes:
            where = one.neighbourhood[0] if len(one.neighbourhood) > 1 else ""
            about = {"kind": one.kind, "sensors": list(one.who), "where": where, "text": one.words}
            known = found.get(one.id, {"row": row, "since": one.since})
            found[one.id] = {**known, **about, "end": row, "until": one.time if one.event == "cleared" else None}
        return list(found.values())


def alarm_course(predictor: JointPredictor, panel: Panel, progress: Progress | None = None) -> AlarmCourse:
    """Go through the rows of a panel; the predictor given is left as it was."""
    cadence = panel.cadence or UNTIMED
    engine = engine_for(predictor, cadence)
    standing, shares, changes = start(predictor.copy(), engine), [], []
    first = (predictor.last_time or 0) + cadence
    times = first + cadence * np.arange(len(panel)) if panel.timestamps is None else panel.timestamps
    for row, (values, seconds) in enumerate(zip(panel.values, times.tolist(), strict=True)):
        try:
            standing, entry, told = taken(standing, engine, Whole(values, seconds, seconds))
        except InputError:  # an absurd reading: a row that says nothing
            standing, entry, told = taken(standing, engine, Whole(np.full(len(values), np.nan), seconds, seconds))
        shares.append(np.zeros(len(values)) if entry.shares is None else np.maximum(np.nan_to_num(entry.shares), 0.0))
        changes += [(row, one) for one in told]
        if progress is not None:
            progress(1)
    ailing = {name: kind for kind, names in standing.ailing().items() for name in names}
    return AlarmCourse(np.array(shares).reshape(len(panel), -1), changes, ailing)


SCRIPTS = (
    *("elements.js", "scales.js", "station.js", "sheet.js", "scorechart.js", "sensormap.js", "bandchart.js"),
    *("panels.js", "board.js", "model.js"),
)
ROWS = 3_000  # last rows that a page holds sensor by sensor, with their alarms,
CELLS = 300_000  # and readings in all
ILL = ("silent", "stuck")


class Course(NamedTuple):
    """A model and the rows it went through: before them, after them, the run, and alarms of the last K rows."""

    before: JointPredictor
    after: JointPredictor
    run: Run | None
    told: AlarmCourse


def write_model_page(
    path: Path, name: str, predictor: JointPredictor, panel: Panel | None = None, progress: Progress | None = None
) -> None:
    """Write the page of a model, with the rows that follow those it has seen where they are given."""
    write_course_page(path, name, course_of(predictor, panel, progress), None if panel is None else places_of(panel))


def write_course_page(path: Path, name: str, course: Course, places: Places | None = None) -> None:
    """Write the page of a model that went through rows; `places` are for a model that keeps none."""
    data = page_data(name, course, course.before.places or places)
    shown = {"title": name, "about": about(course), "verdict": data["verdict"], "target": 1.0 - course.before.alpha}
    write_text(path, render_page("board", shown, SCRIPTS, data))


def course_of(predictor: JointPredictor, panel: Panel | None, progress: Progress | None = None) -> Course:
    """Go through the rows of a panel, through the last as the service does; the predictor given is left as it was."""
    before, after = predictor.copy(), predictor.copy()
    if panel is None or not len(panel):
        return Course(before, after, None, AlarmCourse(np.zeros((0, len(predictor.sensors))), [], {}))
    kept = min(len(panel), ROWS, max(1, CELLS // len(predictor.sensors)))
    first, last = panel[: len(panel) - kept], panel[len(panel) - kept :]
    head = after.run(first, regions=False, progress=progress) if len(first) else None
    told = alarm_course(after, last, progress)
    run = after.run(last, regions=False)
    return Course(before, after, run if head is None else joined(head, run), told)


def joined(first: Run, second: Run) -> Run:
    """Two runs, one after the other, as one."""
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(first, field.name), getattr(second, field.name)])
        for field in dataclasses.fields(Run)
        if isinstance(getattr(second, field.name), np.ndarray)
    }
    return dataclasses.replace(second, **arrays)


def about(course: Course) -> str:
    """The model and the rows in a line."""
    predictor, run = course.before, course.run
    model = f"{len(predictor.sensors):,} sensors, {100 * (1 - predictor.alpha):g} % sets"
    rows = "" if run is None else f" on {len(run.score):,} later rows"
    return f"{model}, calibrated on {predictor.n_calibration:,} scores{rows}"


def page_data(name: str, course: Course, places: Places | None) -> dict[str, Any]:
    """What the scripts of the page draw."""
    before, after, run = course.before, course.after, course.run
    sensors, m = before.sensors, before.n_calibration
    told = course.told
    first = 0 if run is None else len(run.score) - len(told.shares)
    rows = calibration_rows(before) if run is None else run_rows(run)
    return {
        "name": name,
        "sensors": list(sensors),
        **drawing(places, before.graph, len(sensors)),
        "alpha": before.alpha,
        "own": own_rule(before.score, None if before.usual is None else before.usual.own),
        "count": m if run is None else len(run.score),
        **rows,
        "detail": detail(run, told.shares),
        "alarms": [{**one, "row": first + one["row"], "end": first + one["end"]} for one in told.alarms()],
        "ailing": told.ailing,
        "next": announced(after),
        "trust": trust_of(after),
        "verdict": verdict(course),
        "words": clock_words(course),
    }


def calibration_rows(predictor: JointPredictor) -> dict[str, Any]:
    """The scores of calibration against the radius of the next set: all that a model knows without rows."""
    scores = predictor.calibration_scores
    one = scores if scores.ndim == 1 else scores.max(axis=1)
    radius = np.full(len(one), predictor.radius if scores.ndim == 1 else np.nan)
    return columns(None, one, radius, np.where(np.isnan(one), -1, one <= radius if scores.ndim == 1 else 1))


def run_rows(run: Run) -> dict[str, Any]:
    """Times, scores, radii and outcomes of a run."""
    return columns(run.timestamps, run.score, run.radius, np.where(np.isnan(run.score), -1, run.inside))


def columns(times: Array | None, scores: Array, radii: Array, inside: Array) -> dict[str, Any]:
    """Columns of rows as the scripts take them."""
    return {
        "times": None if times is None else packed(times, "<f8"),
        "scores": packed(scores, "<f4"),
        "radii": packed(radii, "<f4"),
        "inside": packed(inside, "i1"),
    }


def detail(run: Run | None, shares: Array) -> dict[str, Any]:
    """Readings, bands and shares of the last rows, sensor by sensor."""
    count = len(shares)
    first = 0 if run is None else len(run.score) - count
    parts = {"value": shares, "lower": shares, "upper": shares} if run is None else {
        "value": run.values[first:], "lower": run.lower[first:], "upper": run.upper[first:]
    }  # fmt: skip
    fields = {field: packed(part, "<f4") for field, part in (parts | {"share": shares}).items()}
    return {"first": first, "count": count, **fields}


def packed(numbers: Array, kind: str) -> str:
    """An array as text, in the order of its bytes."""
    with np.errstate(over="ignore"):
        return base64.b64encode(np.ascontiguousarray(numbers, dtype=kind).tobytes()).decode()


def trust_of(predictor: JointPredictor) -> dict[str, Any] | None:
    """The predictor's trust as the scripts take it; None where it has none."""
    with suppress(InputError):
        found: dict[str, Any] = json_ready(predictor.trust()._asdict())
        return found
    return None


def calm_clock(course: Course) -> ClockCoverage | None:
    """Coverage by the clock of the rows without an alarm of the network: an incident says nothing of its hour."""
    run = course.run
    if run is None:
        return None
    calm = ~np.isnan(run.score)
    first = len(calm) - len(course.told.shares)
    for one in course.told.alarms():
        if one["kind"] == "sustained":
            calm[first + one["row"] : first + one["end"] + 1] = False
    return clock_coverage(run.timestamps, run.inside, calm)


def clock_words(course: Course) -> str:
    """What differs by the clock, as a sentence; empty without a clock."""
    clock = calm_clock(course)
    if clock is None:
        return ""
    return f"Inside {clock.words}." if clock.words else "No hour and no weekday differs by more than chance explains."


def verdict(course: Course) -> dict[str, str]:
    """The traffic light and one sentence: what was promised beside what was seen, and what speaks against it."""
    run, trust, ailing = course.run, trust_of(course.after), course.told.ailing
    promise = None if run is None else promise_of(course.before, run)
    if run is None or promise is None:
        worth = "" if trust is None else f"; {trust['verdict']}"
        return {"light": "grey", "sentence": f"No later rows to judge by{worth}."}
    light, told = {"kept": "green", "far": "red"}.get(promise.word, "amber"), [promise.sentence]
    clock = calm_clock(course)
    if clock is not None and clock.worst <= promise.target - FAR:
        light, told = "red", [*told, f"inside {clock.words}"]
    doubts = [
        f"{kind} at the end: {some(names)}" for kind in ILL if (names := [n for n in ailing if ailing[n] == kind])
    ]
    if trust is not None and trust["drift_alarm"]:
        doubts.append("too few of the last rows were inside" if trust["coverage_alarm"] else "scores have drifted")
    sentence = "; ".join([*told, *doubts])
    return {
        "light": "amber" if doubts and light == "green" else light,
        "sentence": f"{sentence[0].upper()}{sentence[1:]}.",
    }
