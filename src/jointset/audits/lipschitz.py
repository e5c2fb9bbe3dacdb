"""Root-score Lipschitz quotients: how much a small change of the filter's state can change the score.

|S(h + delta) - S(h)| / |delta| with S the root score of the reading that really came, for Gaussian directions delta at
three lengths along the trajectory (paper, Audit 1). The theory of forgetting asks that it be bounded in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from jointset.audits.coupling import perturbed
from jointset.audits.records import Record, curve, percentiles
from jointset.audits.subject import Subject
from jointset.contracts import Array, Filter, Law
from jointset.errors import require
from jointset.support.how_far import each

DIRECTIONS = 12  # per step and length, as in the paper
SCALES = (1e-3, 1e-2, 1e-1)
STEPS = 150


class Lipschitz(NamedTuple):
    """Quotients of all steps, lengths and directions, and their summary; NaN readings and rows are left out."""

    quotients: Array  # (steps, scales, directions)
    scales: Array  # lengths |delta|
    mean: float
    p50: float
    p95: float
    p99: float
    largest: float


def root_score_lipschitz(
    filter: Filter[Any],
    values: Array,
    state: object,
    *,
    warmup: int = 50,
    steps: int = STEPS,
    directions: int = DIRECTIONS,
    scales: Sequence[float] = SCALES,
    seed: int = 0,
) -> Lipschitz:
    """Quotients at `steps` evenly spaced rows of values (T, N), the filter run from `state` on the first row.

    The first `warmup` rows only warm the filter up. Rows without any reading are passed over.
    """
    values = np.asarray(values, dtype=float)
    first = min(warmup, len(values) // 2)
    chosen = np.unique(np.linspace(first, len(values) - 1, min(steps, len(values) - first)).astype(int))
    rng = np.random.default_rng(seed)
    quotients, at = [], 0
    for t in each(chosen.tolist()):
        _, state = filter.run(values[at:t], state)
        at = t
        if np.isnan(values[t]).all():
            continue
        here = _root_score(filter, state, values[t])
        moved = [[_change(filter, state, values[t], here, scale, rng) for _ in range(directions)] for scale in scales]
        quotients.append(moved)
    require(bool(quotients), "no row with a reading to audit: give more rows")
    found = np.array(quotients)
    p50, p95, p99 = np.quantile(found, [0.5, 0.95, 0.99])
    return Lipschitz(
        found, np.array(scales), float(found.mean()), float(p50), float(p95), float(p99), float(found.max())
    )


def _root_score(filter: Filter[Any], state: object, y: Array) -> float:
    return float(np.sqrt(cast("Law", filter.law(state)).mahalanobis(y)))


def _change(filter: Filter[Any], state: Any, y: Array, here: float, length: float, rng: np.random.Generator) -> float:
    size = np.size(state[0])  # the mean of the linear filter, the hidden state of a learned one
    direction = rng.standard_normal(size)
    delta = length * direction / np.linalg.norm(direction)
    return abs(_root_score(filter, perturbed(state, delta), y) - here) / length


def lipschitz_words(p50: float, p95: float, p99: float) -> str:
    """How strongly scores react to the state."""
    tail = "heavy tail: at 1 % of the steps a small error in the state moves the score a lot"
    calm = "no heavy tail"
    told = f"a state off by 0.1 moves the root score by {0.1 * p50:.3f} at a typical step, by {0.1 * p95:.3f} at 5 %"
    return f"{told}; {tail if p99 > 5.0 * p95 else calm} (p99 {p99:.2f})"


def lipschitz_record(subject: Subject) -> Record:
    """Root-score Lipschitz quotients along the trajectory."""
    warmup = 0 if subject.calibrating == 0 else subject.predictor.warmup
    found = root_score_lipschitz(subject.state_space, subject.values, subject.start, warmup=warmup, seed=subject.seed)
    scales = {f"{scale:g}": percentiles(found.quotients[:, i]) for i, scale in enumerate(found.scales)}
    p = np.linspace(1, 99, 50)
    return {
        "value": found.p95,
        "mean": found.mean,
        "p50": found.p50,
        "p95": found.p95,
        "p99": found.p99,
        "max": found.largest,
        "by_scale": scales,
        "steps": len(found.quotients),
        "directions": found.quotients.shape[2],
        "curve": curve(p, np.percentile(found.quotients, p), "percentile of |S(h + d) - S(h)| / |d|"),
        "verdict": lipschitz_words(found.p50, found.p95, found.p99),
    }
