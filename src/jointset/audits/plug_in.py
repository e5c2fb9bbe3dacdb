"""Plug-in against train-fit: does fitting the covariance on the calibration block itself cost coverage?

The static row takes its covariance from the calibration residuals whose scores then set the radius: those scores are
not fresh. With a covariance from the training or the validation block they are (paper, Audit 6). The differences say
what that costs.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

PILOTS = {
    "text": ("calibration", "train", "validation"),
    "table": ("calibration", "train", "pilot"),
    "fit": ("calibration", "train"),
}


class PlugIn(NamedTuple):
    """Coverage and width of the static row by the block its covariance is fitted on; the first is the plug-in."""

    pilots: tuple[str, ...]
    joint: tuple[float, ...]
    width: tuple[float, ...]
    width_full: tuple[float, ...]
    radius: tuple[float, ...]
    joint_difference: float  # plug-in less train-fit
    width_difference: float  # plug-in less train-fit, of `width`


def plug_in(cell: Cell, alpha: float = 0.1) -> PlugIn:
    """The static row of a cell with its covariance from the calibration, the training and the block between them."""
    from jointset.experiments.rows import run_row

    pilots = PILOTS[cell.protocol]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*shape fitted on the calibration rows")  # it is the question
        runs = [run_row("static", cell, alpha, pilot=pilot) for pilot in pilots]
    joint = tuple(run.joint for run in runs)
    width = tuple(float(np.mean(run.width)) for run in runs)
    full = tuple(float(np.mean(run.width_full)) for run in runs)
    radius = tuple(float(run.radius[0]) for run in runs)
    return PlugIn(pilots, joint, width, full, radius, joint[0] - joint[1], width[0] - width[1])
