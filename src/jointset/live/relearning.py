"""A model calibrated again on rows that it was sent: what an operator does after a change that is there to stay."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from jointset.errors import InputError, require
from jointset.live.alarms import Alarms
from jointset.live.happenings import Change
from jointset.live.standing import Standing, engine_for, usual_scores
from jointset.live.store import ROW, Entry, Store
from jointset.panel import Panel
from jointset.predicting.membership import calibrate_as_before

ENDED = ("sustained", "coverage")  # alarms that a new calibration ends
MOST = 10_000  # rows to calibrate on


def rows_since_change(standing: Standing, store: Store, rows: int | None) -> tuple[int, int]:
    """First and last number of the log to calibrate on: the last rows, or those since an acknowledged change."""
    last = standing.number
    if rows is not None:
        return store.start_of_last(min(rows, MOST)), last
    known = [one.since for one in standing.alarms.open if one.kind in ENDED and one.acknowledged]
    require(bool(known), "no change was acknowledged: acknowledge its alarm first, or say how many rows (rows=...)")
    return store.start_of_last(MOST, since=int(min(known))), last


def recalibrated(standing: Standing, engine: Alarms, rows: Sequence[Entry]) -> tuple[Standing, Alarms, list[Change]]:
    """The network calibrated on rows of its log, those that counted, and its alarms; those of the change end.

    The filter takes the same rows again from its start, so it stands where it stood, but for what it has forgotten.
    Limits of jumps are renewed; those of before stay where the rows are too few for them.
    """
    kept = [row for row in rows if row.kind == ROW and row.values is not None]
    require(bool(kept), "there are no rows to calibrate on yet")
    values = np.stack([row.values for row in kept if row.values is not None])
    times = np.array([row.seconds for row in kept])
    predictor, before = standing.predictor.copy(), standing.predictor.usual
    increasing = bool((np.diff(times) > 0).all())
    panel = Panel(values, predictor.sensors, timestamps=times if increasing else None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibrate_as_before(predictor, panel, standing.horizon or 1)
    except InputError as error:
        raise InputError(f"cannot calibrate on {len(kept)} rows: {error}") from None
    if predictor.usual is not None and predictor.usual.jumps is None and before is not None:
        predictor.usual = predictor.usual._replace(jumps=before.jumps)
    state, changes = standing.alarms, []
    for alarm in state.open:
        if alarm.kind in ENDED:
            state, told = engine.act(state, alarm.id, "clear", standing.clock.latest or 0)
            changes += told
    engine = engine_for(predictor, engine.cadence, engine.config)
    fresh = engine.start(usual_scores(predictor))
    alarms = fresh._replace(open=state.open, alarms=state.alarms)
    return standing._replace(number=standing.number + 1, predictor=predictor, alarms=alarms), engine, changes
