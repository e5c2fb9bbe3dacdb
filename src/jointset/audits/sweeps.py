"""Sweeps over choices of the method: the warm-up t0, the rank of the learned covariance, the calibration length m."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.calibration.quantiles import minimum_scores, score_quantile
from jointset.calibration.split import Split
from jointset.contracts import Array, Score
from jointset.errors import require
from jointset.joint_predictor import Run
from jointset.panel import Panel
from jointset.predicting.integrated_time import LAGS, integrated_time
from jointset.scores import Mahalanobis

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell
    from jointset.joint_predictor import JointPredictor

WARMUPS = (1, 25, 50, 100, 200)  # the paper's grid; its 0 keeps all scores, which is our 1
RANKS = (0, 1, 2, 4, 8, 16)
SIZES = (125, 250, 500, 1000, 2000, 3500)  # the paper's grid begins at 500
ROOM = 1.5  # scores for a window of one


class Sweep(NamedTuple):
    """Sizes and coverage on later rows for every setting."""

    settings: Array
    joint: Array
    width: Array
    width_full: Array
    log_volume: Array
    radius: Array


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

    The filter passes through the rows once: only the radius depends on the warm-up. Settings that leave too few scores
    are left out. The predictor is not changed.
    """
    probe = predictor.copy()
    probe.calibration = Split(predictor.alpha)
    probe.calibration_state = probe.calibration.start(predictor.calibration_scores)
    probe.filter_state = probe.filter.start()
    scores = probe.run(calibration, regions=False).score
    run = probe.run(test, regions=False)
    needed = minimum_scores(predictor.alpha)
    rows = []
    for t0 in warmups:
        kept = scores[t0 - 1 :]
        kept = kept[~np.isnan(kept)]
        if len(kept) >= needed:
            radius = score_quantile(np.sort(kept), predictor.alpha)
            rows.append((t0, *_at_radius(predictor.score, run, radius), radius))
    require(bool(rows), f"{len(scores)} rows are too few for a warm-up sweep at alpha={predictor.alpha}")
    return Sweep(*(np.array(column) for column in zip(*rows, strict=True)))


def _at_radius(score: Score[Any], run: Run, radius: float) -> tuple[float, ...]:
    """Coverage, widths and log-volume of a run with another radius: widths are linear in its root or in itself."""
    seen = ~np.isnan(run.score)
    ratio = radius / run.radius
    ratio = np.sqrt(ratio) if isinstance(score, Mahalanobis) else ratio
    joint = float((run.score[seen] <= radius).mean())
    volume = float(np.mean(run.log_volume + np.log(ratio)))
    return joint, float(np.mean(run.width * ratio)), float(np.mean(run.width_full * ratio)), volume


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
    for rank in ranks:
        predictor = fitted_row(method, cell, alpha, seed, training={**(training or {}), "rank": rank})
        run = predictor.run(cell.test, regions=False)
        sizes = (float(np.mean(size)) for size in (run.width, run.width_full, run.log_volume))
        rows.append((rank, run.joint, *sizes, float(run.radius[0])))
        if progress is not None:
            progress(rank)
    return Sweep(*(np.array(column) for column in zip(*rows, strict=True)))
