"""Rows gone through as the service does, one by one: who is to blame in each, and what became of alarms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError
from jointset.joint_predictor import JointPredictor
from jointset.live.formats import Whole
from jointset.live.happenings import Change
from jointset.live.standing import engine_for, start, taken
from jointset.panel import Panel
from jointset.predicting.passes import Progress

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
