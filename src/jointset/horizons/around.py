"""A predictor with a horizon: its sets for the next steps, one row more, a whole panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jointset.abilities import Spread
from jointset.contracts import Array, Forecast, Region
from jointset.errors import require
from jointset.horizons.horizon import Horizon
from jointset.horizons.passes_ahead import AheadPass
from jointset.horizons.sets_ahead import AheadSets, sets_ahead
from jointset.panel import Panel
from jointset.predicting.passes import Laws, Progress, run_together
from jointset.support.how_far import in_rows, listening

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor
    from jointset.runs import Run


def predicted_ahead(predictor: JointPredictor, law: Forecast, region: Region, steps: int) -> AheadSets:
    """Sets of the next `steps` rows, from the law and the set of the next one: that very set where it is all."""
    if steps == 1:
        return sets_ahead((region, region), predictor.sensors)
    horizon = predictor.horizon
    known = "without a horizon" if horizon is None else f"for a horizon of {horizon.steps}, not {steps}"
    advice = f"calibrate(panel, horizon={steps}), or jointset fit --horizon {steps}"
    require(horizon is not None and horizon.steps == steps, f"the model was calibrated {known}: {advice}")
    assert horizon is not None
    window = horizon.next_law(predictor, law)
    own = None if horizon.own is None else horizon.own * np.sqrt(window.variance).reshape(horizon.own.shape)
    return sets_ahead(horizon.regions(window), predictor.sensors, own)


def stepped(predictor: JointPredictor, horizon: Horizon, law: Forecast, y: Array) -> Horizon:
    """The horizon after one more row (N,), from the law that was emitted for it."""
    walk = AheadPass(predictor, horizon, y[None], None)
    walk.see(_SpreadRow(law, law.variance) if isinstance(law, Spread) else _Row(law))
    return walk.finish()[1]


def run_through(
    predictors: Sequence[JointPredictor], panel: Panel, laws: Laws, regions: bool, progress: Progress | None
) -> list[tuple[Run, float]]:
    """Runs of predictors that differ in their rule only; those with a horizon have one of the steps ahead too."""
    walks = {}
    for i, one in enumerate(predictors):
        if one.horizon is not None:
            walks[i] = AheadPass(one, one.horizon, panel.values, panel.timestamps)
            laws = walks[i].listening(laws)
    with listening(in_rows(progress, len(panel))):
        runs = run_together(predictors, panel, laws, regions)
    for i, walk in walks.items():
        ahead, predictors[i].horizon = walk.finish()
        runs[i] = (replace(runs[i][0], ahead=ahead), runs[i][1])
    return runs


class _Row:
    """A law of one row (N,) with a leading axis, for what is asked of laws here."""

    def __init__(self, law: Forecast) -> None:
        self.mean = np.asarray(law.mean)[None]
        if hasattr(law, "covariance"):
            self.covariance = law.covariance


class _SpreadRow(_Row):
    """The same of a law with variances: a class of its own, as abilities are asked of classes, once."""

    def __init__(self, law: Forecast, variance: Array) -> None:
        super().__init__(law)
        self.variance = np.asarray(variance)[None]
