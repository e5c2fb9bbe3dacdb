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

from typing import TYPE_CHECKING

from jointset.late_names import late_names

if TYPE_CHECKING:  # what MODULES says, for type checkers and editors
    from jointset import plot
    from jointset.backbones.gpvar import GPVAR
    from jointset.calibration.aci import ACI
    from jointset.calibration.agaci import AgACI
    from jointset.calibration.dtaci import DtACI
    from jointset.calibration.pid import PID
    from jointset.calibration.split import Split
    from jointset.datasets.grssf import Grssf, generate_grssf
    from jointset.door import load, predictor
    from jointset.errors import InputError
    from jointset.filters.default import DefaultFilter
    from jointset.filters.gnf import GNF
    from jointset.filters.kalman import GraphLGSSM
    from jointset.filters.node_net import NodeNet
    from jointset.filters.pool import PooledFilter
    from jointset.filters.scaled import ScaledFilter
    from jointset.filters.static import StaticFilter
    from jointset.filters.var import VARFilter
    from jointset.filters.whitened import WhitenedFilter
    from jointset.joint_predictor import JointPredictor
    from jointset.laws import DenseLaw, LowRankLaw
    from jointset.panel import Panel
    from jointset.regions import Box, Ellipsoid, Product
    from jointset.runs import Outcome, Run
    from jointset.scores import BlockMaximum, Mahalanobis, MaxStudentised

__version__ = "0.1.0"

MODULES = {  # what is public, by the module that is imported when a name is first asked for; "" names modules
    "": "backbones calibration contracts datasets errors filters laws panel plot regions runs scores",
    "backbones.gpvar": "GPVAR",
    "calibration.aci": "ACI",
    "calibration.agaci": "AgACI",
    "calibration.dtaci": "DtACI",
    "calibration.pid": "PID",
    "calibration.split": "Split",
    "datasets.grssf": "Grssf generate_grssf",
    "door": "load predictor",
    "errors": "InputError",
    "filters.default": "DefaultFilter",
    "filters.gnf": "GNF",
    "filters.kalman": "GraphLGSSM",
    "filters.node_net": "NodeNet",
    "filters.pool": "PooledFilter",
    "filters.scaled": "ScaledFilter",
    "filters.static": "StaticFilter",
    "filters.var": "VARFilter",
    "filters.whitened": "WhitenedFilter",
    "joint_predictor": "JointPredictor",
    "laws": "DenseLaw LowRankLaw",
    "panel": "Panel",
    "regions": "Box Ellipsoid Product",
    "runs": "Outcome Run",
    "scores": "BlockMaximum Mahalanobis MaxStudentised",
}
if not TYPE_CHECKING:  # a type checker would believe in any name
    __getattr__, __dir__ = late_names(__name__, MODULES)

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
