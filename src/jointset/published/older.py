"""Model folders of published methods as older versions wrote them: they go on as predictors of today."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.inputs.sensor_health import Usual
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import PublishedState, published
from jointset.storage import storable
from jointset.support.folders import Stored

STORED: dict[str, Any] = {
    "rule": Any,
    "backbone": Any,
    "warmup": int,
    "standardize": bool,
    "cold": bool,
    "sensors": tuple[str, ...],
    "shift": Array,
    "scale": Array,
    "history": Array,
    "seen": int,
    "state": Any,
    "usual": Usual | None,
}
LATER = {"cold": False, "seen": 0, "usual": None}
NAMES = {"CopulaRule": "copula", "MultiDimRule": "multidim-spci", "SPCIRule": "spci", "HopCPTRule": "hopcpt"}
USUAL = ("authors", "forest")  # variants without a name of their own


@storable
class WrappedState(NamedTuple):
    """States of the rule and of the wrap, the scores it started from, and the least half-width of every sensor (N,)."""

    own: Any
    wrap: Any
    scores: Array
    least: Array


@storable
@dataclass(frozen=True)
class WrappedRule:
    """A published rule for the sets and a calibration rule for their factor."""

    own: Any
    wrap: Any
    share: float = 0.5


def from_older(stored: Stored) -> JointPredictor:
    """The predictor in such a folder. Its rule goes on in the units of the data, as it was calibrated."""
    parts = stored.parts(STORED, LATER)
    rule, state = parts["rule"], parts["state"]
    wrap = rule.wrap if isinstance(rule, WrappedRule) else None
    own = rule if wrap is None else rule.own
    variant = getattr(own, "variant", USUAL[0])
    name = NAMES[type(own).__name__] + ("" if variant in USUAL else f"-{variant}")
    predictor = published(own, name, backbone=parts["backbone"], wrap=wrap, warmup=parts["warmup"])
    predictor.filter = replace(predictor.filter, cold=parts["cold"], unit=parts["scale"])
    for part in ("standardize", "sensors", "shift", "scale", "usual"):
        setattr(predictor, part, parts[part])
    if state is None:
        return predictor
    least = None
    predictor.calibration_state, predictor.calibration_scores = (), np.empty(0)
    if wrap is not None:
        state, predictor.calibration_state, predictor.calibration_scores, least = state
        predictor.start_watch()
    parameters, state = own.radii(state, np.empty((0, len(predictor.sensors))))
    ahead = tuple(np.array(part[-1:]) for part in parameters)
    predictor.filter_state = PublishedState(parts["history"], parts["seen"], state, ahead, least)
    return predictor
