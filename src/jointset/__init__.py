"""Joint prediction sets for networks of sensors.

>>> from jointset import GraphLGSSM, JointPredictor, generate_grssf
>>> train, _, calibration, test = generate_grssf("A", n=30, length=2000).panel.split()
>>> predictor = JointPredictor(GraphLGSSM(tune=True)).fit(train).calibrate(calibration)
>>> region = predictor.predict()            # one set for the whole next reading
>>> lower, upper = region.bounds
>>> outcome = predictor.update(test.values[0])
>>> run = predictor.run(test[1:])           # the rest at once
>>> 0.8 < run.joint <= 1.0
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from jointset.backbones.gpvar import GPVAR
from jointset.calibration import ACI, PID, AgACI, DtACI, Split
from jointset.datasets import Grssf, generate_grssf
from jointset.errors import InputError
from jointset.filters import GNF, GraphLGSSM, PooledFilter
from jointset.filters.default import DefaultFilter
from jointset.filters.node_net import NodeNet
from jointset.filters.scaled import ScaledFilter
from jointset.filters.static import StaticFilter
from jointset.filters.var import VARFilter
from jointset.filters.whitened import WhitenedFilter
from jointset.laws import DenseLaw, LowRankLaw
from jointset.panel import Panel
from jointset.predictor import JointPredictor, Outcome, Run
from jointset.regions import Box, Ellipsoid, Product
from jointset.scores import BlockMaximum, Mahalanobis, MaxStudentised

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jointset import plot as plot

load = JointPredictor.load  # a saved model of any method


def predictor(
    name: str, *, alpha: float = 0.1, warmup: int = 50, standardize: bool = True, **training: Any
) -> JointPredictor:
    """An unfitted predictor by name, `METHOD[:GEOMETRY][+WRAP]`; `jointset methods` lists them.

    `training` are settings of the learned methods: `seed`, `device`, `steps`, `recipe`.

    >>> predictor("ewma:box+aci", alpha=0.05)
    JointPredictor(ewma, boxes, ACI at 95 %; fitted on nothing yet)
    """
    from jointset.methods import predictor_for, require_trained  # other packages are asked, which takes time

    require_trained(name, training)
    return predictor_for(name, alpha=alpha, warmup=warmup, standardize=standardize, training=training or None)


def __getattr__(name: str) -> Any:
    """`jointset.plot`, which needs matplotlib, is imported when it is asked for."""
    if name == "plot":
        return importlib.import_module("jointset.plot")
    raise AttributeError(f"module 'jointset' has no attribute {name!r}")


__all__ = [
    "ACI",
    "GNF",
    "GPVAR",
    "PID",
    "AgACI",
    "BlockMaximum",
    "Box",
    "DefaultFilter",
    "DenseLaw",
    "DtACI",
    "Ellipsoid",
    "GraphLGSSM",
    "Grssf",
    "InputError",
    "JointPredictor",
    "LowRankLaw",
    "Mahalanobis",
    "MaxStudentised",
    "NodeNet",
    "Outcome",
    "Panel",
    "PooledFilter",
    "Product",
    "Run",
    "ScaledFilter",
    "Split",
    "StaticFilter",
    "VARFilter",
    "WhitenedFilter",
    "generate_grssf",
    "load",
    "plot",
    "predictor",
]
