"""Methods by name: `kalman`, `kalman-tuned`, `static`, each alone or with a rule that adapts, as in `kalman+aci`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jointset.baselines import StaticFilter
from jointset.calibration import calibration as rule_named
from jointset.errors import require, some
from jointset.filters import GNF, GraphLGSSM
from jointset.panel import Panel
from jointset.predictor import JointPredictor
from jointset.scores import score_for

FILTERS: dict[str, Callable[[], Any]] = {
    "kalman": GraphLGSSM,
    "kalman-tuned": lambda: GraphLGSSM(tune=True),
    "static": StaticFilter,
    "gnf": GNF,
    "gnf-node": lambda: GNF(node=True, recipe="sharp"),
    "diag-gru": lambda: GNF(graph=False, rank=0),
    "gcn-rank0": lambda: GNF(rank=0),
}


def predictor_for(
    method: str,
    *,
    shape: str = "ellipsoid",
    calibration: str = "split",
    alpha: float = 0.1,
    warmup: int = 50,
    standardize: bool = True,
) -> JointPredictor:
    """An unfitted predictor from names; a calibration after a plus sign in the method wins over `calibration`.

    >>> predictor = predictor_for("kalman-tuned+aci", shape="box", alpha=0.2)
    >>> predictor.filter.tune, type(predictor.calibration).__name__, predictor.alpha
    (True, 'ACI', 0.2)
    """
    name, _, rule = method.partition("+")
    require(name in FILTERS, f"unknown filter {name!r}: choose one of {', '.join(FILTERS)}")
    return JointPredictor(
        FILTERS[name](),
        score_for(shape),
        rule_named(rule or calibration, alpha=alpha),
        warmup=warmup,
        standardize=standardize,
    )


def three_blocks(panel: Panel, train: float = 0.7, test: float = 0.1) -> tuple[Panel, Panel, Panel]:
    """Training, calibration and test rows of one panel in time order; calibration is what the other shares leave.

    >>> import numpy as np
    >>> [len(block) for block in three_blocks(Panel(np.zeros((100, 1)), ["a"]))]
    [70, 20, 10]
    """
    require(
        train > 0 and test >= 0 and train + test < 1,
        f"training share {train:g} and test share {test:g} must leave rows for calibration: their sum must be below 1",
    )
    first, middle, last = panel.split((train, 1.0 - train - test, test))
    require(len(first) > 0, f"{len(panel)} rows leave none for training: give more rows, or a larger training share")
    return first, middle, last


def matched(panel: Panel, predictor: JointPredictor) -> Panel:
    """The panel with its columns in the predictor's order; refused unless it has the same sensors."""
    expected, given = set(predictor.sensors), set(panel.sensors)
    missing = [name for name in predictor.sensors if name not in given]
    unknown = [name for name in panel.sensors if name not in expected]
    require(
        not missing,
        f"the readings lack sensors the model was fitted on: {some(missing)}; add the columns, empty if need be",
    )
    require(not unknown, f"the readings have sensors the model does not know: {some(unknown)}; drop the columns")
    return panel.select(predictor.sensors)
