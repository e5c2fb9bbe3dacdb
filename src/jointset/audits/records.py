"""What audits share: records ready for JSON, curves for plots, and the words for how fast something is forgotten.

A record is a dictionary of numbers with a `verdict`, one plain sentence; `curve` holds x, y, se (standard errors or
None) and a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jointset.audits.subject import Skip, Subject
from jointset.contracts import Array
from jointset.errors import some

Record = dict[str, Any]
PERCENTS = (1, 5, 50, 95, 99)
SMALL = 0.01  # share of the first effect below which it counts as forgotten
DRAWN = 100  # steps of a decay that are drawn


def curve(x: Sequence[float] | Array, y: Sequence[float] | Array, label: str, se: object = None) -> Record:
    """A curve for plots."""
    return {"x": listed(x), "y": listed(y), "se": None if se is None else listed(se), "label": label}


def decay_curve(x: Array, y: Array, label: str, se: Array | None = None) -> Record:
    """A decay curve on a logarithmic axis, cut where nothing is left."""
    kept = np.flatnonzero(np.asarray(y) > 0)[:DRAWN]
    drawn = curve(np.asarray(x)[kept], np.asarray(y)[kept], label, None if se is None else np.asarray(se)[kept])
    return {**drawn, "scale": "log", "xlabel": "step"}


def listed(x: object) -> list[Any]:
    """An array as plain numbers."""
    return np.asarray(x).tolist()


def percentiles(x: Array) -> dict[str, float]:
    """p1, p5, p50, p95 and p99."""
    return {f"p{p}": float(q) for p, q in zip(PERCENTS, np.percentile(x, PERCENTS), strict=True)}


def forgotten_after(distance: Array) -> float:
    """The step from which on a distance (T,) stays below 1 % of the first one; NaN where it does not."""
    above = np.flatnonzero(np.asarray(distance) > SMALL * distance[0])
    last = int(above[-1]) if len(above) else -1
    return float(last + 1) if last + 1 < len(distance) else float("nan")


def steps_to_forget(rate: float, share: float = 0.01) -> float:
    """Steps after which a difference is down to this share of itself; infinite where nothing is forgotten.

    >>> round(steps_to_forget(0.46), 1)
    5.9
    """
    if not 0.0 < rate < 1.0:
        return 0.0 if rate <= 0.0 else math.inf
    return math.log(share) / math.log(rate)


def rate_words(name: str, value: float, what: str, forgotten: float) -> str:
    """How fast something is forgotten: its rate, and the step from which on it is below 1 % (NaN: it never is).

    >>> rate_words("rho_dG", 0.46, "a wrong state", 6)
    'a wrong state is below 1 % after 6 steps and shrinks to 46 % a step (rho_dG 0.460)'
    """
    if value != value:
        return f"{what}: no rate can be fitted ({name} is not defined here)"
    if forgotten != forgotten:
        return f"{what} is not forgotten ({name} {value:.3f}): start it as calibrated only"
    steps = f"{forgotten:.0f} step{'s' * bool(forgotten != 1)}"
    return f"{what} is below 1 % after {steps} and shrinks to {100 * value:.0f} % a step ({name} {value:.3f})"


def kept_sensors(subject: Subject, rows: slice, fewest: int) -> tuple[list[int], list[str]]:
    """Places of the sensors with that many readings in these rows, and the names of the others."""
    silent = subject.silent(rows, fewest)
    kept = [i for i, name in enumerate(subject.panel.sensors) if name not in set(silent)]
    if not kept:
        raise Skip(f"no sensor has {fewest} reading{'s' * (fewest > 1)} in these rows")
    return kept, silent


def left_out_words(sensors: Sequence[str]) -> str:
    """The end of a sentence that names sensors an audit had to do without."""
    return f"; left out, too few readings: {some(sensors)}" if sensors else ""
