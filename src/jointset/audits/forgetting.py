"""Score forgetting: how fast the score distributions of differently started copies come together (rho_score).

Copy 0 starts from zero, K copies from N(0, tau^2 I), all on the same readings. The 1-Wasserstein distance of their root
scores is regressed on the step over 20 .. 100 (paper, synchronous-coupling estimator). A filter that forgets quickly
is at rounding level before step 20: then that window holds no information, which is said, and the rate comes from the
steps before (the window rule of the contraction audit).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jointset.audits.coupling import Fit, decay_rate, fit_window, inputs, starts, trajectories
from jointset.audits.records import Record, decay_curve, forgotten_after, rate_words
from jointset.audits.subject import Subject
from jointset.contracts import Array, Filter
from jointset.laws import AnyLaw
from jointset.support.how_far import each

STEPS = 200
COPIES = 5
WINDOW = (20, 100)
ROUNDING = 1e-12  # of the typical root score: below it, differences of scores are noise
TOP = 0.8
GRID: dict[str, tuple[Any, ...]] = {
    "steps": (100, 200, 400),
    "copies": (3, 5, 10),
    "scale": (0.5, 1.0, 2.0),
    "window": tuple((first, last) for first in (10, 20, 30) for last in (80, 100, 150)),
}


class Forgetting(NamedTuple):
    """Decay of the distance between score distributions; `steps` and `distance` draw it, `error` is its spread."""

    rho: float  # `fixed` where its window holds information, else `free`
    fixed: Fit  # over the paper's window, steps above the floor only
    free: Fit  # over the steps from 0.8 of the first distance down to the floor
    steps: Array  # (T,) 0 .. T - 1, rows without any reading left out
    distance: Array  # (T,) 1-Wasserstein distance of the root scores
    error: Array  # (T,) standard error over the copies
    floor: float
    floor_share: float  # share of the fixed window at the floor
    measurable: bool  # whether the fixed window could be fitted
    window: tuple[int, int]
    copies: int
    scale: float


def wasserstein_1(a: Array, b: Array) -> Array:
    """1-Wasserstein distance (...) of equal-weight samples (..., n) and (..., k): integral of |F^-1 - G^-1|.

    >>> float(wasserstein_1(np.array([0.0, 2.0]), np.array([1.0, 1.0, 4.0])))
    1.33...
    """
    a, b = np.sort(np.asarray(a, dtype=float), axis=-1), np.sort(np.asarray(b, dtype=float), axis=-1)
    n, k = a.shape[-1], b.shape[-1]
    if n == k:
        return np.abs(a - b).mean(axis=-1)
    # both quantile functions are constant between neighbouring multiples of 1/n and 1/k
    edges = np.unique(np.concatenate([np.arange(n + 1) * k, np.arange(k + 1) * n]))  # in units of 1 / (n k)
    left = edges[:-1]
    return np.abs(a[..., left // k] - b[..., left // n]) @ (np.diff(edges) / (n * k))


def score_forgetting(
    filter: Filter[Any],
    values: Array,
    *,
    copies: int = COPIES,
    steps: int = STEPS,
    scale: float = 1.0,
    window: tuple[int, int] = WINDOW,
    score: Callable[[AnyLaw, Array], Array] | None = None,
    seed: int = 0,
) -> Forgetting:
    """Audit a fitted filter on the last `steps` rows of readings (T, N) in its own units (paper: end of training).

    `score(laws, reading)` gives one number for each law of a batch; by default the root of the Mahalanobis distance.
    """
    roots = coupled_scores(filter, inputs(values, steps), copies, scale, score, seed)
    return _forgetting(roots, window, scale)


def coupled_scores(
    filter: Filter[Any],
    values: Array,
    copies: int,
    scale: float = 1.0,
    score: Callable[[AnyLaw, Array], Array] | None = None,
    seed: int = 0,
) -> Array:
    """Scores (copies + 1, T) of coupled copies on rows of readings (T, N), the unperturbed copy first."""
    states = starts(filter, copies, scale, np.random.default_rng(seed))
    rule = score or (lambda laws, y: np.sqrt(laws.mahalanobis(y)))
    pairs = zip(trajectories(filter, states, values), values, strict=True)
    return np.stack([rule(laws, np.broadcast_to(y, laws.mean.shape)) for laws, y in pairs], axis=1)


def _forgetting(scores: Array, window: tuple[int, int], scale: float) -> Forgetting:
    copies = len(scores) - 1
    steps = np.flatnonzero(~np.isnan(scores).any(axis=0))
    # copy 0 is one score at every step: its distribution over the K perturbations is that score K times
    distance = np.zeros(scores.shape[1])
    distance[steps] = wasserstein_1(scores[1:, steps].T, np.broadcast_to(scores[0, steps], (copies, len(steps))).T)
    gaps = np.abs(scores[1:] - scores[0])
    error = gaps.std(axis=0, ddof=1) / np.sqrt(copies) if copies > 1 else np.full(len(distance), np.nan)
    floor = ROUNDING * float(np.nanmedian(np.abs(scores[0])))
    inside = (np.arange(len(distance)) >= window[0]) & (np.arange(len(distance)) <= window[1])
    seen = np.isin(np.arange(len(distance)), steps)
    above = seen & (distance > floor)
    fixed = decay_rate(distance, inside & above)
    free = _free(distance[steps], steps, floor)
    at_floor = float(1.0 - above[inside & seen].mean()) if (inside & seen).any() else 1.0
    measurable = at_floor <= 0.5 and fixed.points > 0
    return Forgetting(
        fixed.rate if measurable else free.rate,
        fixed,
        free,
        steps,
        distance[steps],
        error[steps],
        floor,
        at_floor,
        measurable,
        window,
        copies,
        scale,
    )


def _free(distance: Array, steps: Array, floor: float) -> Fit:
    whole = np.zeros(int(steps[-1]) + 1) if len(steps) else np.zeros(0)
    whole[steps] = distance
    return decay_rate(whole, steps[fit_window(distance, floor, TOP)]) if len(steps) else decay_rate(whole, steps)


class Setting(NamedTuple):
    """One setting of the robustness grid and the rates it gives."""

    steps: int
    copies: int
    scale: float
    window: tuple[int, int]
    rho: float


def robustness(filter: Filter[Any], values: Array, *, seed: int = 0) -> tuple[Setting, ...]:
    """The rate when steps, copies, scale and window vary one at a time around 200, 5, 1 and 20 .. 100."""
    rows = inputs(values, max(GRID["steps"]))
    wanted = [(steps, COPIES, 1.0, WINDOW) for steps in GRID["steps"]]
    wanted += [(STEPS, copies, 1.0, WINDOW) for copies in GRID["copies"]]
    wanted += [(STEPS, COPIES, scale, WINDOW) for scale in GRID["scale"]]
    wanted += [(STEPS, COPIES, 1.0, window) for window in GRID["window"]]
    most = max(GRID["copies"])
    runs = {scale: coupled_scores(filter, rows, most, scale, seed=seed) for scale in each(GRID["scale"])}
    found = []
    for steps, copies, scale, window in dict.fromkeys(wanted):
        result = _forgetting(runs[scale][: copies + 1, :steps], window, scale)
        found.append(Setting(min(steps, len(rows)), copies, scale, window, result.rho))
    return tuple(found)


def rho_score(subject: Subject) -> Record:
    """Decay of the distance between the score distributions of coupled copies."""
    filter_ = subject.state_space
    what = "the effect of a wrong state on the score"
    score = None if subject.ellipsoid else subject.predictor.score.score
    found = score_forgetting(filter_, subject.coupled_values, score=score, seed=subject.seed)
    return {
        "value": found.rho,
        "window_rate": found.fixed.rate,
        "free_rate": found.free.rate,
        "window_measurable": found.measurable,
        "floor_share": found.floor_share,
        "copies": found.copies,
        "curve": decay_curve(found.steps, found.distance, "W1 of the score distributions", found.error),
        "verdict": rate_words("rho_score", found.rho, what, forgotten_after(found.distance)),
    }
