"""Audits of the law and of the choices around it, each as a record: numbers, curve, verdict.

A record is a dictionary ready for JSON; `curve` holds x, y, se (standard errors or None) and a label, for plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jointset.abilities import LowRank
from jointset.audits import verdicts
from jointset.audits.subject import Skip, Subject
from jointset.contracts import Array

Record = dict[str, Any]
PERCENTS = (1, 5, 50, 95, 99)


def curve(x: Sequence[float] | Array, y: Sequence[float] | Array, label: str, se: Any = None) -> Record:
    """A curve for plots."""
    return {"x": listed(x), "y": listed(y), "se": None if se is None else listed(se), "label": label}


def listed(x: Any) -> list[Any]:
    """An array as plain numbers."""
    return np.asarray(x).tolist()


def percentiles(x: Array) -> dict[str, float]:
    """p1, p5, p50, p95 and p99."""
    return {f"p{p}": float(q) for p, q in zip(PERCENTS, np.percentile(x, PERCENTS), strict=True)}


def lipschitz(subject: Subject) -> Record:
    """Root-score Lipschitz quotients along the trajectory."""
    from jointset.audits.lipschitz import root_score_lipschitz

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
        "verdict": verdicts.lipschitz(found.p50, found.p95, found.p99),
    }


def spectrum(subject: Subject) -> Record:
    """Eigenvalues of the emitted covariances and the margin above the floor."""
    from jointset.audits.spectrum import covariance_spectrum

    found = covariance_spectrum(subject.emitted.sample, subject.variance_floor)
    condition = percentiles(found.condition)
    return {
        "value": condition["p50"],
        "lambda_min": {"min": float(found.smallest.min()), **percentiles(found.smallest)},
        "lambda_max": {**percentiles(found.largest), "max": float(found.largest.max())},
        "condition": {**condition, "max": float(found.condition.max())},
        "M_G": found.M_G,
        "floor": found.floor,
        "margin": found.margin,
        "near_floor": found.near_floor,
        "steps": len(found.smallest),
        "curve": curve(np.arange(1, subject.n + 1), found.median[::-1], "median eigenvalue, largest first"),
        "verdict": verdicts.spectrum(condition["p50"], condition["p99"], found.margin, found.near_floor),
    }


def trace_ratio(subject: Subject) -> Record:
    """Predicted against realised innovation variance, on the calibration rows where there are some."""
    from jointset.audits.trace_ratio import trace_ratio as ratio_of

    rows = slice(subject.calibrating and subject.predictor.warmup - 1, subject.calibrating or None)
    emitted = subject.emitted
    kept, left_out = _kept(subject, rows, 1)
    found = ratio_of(*(array[rows][:, kept] for array in (emitted.mean, emitted.variance, subject.values)))
    low, high = np.percentile(found.sensors, [5, 95])
    return {
        "value": found.ratio,
        "predicted": found.predicted,
        "realised": found.realised,
        "ratio": found.ratio,
        "realised_over_predicted": found.inverse,
        "sensors_p5": float(low),
        "sensors_p95": float(high),
        "left_out": left_out,
        "verdict": verdicts.trace_ratio(found.ratio) + verdicts.left_out(left_out),
    }


def pit(subject: Subject) -> Record:
    """Uniformity of the PIT values of every sensor on the test rows."""
    from jointset.audits.pit import FEWEST
    from jointset.audits.pit import pit as pit_of

    emitted, rows = subject.emitted, slice(subject.calibrating, None)
    times = subject.panel.timestamps
    kept, left_out = _kept(subject, rows, FEWEST)
    mean, variance, values = (array[rows][:, kept] for array in (emitted.mean, emitted.variance, subject.values))
    found = pit_of(mean, variance, values, None if times is None else times[rows])
    passing, n = int(found.passed.sum()), len(kept)
    names = [subject.panel.sensors[i] for i in kept]
    failing = [
        {"sensor": names[i], "ks": float(found.statistic[i]), "cause": found.cause[i], "shape": found.shape[i]}
        for i in np.flatnonzero(~found.passed)
    ]
    kinds = (*found.cause, *found.shape)
    centers = (np.arange(20) + 0.5) / 20
    return {
        "value": passing / n,
        "sensors": n,
        "passing": passing,
        "failing": failing,
        "types": {kind: kinds.count(kind) for kind in sorted(set(kinds) - {""})},
        "ks_median": float(np.median(found.statistic)),
        "ks_max": float(found.statistic.max()),
        "steps": found.steps,
        "left_out": left_out,
        "curve": curve(centers, found.histogram, "density of the PIT values (1 = right)"),
        "verdict": verdicts.pit(n, passing, float(np.median(found.statistic)), found.cause, found.shape)
        + verdicts.left_out(left_out),
    }


def _kept(subject: Subject, rows: slice, fewest: int) -> tuple[list[int], list[str]]:
    """Places of the sensors with that many readings in these rows, and the names of the others."""
    silent = subject.silent(rows, fewest)
    kept = [i for i, name in enumerate(subject.panel.sensors) if name not in set(silent)]
    if not kept:
        raise Skip(f"no sensor has {fewest} reading{'s' * (fewest > 1)} in these rows")
    return kept, silent


def plug_in(subject: Subject) -> Record:
    """Static covariance fitted on the calibration block against training."""
    from jointset.audits.plug_in import plug_in as plug_in_of

    found = plug_in_of(subject.fitted_on, subject.alpha)
    rows = zip(found.joint, found.width, found.width_full, found.radius, strict=True)
    keys = ("joint", "width", "width_full", "radius")
    return {
        "value": found.joint_difference,
        **{pilot: dict(zip(keys, row, strict=True)) for pilot, row in zip(found.pilots, rows, strict=True)},
        "joint_difference": found.joint_difference,
        "width_difference": found.width_difference,
        "verdict": verdicts.plug_in(found.joint[0], found.joint[1], found.width_difference, subject.alpha),
    }


def warmup(subject: Subject) -> Record:
    """Widths and coverage over the warm-up t0."""
    from jointset.audits.sweeps import warmup_sweep

    _ = subject.filter, subject.scores  # rows without either are refused
    found = warmup_sweep(subject.predictor, subject.calibration_rows, subject.test_rows)
    swept = listed(found.settings), listed(found.width_full), subject.predictor.warmup
    return {
        "value": float(np.ptp(found.width_full) / found.width_full[-1]),
        "warmup": listed(found.settings),
        "joint": listed(found.joint),
        "width": listed(found.width),
        "width_full": listed(found.width_full),
        "log_volume": listed(found.log_volume),
        "radius": listed(found.radius),
        "curve": curve(found.settings, found.width_full, "full width over the warm-up t0"),
        "enough": verdicts.settled(*swept),
        "verdict": verdicts.warmup(*swept),
    }


def rank(subject: Subject) -> Record:
    """Sizes and coverage over the rank of the learned covariance; trains a filter for each."""
    from jointset.audits.sweeps import rank_sweep

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
        "joint": listed(found.joint),
        "width": listed(found.width),
        "width_full": widths,
        "log_volume": volumes,
        "curve": curve(found.settings, found.log_volume, "log-volume a sensor over the rank"),
        "verdict": verdicts.rank(settings, widths, volumes),
    }
