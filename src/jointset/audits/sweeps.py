"""Sweeps over choices of the method: the warm-up t0, the rank of the learned covariance, the calibration length m."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.abilities import LowRank
from jointset.audits.records import Record, curve, decay_curve, listed
from jointset.audits.subject import Skip, Subject
from jointset.calibration.quantiles import minimum_scores
from jointset.calibration.split import Split
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.predicting.integrated_time import LAGS, integrated_time
from jointset.support.how_far import each, part

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell
    from jointset.joint_predictor import JointPredictor

WARMUPS = (1, 25, 50, 100, 200)  # the paper's grid; its 0 keeps all scores, which is our 1
RANKS = (0, 1, 2, 4, 8, 16)
SIZES = (125, 250, 500, 1000, 2000, 3500)  # the paper's grid begins at 500
ROOM = 1.5  # scores for a window of one

SLOW = -0.25  # power of m_eff above which errors fall too slowly
BEYOND = 1.75  # errors over those foreseen that are too large: at most 5 % of stationary series of 1,551 have them
SETTLED = 0.03  # a width that moves by less than this share has settled


class Sweep(NamedTuple):
    """Sizes and coverage on later rows for every setting."""

    settings: Array
    joint: Array
    width: Array
    width_full: Array
    log_volume: Array
    radius: Array

    def columns(self) -> Record:
        """All but the settings, for a record."""
        return {name: listed(values) for name, values in self._asdict().items() if name != "settings"}


class SizeSweep(NamedTuple):
    """How far the share of hits of m scores lies from that of all T, for every m.

    error: root mean square over all windows of m consecutive scores · expected: what tau_int says of it · bernstein:
    half-width of the band of that share (confidence 90 %) · within: share of the windows inside it · ratio: error over
    expected, root mean square · exponent: of m_eff in the error, -1/2 by theory.
    """

    sizes: Array
    error: Array
    expected: Array
    bernstein: Array
    within: Array
    tau_int: float
    ratio: float
    exponent: float


def size_sweep(
    scores: Array, threshold: float, alpha: float, sizes: Sequence[int] = SIZES, *, tau: float | None = None
) -> SizeSweep:
    """|F_m(s*) - E F_m(s*)| against m_eff^-1/2 (paper, calibration-size sweep) of scores (T,) at a threshold s*.

    F_m is the share of hits of m consecutive scores, E F_m that of all. A window is a part of the series it is held
    against, so that its error has variance F (1 - F) tau_int (1/m - 1/T): the exponent is fitted to that. tau_int
    (`tau`) is that of these hits unless it is given.
    """
    from jointset.audits.theory_coverage import bernstein_interval

    hits = (scores[~np.isnan(scores)] <= threshold).astype(float)
    total, share = len(hits), float(hits.mean()) if len(hits) else 0.0
    needed = int(np.ceil(ROOM * sorted(sizes)[1]))
    require(total >= needed, f"{total} scores are too few for a sweep over their number: {needed} are needed")
    require(0.0 < share < 1.0, "all hits or none: their share does not err")
    tau = tau or max(max(integrated_time(hits, lags).tau, 1.0) for lags in (None, LAGS))
    kept = np.array([m for m in sizes if ROOM * m <= total])
    sums = np.concatenate([[0.0], np.cumsum(hits)])
    away = [np.abs((sums[m:] - sums[:-m]) / m - share) for m in kept]
    error = np.array([np.sqrt(np.mean(one**2)) for one in away])
    expected = np.sqrt(share * (1.0 - share) * tau * (1.0 / kept - 1.0 / total))
    bands = [bernstein_interval(alpha, m / tau, clip=False) for m in kept]
    half = np.array([(high - low) / 2.0 for low, high in bands])
    within = np.array([np.mean(one <= limit) for one, limit in zip(away, half, strict=True)])
    slope = float(np.polyfit(np.log(expected), np.log(np.maximum(error, np.finfo(float).tiny)), 1)[0])
    ratio = float(np.sqrt(np.mean((error / expected) ** 2)))
    return SizeSweep(kept, error, expected, half, within, tau, ratio, -0.5 * slope)


def warmup_sweep(predictor: JointPredictor, calibration: Panel, test: Panel, warmups: Sequence[int] = WARMUPS) -> Sweep:
    """Split radius for every warm-up from a fresh filter state, then its sets on the test rows.

    Settings that leave too few scores are left out. The predictor is not changed.
    """
    probe = predictor.copy()
    probe.calibration = Split(predictor.alpha)
    probe.calibration_state = probe.calibration.start(predictor.calibration_scores)
    probe.filter_state = probe.filter.start()
    passes = len(warmups) + 1
    with part(1, passes):
        scores = probe.run(calibration, regions=False).score
    needed = minimum_scores(predictor.alpha)
    rows = []
    for i, t0 in enumerate(warmups, 2):
        kept = scores[t0 - 1 :]
        kept = kept[~np.isnan(kept)]
        if len(kept) >= needed:
            again = probe.copy()
            again.calibration_state = again.calibration.start(kept)
            with part(i, passes):
                run = again.run(test, regions=False)
            sizes = (float(np.mean(size)) for size in (run.width, run.width_full, run.log_volume))
            rows.append((t0, run.joint, *sizes, float(run.radius[0])))
    require(bool(rows), f"{len(scores)} rows are too few for a warm-up sweep at alpha={predictor.alpha}")
    return Sweep(*(np.array(column) for column in zip(*rows, strict=True)))


def rank_sweep(
    method: str,
    cell: Cell,
    alpha: float = 0.1,
    seed: int = 0,
    ranks: Sequence[int] = RANKS,
    *,
    training: dict[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """A learned filter trained afresh for every rank of its covariance, calibrated and tested on a cell."""
    from jointset.experiments.rows import fitted_row

    rows = []
    for rank in each(ranks):
        predictor = fitted_row(method, cell, alpha, seed, training={**(training or {}), "rank": rank})
        run = predictor.run(cell.test, regions=False)
        sizes = (float(np.mean(size)) for size in (run.width, run.width_full, run.log_volume))
        rows.append((rank, run.joint, *sizes, float(run.radius[0])))
        if progress is not None:
            progress(rank)
    return Sweep(*(np.array(column) for column in zip(*rows, strict=True)))


def size_sweep_words(sizes: Sequence[int], errors: Sequence[float], exponent: float, ratio: float) -> str:
    """Whether a longer calibration errs less, as the root of its effective size says.

    >>> size_sweep_words([500, 1000, 2000], [0.02, 0.014, 0.01], -0.5, 1.04)[-70:]
    '(as m_eff^-0.50, 1.0 times what tau_int says of them): as it should be'
    """
    ends = " and ".join(f"{errors[i]:.3f} at m = {sizes[i]:,}" for i in (0, -1))
    told = f"shares of hits of m scores err by {ends}"
    told += f" (as m_eff^{exponent:.2f}, {ratio:.1f} times what tau_int says of them)"
    if exponent <= SLOW and ratio <= BEYOND:
        return f"{told}: as it should be"
    return f"{told}: scores change over these rows, a longer calibration helps less than its length says"


def settled(settings: Sequence[int], widths: Sequence[float], used: int) -> bool | None:
    """Whether the width has settled at the warm-up in use; None where no longer one could be tried.

    >>> settled([1, 50, 200], [3.2, 3.04, 3.03], 50), settled([1, 50], [3.2, 3.0], 50)
    (True, None)
    """
    at = _nearest(settings, used)
    moves = [abs(width / widths[at] - 1.0) for width in widths[at + 1 :]]
    return max(moves) <= SETTLED if moves else None


def warmup_words(settings: Sequence[int], widths: Sequence[float], used: int) -> str:
    """Whether the warm-up matters: what the first steps cost, and whether the width still moves after it.

    >>> warmup_words([1, 25, 50, 100, 200], [3.19, 3.05, 3.04, 3.03, 3.03], 50)
    'without a warm-up the sets are 4.9 % wider; from t0 = 50 to 200 the width moves by 0.3 %: 50 is enough'
    """
    at, enough = _nearest(settings, used), settled(settings, widths, used)
    cost = widths[0] / widths[at] - 1.0
    change = f"{100 * abs(cost):.1f} % {'narrower' if cost < 0 else 'wider'}" if abs(cost) >= 5e-4 else "as wide"
    told = f"without a warm-up the sets are {change}"
    if enough is None:
        return f"{told}; too few rows to say whether {used} is enough"
    moves = max(abs(width / widths[at] - 1.0) for width in widths[at:])
    told += f"; from t0 = {settings[at]} to {settings[-1]} the width moves by {100 * moves:.1f} %"
    return f"{told}: {used} is {'enough' if enough else 'too short'}"


def _nearest(settings: Sequence[int], used: int) -> int:
    return min(range(len(settings)), key=lambda i: abs(settings[i] - used))


def rank_words(settings: Sequence[float], widths: Sequence[float], volumes: Sequence[float]) -> str:
    """From which rank the volume no longer falls; widths alone cannot tell, since a tilted set has wider bounds.

    >>> rank_words([0, 1, 4], [2.9, 3.1, 3.7], [0.1, -0.2, -0.49])
    'rank 4 is enough: 0.59 nats a sensor less volume than rank 0 (within 0.02 of the best), at width 3.70 against 2.90'
    """
    enough = next(i for i, volume in enumerate(volumes) if volume <= min(volumes) + 0.02)
    gain = volumes[0] - volumes[enough]
    told = f"{gain:.2f} nats a sensor less volume than rank {settings[0]} (within 0.02 of the best)"
    return f"rank {settings[enough]} is enough: {told}, at width {widths[enough]:.2f} against {widths[0]:.2f}"


def m_sweep(subject: Subject) -> Record:
    """Error of the share of hits against the number of scores it is taken from, and what calibration foresees of it."""
    scores, times = np.concatenate([subject.scores, subject.run.score]), subject.dependence
    tau = float(np.fmax(np.fmax(times.time.tau, times.automatic.tau), 1.0))  # as `m_eff` has it
    found = size_sweep(scores, subject.radius, subject.alpha, tau=tau)
    sizes = found.sizes / found.tau_int
    return {
        "value": found.exponent,
        "m": listed(found.sizes),
        "m_eff": listed(sizes),
        "error": listed(found.error),
        "expected": listed(found.expected),
        "bernstein": listed(found.bernstein),
        "within": listed(found.within),
        "ratio": found.ratio,
        "tau_int": found.tau_int,
        "threshold": subject.radius,
        "scores": int((~np.isnan(scores)).sum()),
        "curve": {**decay_curve(found.sizes, found.error, "error of the share of hits of m scores"), "xlabel": "m"},
        "verdict": size_sweep_words(listed(found.sizes), listed(found.error), found.exponent, found.ratio),
    }


def warmup(subject: Subject) -> Record:
    """Widths and coverage over the warm-up t0."""
    _ = subject.filter, subject.scores  # rows without either are refused
    found = warmup_sweep(subject.predictor, subject.calibration_rows, subject.test_rows)
    swept = listed(found.settings), listed(found.width_full), subject.predictor.warmup
    return {
        "value": float(np.ptp(found.width_full) / found.width_full[-1]),
        "warmup": listed(found.settings),
        **found.columns(),
        "curve": curve(found.settings, found.width_full, "full width over the warm-up t0"),
        "enough": settled(*swept),
        "verdict": warmup_words(*swept),
    }


def rank(subject: Subject) -> Record:
    """Sizes and coverage over the rank of the learned covariance; trains a filter for each."""
    cell = subject.fitted_on
    if not isinstance(subject.filter, LowRank):
        raise Skip("only learned filters have a rank")

    def trained(r: int) -> None:
        if subject.progress is not None:
            subject.progress(f"rank {r} trained")

    found = rank_sweep(subject.method, cell, subject.alpha, subject.seed, training=subject.training, progress=trained)
    settings, widths, volumes = (listed(x) for x in (found.settings, found.width_full, found.log_volume))
    return {
        "value": int(found.settings[int(found.log_volume.argmin())]),
        "rank": settings,
        **found.columns(),
        "curve": curve(found.settings, found.log_volume, "log-volume a sensor over the rank"),
        "verdict": rank_words(settings, widths, volumes),
    }
