"""Finite-horizon observability: does every direction of the hidden state show in the laws soon after?

For random directions delta of three lengths at states along the calibration block, two copies run on the same L = 10
readings; the ratio sqrt(sum_{l = 0}^{L} d_G(l)^2) / |delta| estimates the observability constant (paper, finite-horizon
observability audit). A small lower percentile means directions that the emitted laws hardly see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.audits.coupling import THREADS, coupled, hidden, perturbed
from jointset.audits.records import DRAWN, Record, curve, listed
from jointset.audits.subject import Subject
from jointset.contracts import Array, Filter
from jointset.errors import require
from jointset.predicting.fitting import one_thread

HORIZON = 10
LENGTHS = (1e-3, 1e-2, 1e-1)
PERCENTILES = (5, 10, 25, 50, 75, 90)
ANCHORS = 40
DIRECTIONS = 3
CLEAR = 0.1  # p5 from here on counts as observable: the paper calls 0.13 "O3" and 0.06 "weak-quotient"


class Observability(NamedTuple):
    """Ratios of all states, lengths and directions and their percentiles, over all and for each length."""

    percentiles: Array  # (6,) at 5, 10, 25, 50, 75, 90
    by_length: Array  # (3, 6)
    levels: Array  # (6,) the percentages
    lengths: Array  # (3,) |delta|
    verdict: str  # "O3" or "weak-quotient"
    ratios: Array  # (states, lengths, directions)
    horizon: int

    def percentile(self, level: int) -> float:
        """One of the percentiles 5, 10, 25, 50, 75, 90."""
        return float(self.percentiles[self.levels.tolist().index(level)])


def observability(
    filter: Filter[Any],
    values: Array,
    state: object = None,
    *,
    warmup: int = 50,
    anchors: int = ANCHORS,
    directions: int = DIRECTIONS,
    lengths: Sequence[float] = LENGTHS,
    horizon: int = HORIZON,
    seed: int = 0,
) -> Observability:
    """Audit a fitted filter on readings (T, N) in its own units, run from `state` (a fresh one by default).

    `anchors` states evenly spaced after the warm-up are perturbed in `directions` random unit directions of every
    length; the same directions serve all lengths.
    """
    values = np.asarray(values, dtype=float)
    rows, needed = len(values), horizon + 2
    require(rows >= needed, f"observability over {horizon} steps needs at least {needed} rows, got {rows}")
    state = filter.start() if state is None else state
    last = rows - horizon - 1
    chosen = np.unique(np.linspace(min(warmup, last // 2), last, min(anchors, last + 1)).astype(int))
    rng = np.random.default_rng(seed)
    ratios, at = [], 0
    with one_thread():
        for t in chosen.tolist():
            _, state = filter.run(values[at:t], state)
            at = t
            draws = rng.standard_normal((directions, hidden(state).size))
            draws /= np.linalg.norm(draws, axis=1, keepdims=True)
            moved = [perturbed(state, length * draw) for length in lengths for draw in draws]
            distances = coupled(filter, [state, *moved], values[t : t + horizon + 1], threads=THREADS)
            total = np.sqrt((distances**2).sum(axis=1)).reshape(len(lengths), directions)
            ratios.append(total / np.asarray(lengths)[:, None])
    found = np.array(ratios)
    overall = np.percentile(found, PERCENTILES)
    each = np.percentile(found, PERCENTILES, axis=(0, 2)).T
    verdict = "O3" if overall[0] >= CLEAR else "weak-quotient"
    return Observability(overall, each, np.array(PERCENTILES), np.array(lengths), verdict, found, horizon)


def observability_words(p5: float, p50: float, verdict: str) -> str:
    """Whether the state shows in the output.

    >>> observability_words(0.06, 0.4, "weak-quotient")
    'some directions of the state hardly show within ten steps (p5 0.06 of p50 0.40): harmless while they stay unseen'
    """
    if verdict == "O3":
        return f"every direction of the state shows in the laws within ten steps (p5 {p5:.2f}): nothing hides"
    told = f"some directions of the state hardly show within ten steps (p5 {p5:.2f} of p50 {p50:.2f})"
    return f"{told}: harmless while they stay unseen"


def observability_record(subject: Subject) -> Record:
    """Percentiles of the finite-horizon observability ratio."""
    found = observability(subject.state_space, subject.values, subject.start, seed=subject.seed)
    levels = [f"p{level}" for level in found.levels.tolist()]
    ratios = np.sort(found.ratios.reshape(-1))
    share = np.linspace(0.0, 1.0, len(ratios))
    every = slice(None, None, max(1, len(ratios) // DRAWN))
    return {
        "value": found.percentile(5),
        **dict(zip(levels, listed(found.percentiles), strict=True)),
        "class": found.verdict,
        "horizon": found.horizon,
        "by_length": {
            f"{length:g}": dict(zip(levels, listed(row), strict=True))
            for length, row in zip(found.lengths, found.by_length, strict=True)
        },
        "curve": curve(ratios[every], share[every], "distribution of the observability ratio"),
        "verdict": observability_words(found.percentile(5), found.percentile(50), found.verdict),
    }
