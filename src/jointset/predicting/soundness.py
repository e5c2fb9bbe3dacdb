"""Whether a predictor is fit to be kept: asked before it is saved and after it is loaded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from jointset.calibration import Split
from jointset.calibration.fixed import Fixed
from jointset.contracts import Array
from jointset.errors import require
from jointset.inputs.panel_checks import sensor_names
from jointset.inputs.sensor_health import Usual

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
