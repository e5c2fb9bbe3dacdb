"""The contract of a predictor, as checks that anyone can run: `check_predictor("ewma:box+aci")`.

Every check is given a calibrated predictor and raises AssertionError with the promise that is broken. `CHECKS` lists
them; a method of one's own is held to the same ones by its name, or by a function that makes an unfitted predictor.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jointset.checks.blocks import CALIBRATION, TRAINING, block, block_with_gaps, network
from jointset.checks.promises import CHECKS, SETS, expect, same
from jointset.joint_predictor import JointPredictor
from jointset.methods import load_predictor, predictor_for

__all__ = ["CHECKS", "calibrated", "check_calibrated", "check_fresh_process", "check_predictor"]

STEPS = 5  # of training, where a method learns


def check_predictor(method: str | Callable[[], JointPredictor]) -> None:
    """Hold a method to the contract: a name as `predictor_for` takes it, or a maker of unfitted predictors.

    Runs on a small simulated network with a graph and hourly rows; learned methods are trained for a few steps.
    Raises AssertionError with the method, the check and the promise that is broken.
    """
    predictor, name = calibrated(method), method if isinstance(method, str) else method.__name__
    check_calibrated(predictor, name)
    check_fresh_process({name: predictor})


def check_calibrated(predictor: JointPredictor, name: str) -> None:
    """All checks of one process on a predictor from `calibrated`, which is left as it is."""
    for check in CHECKS:
        try:
            check(predictor.copy())
        except AssertionError as broken:
            raise AssertionError(f"{name}: {check.__name__}: {broken}") from None


def calibrated(method: str | Callable[[], JointPredictor]) -> JointPredictor:
    """The method, fitted and calibrated on the network of the checks."""
    predictor = predictor_for(method, training={"steps": STEPS}) if isinstance(method, str) else method()
    _hasten(predictor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows: what a method says of that is no matter here
        return predictor.fit(network()[TRAINING]).calibrate(network()[CALIBRATION])


def _hasten(predictor: JointPredictor) -> None:
    """Give the learned part of a published rule a few steps of training."""
    rule = getattr(predictor.filter, "rule", None)
    if is_dataclass(rule) and not isinstance(rule, type):
        few = {one.name: STEPS for one in fields(rule) if one.name in ("updates", "epochs")}
        predictor.filter = replace(predictor.filter, rule=replace(rule, **few))


def check_fresh_process(predictors: Mapping[str, JointPredictor]) -> None:
    """Saved here after some rows, loaded in a new process, predictors give bit-equal sets from there on."""
    with tempfile.TemporaryDirectory() as folder:
        for i, predictor in enumerate(predictors.values()):
            moved = predictor.copy()
            moved.run(block_with_gaps(8))
            moved.save(Path(folder, str(i)))
        program = f"from jointset.checks import _go_on; _go_on({folder!r}, {len(predictors)})"
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
        expect(done.returncode == 0, f"a new process cannot go on with a saved model: {done.stderr[-800:]}")
        with np.load(Path(folder, "runs.npz")) as found:
            runs = dict(found)
    for i, (name, predictor) in enumerate(predictors.items()):
        here = predictor.copy()
        here.run(block_with_gaps(8))
        run = here.run(block())
        for part in SETS:
            same(runs[f"{i} {part}"], getattr(run, part), f"{name}: {part} in a new process is not that in this one")


def _go_on(folder: str, count: int) -> None:
    """The part of `check_fresh_process` in the new process: load every model, run it on, write the numbers."""
    runs: dict[str, Any] = {}
    for i in range(count):
        run = load_predictor(Path(folder, str(i))).run(block())
        runs |= {f"{i} {part}": getattr(run, part) for part in SETS}
    np.savez(Path(folder, "runs.npz"), **runs)
