"""Drift put on a panel: readings that change while a method is tested, for stress tests whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jointset.contracts import Array
from jointset.errors import require_known
from jointset.panel import Panel

DRIFTS = {
    "jump": "readings lie twice as far from their means from the middle of the last tenth on",
    "ramp": "over the last tenth they come to lie twice as far from their means",
    "season": "they swing between half and twice their distance from the means, with a period of 288 steps",
    "outage": "a quarter of the sensors are stuck four standard deviations below their means for 40 steps, from the "
    "middle of the last tenth on",
}
GROWTH = 2.0
PERIOD = 288
STUCK, STUCK_STEPS, STUCK_SHARE = -4.0, 40, 0.25


def with_drift(panel: Panel, kind: str) -> Panel:
    """The panel with a drift of a name; its means and standard deviations are those of the first nine tenths.

    >>> panel = Panel(np.tile([[1.0], [-1.0]], (100, 1)), ["a"])
    >>> np.abs(with_drift(panel, "jump").values[[0, 189, 190, 199], 0])
    array([1., 1., 2., 2.])
    """
    require_known(kind, DRIFTS, f"unknown drift {kind!r}")
    steps, quiet = len(panel), round(0.9 * len(panel))
    mean, sd = np.nanmean(panel.values[:quiet], axis=0), np.nanstd(panel.values[:quiet], axis=0)
    if kind != "outage":
        return replace(panel, values=mean + growth(kind, steps)[:, None] * (panel.values - mean))
    values, first = panel.values.copy(), round(0.95 * steps)
    stuck = slice(0, max(1, round(STUCK_SHARE * values.shape[1])))
    values[first : first + STUCK_STEPS, stuck] = (mean + STUCK * sd)[stuck]
    return replace(panel, values=values)


def growth(kind: str, steps: int) -> Array:
    """Factor (T,) on the distance from the means."""
    t = np.arange(steps)
    if kind == "jump":
        return np.where(t < round(0.95 * steps), 1.0, GROWTH)
    if kind == "ramp":
        return 1.0 + (GROWTH - 1.0) * np.clip((t - 0.9 * steps) / (0.1 * steps), 0.0, 1.0)
    return GROWTH ** np.sin(2.0 * np.pi * t / PERIOD)
