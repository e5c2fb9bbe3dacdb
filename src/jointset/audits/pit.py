"""Probability integral transform: is every sensor's predictive law right as a distribution?

u_{t,i} = Phi((y - m) / sd) is uniform when the law is right; where the law has tails, Phi is that of their Student-t.
Each sensor is held against the uniform law by the Kolmogorov-Smirnov test, with Bonferroni's correction for the number
of sensors (paper, PIT uniformity). Coverage of the calibrated set does not need it: this audit says what the
calibration has to make up for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jointset.algebra.law_tails import NORMAL, Tails, tails_of
from jointset.audits.records import Record, curve, kept_sensors, left_out_words
from jointset.audits.subject import Subject
from jointset.contracts import Array
from jointset.errors import require
from jointset.support.how_far import each

LEVEL = 0.05  # of the corrected test
FEWEST = 20  # readings of a sensor that can be tested
ATOM = 0.05  # share of readings at one value from which a sensor counts as censored (ZF)
REGIME = 0.05  # share of the variance of the PIT values that the hour of day explains (RG)
BIAS = 0.1  # distance of the mean PIT value from 1/2
SPREAD = 0.2  # relative distance of the variance of the PIT values from 1/12
TAIL = 3.29  # standard deviations that 0.1 % of the readings exceed
HEAVY = 0.005  # share beyond TAIL from which tails are heavy
DAY = 86_400


class PIT(NamedTuple):
    """One entry a sensor, and the histogram of all PIT values.

    cause: `ZF` (more than 5 % of the readings repeat one value: zero flow, a stuck or censored sensor), `RG` (the hour
    of day explains the deviation: regimes), or empty · shape: `biased`, `too narrow` (under-dispersed law), `too wide`
    (over-dispersed), `heavy tails`, `other`, or empty where the test passes.
    """

    statistic: Array  # Kolmogorov-Smirnov distance
    p_value: Array  # corrected, at most 1
    passed: Array  # bool
    cause: tuple[str, ...]
    shape: tuple[str, ...]
    histogram: Array  # (20,) density over [0, 1] of all sensors together; 1 everywhere if all laws are right
    steps: int


def pit(mean: Array, variance: Array, values: Array, timestamps: Array | None = None, tails: Tails = NORMAL) -> PIT:
    """Audit readings (T, N) under laws with these means and variances, normal or of these tails.

    The p-values take the steps as independent, as the paper does; dependence makes failures look surer than they are.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal((500, 2)) * [1.0, 3.0]
    >>> pit(np.zeros_like(y), np.ones_like(y), y).shape
    ('', 'too narrow')
    """
    from scipy.special import ndtr
    from scipy.stats import kstest

    values = np.asarray(values, dtype=float)
    n = values.shape[1]
    z = tails.normal_scores((values - mean) / np.sqrt(variance))
    seen = ~np.isnan(z)
    require(bool((seen.sum(axis=0) >= FEWEST).all()), f"the PIT test needs at least {FEWEST} readings of every sensor")
    statistic, p_value = np.empty(n), np.empty(n)
    causes, shapes = [], []
    for i in each(range(n)):
        here = z[seen[:, i], i]
        u = ndtr(here)
        result = kstest(u, "uniform")
        statistic[i], p_value[i] = result.statistic, min(1.0, n * result.pvalue)
        failed = p_value[i] < LEVEL
        hours = None if timestamps is None else (np.asarray(timestamps)[seen[:, i]] % DAY) // 3600
        causes.append(_cause(values[seen[:, i], i], u, hours) if failed else "")
        shapes.append(_shape(here, u) if failed else "")
    histogram, _ = np.histogram(ndtr(z[seen]), bins=20, range=(0.0, 1.0), density=True)
    return PIT(statistic, p_value, p_value >= LEVEL, tuple(causes), tuple(shapes), histogram, len(values))


def _cause(y: Array, u: Array, hours: Array | None) -> str:
    _, counts = np.unique(y, return_counts=True)
    if counts.max() > ATOM * len(y):
        return "ZF"
    return "RG" if hours is not None and max(_explained(u, hours), _explained(np.abs(u - 0.5), hours)) > REGIME else ""


def _explained(x: Array, groups: Array) -> float:
    """Share of the variance of x that lies between the groups, less what k groups explain by chance (3 sd above it)."""
    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if not 2 <= len(counts) < len(x) or np.ptp(x) == 0:
        return 0.0
    means = np.bincount(index, x) / counts
    between = float(np.sum(counts * (means - x.mean()) ** 2)) / len(x)
    free = len(counts) - 1
    return between / float(x.var()) - (free + 3.0 * np.sqrt(2.0 * free)) / len(x)


def _shape(z: Array, u: Array) -> str:
    """The deviation that stands out, in the order a user would mend them."""
    if abs(float(u.mean()) - 0.5) > BIAS:
        return "biased"
    spread = 12.0 * float(u.var())
    if spread > 1.0 + SPREAD:
        return "too narrow"
    if float(np.mean(np.abs(z) > TAIL)) > HEAVY:
        return "heavy tails"
    return "too wide" if spread < 1.0 - SPREAD else "other"


def pit_words(n: int, passing: int, distance: float, causes: Sequence[str], shapes: Sequence[str]) -> str:
    """How many sensors have the right law."""
    told = f"{passing} of {n} sensors have the right predictive law (median KS distance {distance:.2f})"
    kinds = [kind for kind in shapes if kind]
    parts = [f"law {kind} at {kinds.count(kind)}" for kind in sorted(set(kinds) - {"other"}, key=kinds.count)[::-1]]
    zf, rg = (sum(cause == name for cause in causes) for name in ("ZF", "RG"))
    parts += [f"readings stuck at one value at {zf}"] if zf else []
    parts += [f"off by the hour of day at {rg}"] if rg else []
    return f"{told}: {', '.join(parts)}" if parts else told


def pit_record(subject: Subject) -> Record:
    """Uniformity of the PIT values of every sensor on the test rows."""
    emitted, rows = subject.emitted, slice(subject.calibrating, None)
    times = subject.panel.timestamps
    kept, left_out = kept_sensors(subject, rows, FEWEST)
    mean, variance, values = (array[rows][:, kept] for array in (emitted.mean, emitted.variance, subject.values))
    found = pit(mean, variance, values, None if times is None else times[rows], tails_of(emitted.sample[0]))
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
        "verdict": pit_words(n, passing, float(np.median(found.statistic)), found.cause, found.shape)
        + left_out_words(left_out),
    }
