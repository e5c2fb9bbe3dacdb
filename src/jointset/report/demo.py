"""The demonstration: a few methods on one simulated network, from training rows to calibrated sets on the test rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jointset.catalogue import TABLE
from jointset.joint_predictor import Run
from jointset.methods import parse, predictor_for
from jointset.panel import Panel
from jointset.support.extras import installed

# method -> filter z-scores; raw values where the filter is given the very numbers that generated track A
METHODS = {"kalman": False, "kalman-tuned": True, "static": True, "gnf": True, "kalman+aci": False}

NOTES = {
    "kalman": "Kalman filter on the graph with fixed numbers, those that generated track A: the ideal forecaster there",
    "kalman-tuned": "the same filter, its numbers chosen on the training rows",
    "static": "reference: a graph autoregression for the mean, one covariance of its errors for all steps",
    "gnf": "the learned graph filter (GCN-GRU with a diagonal-plus-low-rank covariance), fast recipe",
    "kalman+aci": "the first row with a radius that follows its misses (adaptive conformal inference)",
}
TRACKS = {
    "A": "Gaussian noise, nothing changes over time",
    "B": "noise correlated inside communities of sensors",
    "C": "heavy-tailed noise (Student t with 5 degrees of freedom)",
    "D": "the graph drifts to another one over the test rows",
    "E": "the noise doubles half way through the test rows",
}


@dataclass(frozen=True)
class Result:
    """One row of the demonstration: all its sets, and the seconds from the first training row to the last set."""

    run: Run
    seconds: float

    def row(self) -> dict[str, Any]:
        """Coverage, sizes and time."""
        return {**self.run.summary(), "seconds": self.seconds}


def methods_here() -> dict[str, bool]:
    """The methods of the demonstration that can be fitted with the packages that are installed."""
    packages = {name: TABLE[parse(name).method].package for name in METHODS}
    return {name: scaled for name, scaled in METHODS.items() if not packages[name] or installed(packages[name])}


def compare(
    panel: Panel,
    methods: Mapping[str, bool] = METHODS,
    alpha: float = 0.1,
    started: Callable[[str], None] = lambda method: None,
) -> dict[str, Result]:
    """Fit every method on the first 70 % of a panel, calibrate on the tenth before the last, run through the last."""
    train, _, calibration, test = panel.split()
    results = {}
    for method, standardize in methods.items():
        started(method)
        begin = time.perf_counter()
        predictor = predictor_for(method, alpha=alpha, standardize=standardize)
        run = predictor.fit(train).calibrate(calibration).run(test)
        results[method] = Result(run, time.perf_counter() - begin)
    return results
