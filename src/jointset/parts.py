"""The parts of model folders: the names they are stored under, and where each class is.

A name in a folder never changes, whatever becomes of the class; only what stands here can be read from a folder, and
its module is imported when a folder names it. Classes of other packages join with `jointset.storage.storable`; the
modules behind their entry points `jointset.methods` are imported when a folder holds a part unknown here.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

PLUGINS = "jointset.methods"  # group of the entry points of other packages
MODULES = {
    "algebra.lean": "Lean",
    "algebra.partial": "GapScale",
    "algebra.law_tails": "Tails",
    "algebra.window_laws": "WindowLaw",
    "backbones.calendar": "Calendar",
    "backbones.gpvar": "GPVAR GPVARBackbone",
    "backbones.gru": "GRUBackbone GRUWeights",
    "backbones.stgnn": "STGNNBackbone STGNNWeights",
    "backbones.swap": "SwappedMean SwappedState",
    "backbones.transformer": "TransformerBackbone TransformerWeights",
    "backbones.var": "VARBackbone",
    "calibration.aci": "ACI ACIState",
    "calibration.agaci": "AgACI AgACIState",
    "calibration.auto": "Auto AutoState",
    "calibration.boa": "BOAState",
    "calibration.by_clock": "ByClock ByClockState",
    "calibration.contina": "Contina ContinaState",
    "calibration.cost_agaci": "CostAgACI CostState",
    "calibration.decaying": "Decaying DecayingState",
    "calibration.dtaci": "DtACI DtACIState",
    "calibration.eci": "ECI ECIState",
    "calibration.fixed": "Fixed",
    "calibration.late": "LateACI",
    "calibration.pid": "PID PIDState ThetaState",
    "calibration.pool": "ScorePool",
    "calibration.rescp": "ResCP ResCPState",
    "calibration.saocp": "SAOCP SAOCPState",
    "calibration.sfogd": "SFOGD SFOGDState",
    "calibration.shared_level": "SharedLevel SharedState",
    "calibration.split": "Split SplitState",
    "calibration.window": "Window WindowState",
    "datasets.preprocess": "Preprocess",
    "filters.bounded": "BoundedFilter BoundedState",
    "filters.gnf": "GNF GNFState",
    "filters.kalman": "GraphLGSSM KalmanState",
    "filters.kept": "KeptFilter",
    "filters.node_net": "NodeNet NodeNetState",
    "filters.node_net_cells": "NodeNetWeights",
    "filters.pool": "PooledFilter PooledState",
    "filters.recipes": "Recipe",
    "filters.recurrent_cells": "NodeWeights PooledWeights VectorWeights",
    "filters.residual": "ResidualFilter ResidualState",
    "filters.scaled": "ScaledFilter ScaledState",
    "filters.static": "StaticFilter",
    "filters.var": "VARFilter VARState",
    "filters.whitened": "WhitenedFilter WhitenedState",
    "horizons.direct": "DirectLaw",
    "horizons.horizon": "Announced Horizon",
    "inputs.graph_edges": "Edges",
    "inputs.jumps": "UsualJumps",
    "inputs.sensor_health": "Health Usual",
    "inputs.sensor_places": "Places",
    "predicting.imputation": "FillQuantiles Filling",
    "predicting.reuse": "Reuse",
    "published.copula": "CopulaRule CopulaState",
    "published.corel": "CoRelRule CoRelState",
    "published.filter": "OwnScore PublishedFilter PublishedState",
    "published.forest": "Forest ForestState",
    "published.hopcpt": "Attention HopCPTRule HopCPTState",
    "published.multidim": "MultiDimRule MultiDimState Network NetworkState Past",
    "published.older": "WrappedRule WrappedState",
    "published.spci": "SPCIRule SPCIState",
    "residuals.components": "FactorBox GroupMaximum OrthogonalBlocks",
    "residuals.conditional": "Clock Local TimeOfDay",
    "residuals.correlations": "FactorCorrelations MovingCorrelations FactorShape",
    "residuals.linear_heads": "LinearHeads",
    "residuals.scale_regression": "ScaleRegression",
    "residuals.shapes": "Constant EWMA Rolling RollingState UpdatedState",
    "residuals.splits": "ResidualSplit",
    "residuals.topology": "Topology",
    "scores": "BlockMaximum ComponentScore Mahalanobis MaxStudentised RootMahalanobis SingleScore",
    "trust": "Reference Watch",
}
TODAY = {"GPVAR": "GraphRegression", "GPVARBackbone": "GPVAR"}  # stored name, and the class that has another one by now
PARTS = {
    name: (f"jointset.{module}", TODAY.get(name, name)) for module, names in MODULES.items() for name in names.split()
}
STORED_AS = {place: name for name, place in PARTS.items()}


@functools.cache
def plugins() -> dict[str, Any]:
    """What other packages offer under the entry points `jointset.methods`, by name; one that fails is told and left."""
    from importlib.metadata import entry_points  # slow to import, and few need it

    found = {}
    for entry in entry_points(group=PLUGINS):
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # whatever the other package does
            warnings.warn(f"the method {entry.name!r} ({entry.value}) cannot be loaded: {error}", stacklevel=2)
    return found
