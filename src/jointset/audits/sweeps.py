"""Sweeps over two choices of the method: the warm-up t0 and the rank of the learned covariance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.calibration.quantiles import minimum_scores, score_quantile
from jointset.calibration.split import Split
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.predictor import Run
from jointset.scores import Mahalanobis

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

WARMUPS = (1, 25, 50, 100, 200)  # the paper's grid; its 0 keeps all scores, which is our 1
RANKS = (0, 1, 2, 4, 8, 16)


class Sweep(NamedTuple):
    """Sizes and coverage on later rows for every setting."""

    settings: Array
    joint: Array
    width: Array
    width_full: Array
    log_volume: Array
    radius: Array


def warmup_sweep(predictor: Any, calibration: Panel, test: Panel, warmups: Sequence[int] = WARMUPS) -> Sweep:
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


def _at_radius(score: Any, run: Run, radius: float) -> tuple[float, ...]:
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
    from jointset.baselines.rows import fitted_row

    rows = []
    for rank in ranks:
        predictor = fitted_row(method, cell, alpha, seed, training={**(training or {}), "rank": rank})
        run = predictor.run(cell.test, regions=False)
        sizes = (float(np.mean(size)) for size in (run.width, run.width_full, run.log_volume))
        rows.append((rank, run.joint, *sizes, float(run.radius[0])))
        if progress is not None:
            progress(rank)
    return Sweep(*(np.array(column) for column in zip(*rows, strict=True)))
