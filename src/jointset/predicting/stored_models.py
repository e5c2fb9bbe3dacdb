"""A predictor as a model folder: what a folder holds, and what is refused before it is written and after it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointset.contracts import Array, Calibration, Filter, Score
from jointset.horizons.horizon import Horizon
from jointset.inputs.graph_edges import Edges
from jointset.inputs.sensor_health import Health, Usual
from jointset.inputs.sensor_places import Places
from jointset.predicting.imputation import Filling, FillQuantiles
from jointset.predicting.reuse import Reuse
from jointset.predicting.soundness import require_next_set, require_sound, require_working
from jointset.support.folders import Stored, refusing, save_folder
from jointset.trust import Watch

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

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
