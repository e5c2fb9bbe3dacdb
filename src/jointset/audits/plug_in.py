"""Plug-in against train-fit: does fitting the covariance on the calibration block itself cost coverage?

The static row takes its covariance from the calibration residuals whose scores then set the radius: those scores are
not fresh. With a covariance from the training or the validation block they are (paper, Audit 6). The differences say
what that costs.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jointset.audits.records import Record
from jointset.audits.subject import Subject

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

PILOTS = {
    "text": ("calibration", "train", "validation"),
    "table": ("calibration", "train", "pilot"),
    "fit": ("calibration", "train"),
}

HARMLESS = 0.023  # points of coverage the paper finds between plug-in and train-fit
MISSED = 0.03  # a coverage this far below the target has missed it


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


def plug_in_words(reused: float, fresh: float, width: float, alpha: float) -> str:
    """What fitting the covariance on the calibration block costs: coverage with it, with train-fit, width difference.

    >>> plug_in_words(0.838, 0.913, -0.16, 0.1)[-48:]
    'it reaches 0.838, train-fit 0.913, of 0.90 asked'
    """
    joint, target = reused - fresh, 1 - alpha
    sign = "lower" if joint < 0 else "higher"
    told = f"a covariance from the calibration block itself gives coverage {abs(100 * joint):.1f} points {sign}"
    told += f" than one from training (width {width:+.2f})"
    if max(reused, fresh) < target - MISSED:
        return f"{told}; neither reaches {target:.2f} ({reused:.3f}, {fresh:.3f}): the test rows differ"
    if joint < -HARMLESS or reused < target - MISSED:
        return f"{told}: it reaches {reused:.3f}, train-fit {fresh:.3f}, of {target:.2f} asked"
    return f"{told}: reusing the block is harmless here"


def plug_in_record(subject: Subject) -> Record:
    """Static covariance fitted on the calibration block against training."""
    found = plug_in(subject.fitted_on, subject.alpha)
    rows = zip(found.joint, found.width, found.width_full, found.radius, strict=True)
    keys = ("joint", "width", "width_full", "radius")
    return {
        "value": found.joint_difference,
        **{pilot: dict(zip(keys, row, strict=True)) for pilot, row in zip(found.pilots, rows, strict=True)},
        "joint_difference": found.joint_difference,
        "width_difference": found.width_difference,
        "verdict": plug_in_words(found.joint[0], found.joint[1], found.width_difference, subject.alpha),
    }
