"""From training rows to a fitted predictor: units, filter, and what is usual of its sensors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.abilities import Shaped, message_start, shares_of
from jointset.algebra.lean import FEWEST, Lean, found_ends, found_lean, found_strides
from jointset.calibration.any_rule import sharing
from jointset.contracts import Array, Law, Readings
from jointset.errors import require
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.labels import panel_of
from jointset.inputs.outliers import scorable, warn_absurd, warn_codes
from jointset.inputs.sensor_health import usual_of
from jointset.inputs.sensor_places import places_of
from jointset.panel import Panel
from jointset.predicting.passes import laws_of
from jointset.score_abilities import Leaning
from jointset.support.how_far import listening, tells

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

LEANING, READINGS = 5000, 1_000_000  # training rows, and readings of them, that say how boxes lean
WARMUP = 50  # of them not looked at
MANY = 400  # sensors from which on a product is large enough for several threads


def one_thread(sensors: int = 0) -> AbstractContextManager[Any]:
    """Linear algebra of a few sensors on one thread while inside: on small matrices more threads only wait."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # a bare machine that trains
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1 if sensors < MANY else None, user_api="blas")
    return limits


def fit(predictor: JointPredictor, data: Readings, pilot: Readings | None, frozen: bool, options: Any) -> None:
    """Fit the filter of a predictor, unless it is `frozen`; a pilot block and the options go to the filter's `fit`."""
    panel = scorable(panel_of(data).require_varying())
    warn_absurd(panel, "training")
    warn_codes(panel, "training")
    shift, scale = np.zeros(panel.n_sensors), np.ones(panel.n_sensors)
    if predictor.standardize:
        shift, scale = panel.level_and_scale()
    shaped_on = panel
    if pilot is not None:
        shaped_on = panel_of(pilot, panel.sensors)
        require(
            shaped_on.sensors == panel.sensors,
            f"{message_start(predictor.filter)}the pilot block has other sensors than the training one",
        )
        options["pilot"] = shaped_on.with_values((shaped_on.values - shift) / scale)
    told = None if tells(predictor.filter) else options.pop("progress", None)
    if not frozen:
        with one_thread(panel.n_sensors), listening(told):
            predictor.filter = predictor.filter.fit(panel.with_values((panel.values - shift) / scale), **options)
    predictor.calibration = sharing(predictor.calibration, shares_of(predictor.filter))
    predictor.sensors, predictor.shift, predictor.scale = panel.sensors, shift, scale
    predictor.fitted_rows, predictor.usual, predictor.places = len(panel), usual_of(panel), places_of(panel)
    predictor.graph = edges_of(panel.adjacency)
    predictor.trained_on, predictor.horizon = panel, None
    predictor.shaped_on = shaped_on if isinstance(predictor.filter, Shaped) else None
    if isinstance(predictor.score, Leaning) and predictor.score.leans:
        with one_thread(panel.n_sensors):
            predictor.score = predictor.score.leaning(_lean(predictor, panel))


def _lean(predictor: JointPredictor, panel: Panel) -> Lean | None:
    """How its boxes lean and where they stop, from laws of the fitted filter on the last training rows."""
    rows = panel[-min(LEANING, max(FEWEST, READINGS // panel.n_sensors)) - WARMUP :]
    sizes = [_sizes(cast("Law", law)) for law, _, _ in laws_of(predictor, rows, predictor.filter.start())]
    mean, sd = (np.concatenate(part)[WARMUP:] for part in zip(*sizes, strict=True))
    return found_lean(rows.values[WARMUP:], mean, sd, found_ends(panel.values), found_strides(panel.values))


def _sizes(law: Law) -> tuple[Array, Array]:
    return law.mean, np.sqrt(law.variance)
