"""Contraction of a frozen filter: how fast the laws of two copies come together (rho_dG, rho_DL).

Copy a starts from zero, copies b from N(0, tau^2 I); all see the same readings. The Bures-Wasserstein distance of the
emitted laws is fitted by C rho^t on the steps with a distance in [1e-8, 0.8 of the first one] (paper, Bures-Wasserstein
audit). For the linear filter at rest the distance is that of the means, and its late rate is sigma_1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.audits.coupling import THREADS, Fit, coupled, decay_rate, fit_window, inputs, starts
from jointset.audits.forgetting import robustness
from jointset.audits.records import SMALL, Record, decay_curve, forgotten_after, rate_words
from jointset.audits.subject import Subject
from jointset.contracts import Array, Filter
from jointset.predicting.fitting import one_thread
from jointset.support.how_far import part

PAIRS = 30
STEPS = 200
FLOOR = 1e-8
TOP = 0.8
HORIZON = 10  # L of the finite-horizon metric
GRID = {"steps": (100, 200, 400), "pairs": (20, 30, 50), "scale": (0.5, 1.0, 2.0)}


class Decay(NamedTuple):
    """Rates fitted to the decay of K coupled pairs."""

    rate: float  # mean over the pairs; NaN where no pair could be fitted
    standard_error: float  # of that mean
    rates: Array  # (K,), NaN where a pair has fewer than three steps in the window
    late: Fit  # fitted to the root mean square over the pairs, on the later half of its window: the asymptote


class Contraction(NamedTuple):
    """What the coupled pairs showed; `steps`, `mean` and `error` draw the decay."""

    rho_dG: Decay  # of the distance of the emitted laws
    rho_DL: Decay  # of the finite-horizon distance, sqrt(sum of the next 11 squared distances)
    steps: Array  # (T,) 0 .. T - 1
    mean: Array  # (T,) mean distance over the pairs; 0 after all have met the floor
    error: Array  # (T,) its standard error
    distances: Array  # (K, T)
    floor: float
    floor_share: float  # share of pairs that met the numerical floor
    fitted_share: float  # share of pairs with a rate
    pairs: int
    scale: float


def contraction(
    filter: Filter[Any],
    values: Array,
    *,
    pairs: int = PAIRS,
    steps: int = STEPS,
    scale: float = 1.0,
    floor: float = FLOOR,
    top: float = TOP,
    horizon: int = HORIZON,
    seed: int = 0,
) -> Contraction:
    """Audit a fitted filter on the last `steps` rows of readings (T, N) in its own units (paper: end of training).

    Parameters
    ----------
    pairs, scale
        Number of perturbed copies and their standard deviation tau around the zero state.
    floor, top
        The fit window: distances in [floor, top * first distance].
    horizon
        L of the finite-horizon distance behind rho_DL.
    """
    rows = inputs(values, steps)
    states = starts(filter, pairs, scale, np.random.default_rng(seed))
    with one_thread():
        distances = coupled(filter, states, rows, floor, THREADS)
    return _contraction(distances, floor, top, horizon, scale)


def _contraction(distances: Array, floor: float, top: float, horizon: int, scale: float) -> Contraction:
    pairs, steps = distances.shape
    whole = decay(distances, floor, top)
    met = (distances < floor).any(axis=1)
    return Contraction(
        whole,
        decay(finite_horizon(distances, horizon), floor, top),
        np.arange(steps),
        distances.mean(axis=0),
        _standard_error(distances),
        distances,
        floor,
        float(met.mean()),
        float(np.isfinite(whole.rates).mean()),
        pairs,
        scale,
    )


def decay(distances: Array, floor: float = FLOOR, top: float = TOP) -> Decay:
    """Rates of distances (K, T): one for each pair, their mean, and the late rate of the root mean square."""
    rates = np.array([decay_rate(row, fit_window(row, floor, top)).rate for row in distances])
    fitted = rates[np.isfinite(rates)]
    mean = float(fitted.mean()) if len(fitted) else float("nan")
    error = float(fitted.std(ddof=1) / np.sqrt(len(fitted))) if len(fitted) > 1 else float("nan")
    together = np.sqrt((distances**2).mean(axis=0))
    window = np.flatnonzero(fit_window(together, floor, top))
    return Decay(mean, error, rates, decay_rate(together, window[len(window) // 2 :]))


def finite_horizon(distances: Array, horizon: int = HORIZON) -> Array:
    """sqrt(sum_{l = 0}^{L} d(t + l)^2) (K, T - L) of distances (K, T): the finite-horizon observable metric."""
    horizon = min(horizon, distances.shape[1] - 1)
    windows = np.lib.stride_tricks.sliding_window_view(distances**2, horizon + 1, axis=1)
    return np.sqrt(windows.sum(axis=-1))


def _standard_error(distances: Array) -> Array:
    pairs = len(distances)
    return distances.std(axis=0, ddof=1) / np.sqrt(pairs) if pairs > 1 else np.full(distances.shape[1], np.nan)


class Setting(NamedTuple):
    """One setting of the sensitivity grid and the rates it gives."""

    steps: int
    pairs: int
    scale: float
    rho_dG: float
    rho_DL: float


def sensitivity(filter: Filter[Any], values: Array, *, seed: int = 0) -> tuple[Setting, ...]:
    """The rates when steps, pairs and scale vary one at a time around 200, 30 and 1 (paper: they move by <= 0.02).

    All settings start at the same row, and fewer pairs are the first of many: three coupled runs serve the grid.
    """
    most_steps, most_pairs = int(max(GRID["steps"])), int(max(GRID["pairs"]))
    rows = inputs(values, most_steps)

    def run(pairs: int, scale: float, rows: Array) -> Array:
        states = starts(filter, pairs, scale, np.random.default_rng(seed))
        with one_thread():
            return coupled(filter, states, rows, FLOOR, THREADS)

    with part(1, 2):
        many = run(most_pairs, 1.0, rows)
    wanted = [(int(steps), PAIRS, 1.0) for steps in GRID["steps"]]
    wanted += [(STEPS, int(pairs), 1.0) for pairs in GRID["pairs"]]
    wanted += [(STEPS, PAIRS, float(scale)) for scale in GRID["scale"]]
    found = []
    for steps, pairs, scale in dict.fromkeys(wanted):
        distances = many[:pairs, :steps] if scale == 1.0 else run(pairs, scale, rows[:steps])
        rates = (decay(part, FLOOR).rate for part in (distances, finite_horizon(distances)))
        found.append(Setting(min(steps, len(rows)), pairs, scale, *rates))
    return tuple(found)


def contraction_words(name: str, value: float, what: str, forgotten: float, apart: int, pairs: int, steps: int) -> str:
    """As `rate`, from coupled pairs of which some may have stayed apart."""
    if not apart:
        return rate_words(name, value, what, forgotten)
    told = f"{apart} of {pairs} wrong starts still show after {steps} steps"
    if apart < pairs / 2:
        return f"{told}, the others are forgotten: there is a second resting place; start it as calibrated only"
    return f"{told}: the filter does not forget; start it as calibrated only"


def sensitivity_words(laws: float, scores: float) -> str:
    """Whether the rates depend on how they are measured; the paper says by at most 0.02 and 0.005."""
    told = f"over the grids of settings rho_dG moves by {laws:.3f} and rho_score by {scores:.3f}"
    return f"{told}: {'the rates can be relied on' if max(laws, scores) <= 0.05 else 'read them as orders of size'}"


def rho_dG(subject: Subject) -> Record:
    """Bures-Wasserstein decay of the emitted laws of coupled pairs."""
    found = subject.contraction
    record = _pairs(subject, "rho_dG", found.rho_dG, found.distances, "the effect of a wrong state on the law")
    drawn = decay_curve(found.steps, found.mean, "distance of the emitted laws", found.error)
    return record | {"floor_share": found.floor_share, "fitted_share": found.fitted_share, "curve": drawn}


def rho_DL(subject: Subject) -> Record:
    """Decay of the finite-horizon distance of coupled pairs."""
    found = subject.contraction
    distances = finite_horizon(found.distances)
    record = _pairs(subject, "rho_DL", found.rho_DL, distances, "the effect of a wrong state over the next ten laws")
    drawn = decay_curve(np.arange(distances.shape[1]), distances.mean(axis=0), "finite-horizon distance")
    return record | {"curve": drawn}


def _pairs(subject: Subject, name: str, decay: Decay, distances: Array, what: str) -> Record:
    """Numbers and verdict of coupled pairs (K, T).

    The linear filter decays at one rate in the end, which the later half of the window shows (sigma_1). A learned one
    decays at a rate that changes with the readings: the mean over the pairs and the whole window, as in the paper.
    """
    late = decay.late.rate if subject.is_linear else float("nan")
    value = late if np.isfinite(late) else decay.rate
    pairs, steps = distances.shape
    apart = int(np.sum(distances[:, -1] > SMALL * distances[:, 0]))
    forgotten = forgotten_after(distances.mean(axis=0))
    return {
        "value": value,
        "window_rate": decay.rate,
        "late_rate": decay.late.rate,
        "standard_error": decay.standard_error,
        "forgotten_after": forgotten,
        "pairs": pairs,
        "apart": apart,
        "verdict": contraction_words(name, value, what, forgotten, apart, pairs, steps),
    }


def sensitivity_record(subject: Subject) -> Record:
    """The rates of the coupled audits over the paper's grids of settings."""
    laws = sensitivity(subject.state_space, subject.coupled_values, seed=subject.seed)
    scores = robustness(subject.state_space, subject.coupled_values, seed=subject.seed)
    moves = [
        float(np.ptp([rate for rate in rates if np.isfinite(rate)] or [np.nan]))
        for rates in ([one.rho_dG for one in laws], [one.rho_DL for one in laws], [one.rho for one in scores])
    ]
    return {
        "value": moves[0],
        **dict(zip(("moves_rho_dG", "moves_rho_DL", "moves_rho_score"), moves, strict=True)),
        "rho_dG": [one._asdict() for one in laws],
        "rho_score": [one._asdict() for one in scores],
        "verdict": sensitivity_words(moves[0], moves[2]),
    }
