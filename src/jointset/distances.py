"""How far readings lie from a law: the numbers that scores are, and that sets ask for."""

from __future__ import annotations

import numpy as np

from jointset.algebra.lean import Lean
from jointset.algebra.partial import (
    UNCALIBRATED,
    GapScale,
    measured_distance,
    measured_maximum,
    placed_distance,
    placed_maximum,
)
from jointset.algebra.ties import settled
from jointset.contracts import Array, Law


def mahalanobis_score(law: Law, y: Array, gaps: GapScale = UNCALIBRATED) -> Array:
    """Squared Mahalanobis distance (...); rows with gaps are put on the scale of complete ones."""
    if not np.count_nonzero(np.isnan(y)):
        return settled(law.mahalanobis(y))
    return gaps.levelled(settled(placed_distance(distance_measured(law, y), gaps)), y)


def distance_measured(law: Law, y: Array) -> Array:
    """What of a reading the squared distance is made from (..., 3), whatever the scale of rows with gaps."""
    return measured_distance(law.mahalanobis(y), np.isnan(y))


def studentised_score(law: Law, y: Array, gaps: GapScale = UNCALIBRATED, lean: Lean | None = None) -> Array:
    """max_i |y_i - m_i| / sd_i (...); rows with gaps are put on the scale of complete ones.

    NaN where nothing is observed.
    """
    ratio = studentised(law, y, lean)
    if not np.isnan(ratio).any():
        return settled(ratio.max(-1))
    return gaps.levelled(settled(placed_maximum(maximum_measured(law, y, gaps.level, lean), gaps)), y)


def studentised(law: Law, y: Array, lean: Lean | None = None) -> Array:
    """|y_i - m_i| / sd_i (..., N), with a lean the radius at which the box reaches the reading."""
    y, sd = np.asarray(y, dtype=float), np.sqrt(law.variance)
    return np.abs((y - law.mean) / sd) if lean is None else lean.radius_of(y, law.mean, sd)


def maximum_measured(law: Law, y: Array, level: float, lean: Lean | None = None) -> Array:
    """What of a reading the largest |residual| / sd is made from (..., 3), at a coverage."""
    ratio = studentised(law, y, lean)
    missing = np.isnan(ratio)
    return measured_maximum(np.where(missing, 0.0, ratio).max(-1), missing, law, level)
