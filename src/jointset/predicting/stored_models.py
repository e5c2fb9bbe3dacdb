"""A predictor as a model folder: what a folder holds, and what is refused before it is written and after it is read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.calibration import Split
from jointset.calibration.fixed import Fixed
from jointset.contracts import Array, Calibration, Filter, Score
from jointset.errors import require
from jointset.horizons.horizon import Horizon
from jointset.inputs.graph_edges import Edges
from jointset.inputs.panel_checks import sensor_names
from jointset.inputs.sensor_health import Health, Usual
from jointset.inputs.sensor_places import Places
from jointset.predicting.imputation import Filling, FillQuantiles
from jointset.predicting.reuse import Reuse
from jointset.support.folders import Stored, refusing, save_folder
from jointset.trust import Watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor


def require_units(sensors: tuple[str, ...], shift: Array, scale: Array) -> None:
    """Refuse names that are none, and a shift or scale of the sensors that no reading can be put on."""
    sensor_names(sensors)
    for name in sensors:
        require(name == name.encode(errors="replace").decode(), f"sensors: {name!r} is not text that can be shown")
    for what, values in (("shift", shift), ("scale", scale)):
        fits = values.shape == (len(sensors),) and values.dtype == np.float64
        require(
            fits, f"{what} has shape {values.shape} of {values.dtype}, expected a number for {len(sensors)} sensors"
        )
        require(bool(np.isfinite(values).all()), f"{what} holds a value that is not finite")
    require(bool((scale > 0).all()), f"scale must be positive, got {scale.min(initial=np.inf):g}")


def require_usual(sensors: tuple[str, ...], usual: Usual | None) -> None:
    """Refuse what is known of sensors where it is of other sensors."""
    parts = [] if usual is None else [part for part in (*usual[:3], usual.own) if part is not None]
    lengths = {np.shape(part) for part in parts}
    require(lengths <= {(len(sensors),)}, f"usual has parts of shapes {sorted(lengths)} for {len(sensors)} sensors")


@np.errstate(all="ignore")
def require_next_set(predictor: JointPredictor, adapts: bool) -> None:
    """Refuse a predictor whose next set is none: not finite at its centre, of no size, or without its own centre.

    Only a rule that adapts may announce the empty set.
    """
    region, n = predictor.predict(), len(predictor.sensors)
    centre, (lower, upper) = np.asarray(region.center), region.bounds
    require(centre.shape == (n,), f"the next set has a centre of shape {centre.shape} for {n} sensors")
    require(bool(np.isfinite(centre).all()), "the centre of the next set is not finite")
    require(not np.isnan([lower, upper]).any(), "the bounds of the next set are not numbers")
    require(adapts or not (lower > upper).any(), "the radius of the next set is negative")


@np.errstate(all="ignore")
def require_working(predictor: JointPredictor, adapts: bool) -> None:
    """Refuse, with whatever error comes, a predictor that cannot take the centre of its next set for a reading."""
    require_next_set(predictor, adapts)
    trial = copy.copy(predictor)
    trial.update(np.array(predictor.predict().center))
    require_next_set(trial, adapts)


def require_sound(predictor: JointPredictor, check: Callable[[JointPredictor, bool], None]) -> None:
    """Refuse parts that do not make a set; `check` says what the next one must be."""
    if predictor.sensors:
        require_units(predictor.sensors, predictor.shift, predictor.scale)
        require_usual(predictor.sensors, predictor.usual)
    if predictor.calibration_state is not None:
        check(predictor, not isinstance(predictor.calibration, Fixed))
        radius = predictor.radius
        require(not isinstance(predictor.calibration, Split) or radius >= 0, f"the radius is negative: {radius:g}")
        same = predictor.watch is None or predictor.trust().n_calibration == predictor.n_calibration
        require(same, "watch and calibration_scores differ in length")


STORED: dict[str, Any] = {  # what a model folder holds, and of what kind it is
    "filter": Filter,
    "score": Score,
    "calibration": Calibration,
    "warmup": int,
    "standardize": bool,
    "sensors": tuple[str, ...],
    "fitted_rows": int,
    "shift": Array,
    "scale": Array,
    "filter_state": Any,
    "calibration_state": Any,
    "calibration_scores": Array,
    "calibration_times": Array | None,
    "watch": Watch | None,
    "last_time": int | None,
    "usual": Usual | None,
    "left_out": tuple[str, ...],
    "reuse": Reuse | None,
    "places": Places | None,
    "graph": Edges | None,
    "horizon": Horizon | None,
    "fill_quantiles": FillQuantiles | None,
    "filling": Filling | None,
    "health": Health | None,
}
# parts that older folders lack, and what stands for them
LATER: dict[str, Any] = dict.fromkeys(
    ("reuse", "places", "graph", "usual", "horizon", "fill_quantiles", "filling", "health", "calibration_times")
)
LATER |= {"fitted_rows": 0, "left_out": ()}


def save_predictor(predictor: JointPredictor, path: str | Path) -> None:
    """Write a model folder, or replace the model of one."""
    with refusing(path):
        require_sound(predictor, require_next_set)
    save_folder(path, {name: getattr(predictor, name) for name in STORED})


def restore_predictor(predictor_class: type[JointPredictor], stored: Stored) -> JointPredictor:
    """The predictor in a model folder that was read."""
    parts = stored.parts(STORED, LATER)
    predictor = predictor_class(parts["filter"], warmup=parts["warmup"])
    for name in STORED:
        setattr(predictor, name, parts[name])
    predictor.scale_gaps()  # older folders do not hold it
    require_sound(predictor, require_working)
    return predictor
