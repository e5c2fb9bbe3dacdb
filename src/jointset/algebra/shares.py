"""How one score divides over the sensors: shares that add up to 1, and so, times the score, to the score itself.

Every score here grows in proportion when a reading moves away from the mean in a straight line, some in proportion to
the square. For such a score f of the residual e, Euler's identity divides it exactly: sensor i has e_i df/de_i, over
their sum. That is the Aumann-Shapley value of the way from the mean to the reading. Of a squared distance e' P e it is
e_i (P e)_i; of a maximum all goes to the sensor that attains it. A share below 0 belongs to a sensor whose reading
makes those of others look less strange.
"""

from __future__ import annotations

import math

import numpy as np

from jointset.algebra import lowrank
from jointset.contracts import Array, Law
from jointset.laws import DenseLaw, LowRankLaw


def distance_shares(law: Law, y: Array) -> Array:
    """Shares (N,) in the squared distance of one reading, and in its root; 0 where missing."""
    missing = np.isnan(y)
    e = np.where(missing, 0.0, y - law.mean)
    if isinstance(law, LowRankLaw):
        return adding_to_one(e * lowrank.solve(e, np.where(missing, 0.0, 1.0 / law.diagonal), law.factor))
    if isinstance(law, DenseLaw):
        S = law.covariance
        return adding_to_one(e * (S.observed(missing).precision_terms(e)[0] if missing.any() else S.solve(e)))
    return adding_to_one(law.contributions(y))  # a law of another package


def maximum_shares(ratios: Array) -> Array:
    """Shares (N,) in the largest of ratios (N,): all of it to the first that attains it."""
    out = np.zeros(len(ratios))
    if ratios.max(initial=0.0) > 0:
        out[int(ratios.argmax())] = 1.0
    return out


def adding_to_one(parts: Array) -> Array:
    """Parts (..., N) over their sum, 0 where that is 0; where some are infinite, these share alike."""
    if parts.ndim == 1:
        whole = parts.sum()
        if whole != 0 and math.isfinite(whole):  # as nearly all are
            return parts / whole
    parts = np.where(np.isinf(parts).any(-1, keepdims=True), np.isinf(parts), parts)
    total = parts.sum(-1, keepdims=True)
    return np.divide(parts, total, out=np.zeros(parts.shape), where=total != 0)
