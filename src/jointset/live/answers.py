"""Answers of a network: to a row, about the next set, about itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError
from jointset.live.happenings import light_of, plain
from jointset.live.store import Entry
from jointset.next_set import next_set, next_sets
from jointset.predicting.clock_coverage import clock_coverage
from jointset.streaming import PAST, whole_verdict
from jointset.writing import json_ready

if TYPE_CHECKING:
    from jointset.live.network import Network
    from jointset.live.standing import Standing

Answer = dict[str, Any]


def answer_of(entry: Entry, sensors: tuple[str, ...]) -> Answer:
    """The answer to a row, as `jointset stream` writes it."""
    if entry.bounds is None:
        return {"row": entry.number, "time": entry.time, "late": True}
    facts = dict(entry.answer)
    top = facts.pop("top")
    bounds = dict(zip(sensors, pairs(entry.bounds), strict=True))
    return {"row": entry.number, "time": entry.time, **facts, "bounds": bounds, "top": top}


def pairs(bounds: Array) -> list[list[float | None]]:
    """Lower and upper ends (2, N) sensor by sensor, as JSON has them."""
    if np.count_nonzero(np.isfinite(bounds)) == bounds.size:
        found: list[list[float | None]] = bounds.T.tolist()
        return found
    return [numbers(ends) for ends in bounds.T]


def numbers(values: Array) -> list[float | None]:
    """The numbers of an array as JSON has them: None where they are not finite."""
    found: list[float | None] = values.tolist()
    if not np.isfinite(values).all():
        found = [x if x is not None and math.isfinite(x) else None for x in found]
    return found


def region(network: Network, standing: Standing, factors: bool = False, horizon: int | None = None) -> Answer:
    """The next set, or those of the next steps, as `jointset predict --json` prints them.

    On request with the covariance of the law of the next reading.
    """
    predictor, limits = standing.predictor, network.settings.limits
    found: Answer
    if horizon is None:
        found = json_ready(next_set(predictor, limits))
    else:
        found = json_ready(next_sets(predictor, predictor.predict(horizon=horizon), limits))
    if factors:
        law = predictor.filter.law(predictor.filter_state).rescale(predictor.shift, predictor.scale)
        shape = getattr(law, "dense", None)
        found["covariance"] = None if shape is None else json_ready(np.asarray(shape()).tolist())
    return found


def trust(network: Network) -> Answer:
    """What the model says of itself, as `jointset stream --trust` does, and its light."""
    standing = network.standing
    try:
        found = standing.predictor.trust(sensors=False)
    except InputError as error:
        return {"verdict": str(error), "light": None, **standing.ailing()}
    past = network.store.outcomes(PAST)
    clock = clock_coverage(past[:, 0], past[:, 1].astype(bool)) if len(past) else None
    told = whole_verdict(found, "" if clock is None else clock.words, standing.ailing())
    counts = {"light": light_of(found), "scored": standing.scored, "inside": standing.inside, "row": standing.number}
    return dict(json_ready({**told, **counts}))


def alarms(network: Network, after: int, limit: int) -> Answer:
    """Open alarms, and what became of alarms after a change's id, oldest first."""
    opened = [plain(one) for one in network.standing.alarms.open]
    changes = [{"change": i, "row": number, **one} for i, number, one in network.store.changes(after, limit)]
    return {"alarms": opened, "changes": changes, "row": network.standing.number}


def about(network: Network) -> Answer:
    """What a network is: its sensors, its cadence, and where it stands."""
    standing = network.standing
    return {
        "name": network.name,
        "sensors": list(network.sensors),
        "cadence": network.rule.cadence,
        "alpha": standing.predictor.alpha,
        "horizon": standing.horizon,
        "row": standing.number,
        "latest": standing.clock.latest,
        "trouble": network.trouble,
    }
