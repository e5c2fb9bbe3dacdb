"""Spectrum of the emitted covariances: eigenvalues, condition numbers, and the margin above the variance floor.

M_G = 1 / sqrt(smallest eigenvalue) bounds how much a whitened residual can grow (paper, Audit 2). A covariance near its
floor at some steps means scores that explode there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from jointset.audits.records import Record, curve, percentiles
from jointset.audits.subject import Subject
from jointset.contracts import Array
from jointset.errors import require
from jointset.laws import DenseLaw, LowRankLaw

NEAR = 10.0  # a variance below this many floors is near the floor


class Spectrum(NamedTuple):
    """Eigenvalues of every step looked at, summaries over the steps, and the margin above the floor."""

    smallest: Array  # (steps,) smallest eigenvalue
    largest: Array  # (steps,)
    condition: Array  # (steps,)
    median: Array  # (N,) median over the steps of each eigenvalue, ascending
    M_G: float  # 1 / sqrt(smallest eigenvalue of all)
    floor: float  # smallest variance the filter can emit; NaN where it has none
    margin: float  # smallest eigenvalue of all / floor
    near_floor: float  # share of diagonal entries d of diag(d) + L L' below NEAR floors; NaN for other covariances


def covariance_spectrum(laws: Iterable[Any], floor: float = float("nan")) -> Spectrum:
    """Spectrum of batched laws; one covariance shared by all steps is decomposed once.

    A diagonal-plus-low-rank covariance has no closed spectrum (its diagonal varies), so that one N x N
    eigen-decomposition a step is taken: hand in a sample of the steps where N is large.
    """
    eigenvalues, diagonals, shared = [], [], {}
    for law in laws:
        if isinstance(law, LowRankLaw):
            eigenvalues.append(np.linalg.eigvalsh(law.dense()))
            diagonals.append(law.diagonal.reshape(-1))
            continue
        require(hasattr(law, "covariance"), "the spectrum needs laws with a covariance")
        if isinstance(law, DenseLaw) and law.covariance.shared:
            shared[id(law.covariance)] = law.covariance  # kept alive, so that ids stay apart
        else:
            eigenvalues.append(np.linalg.eigvalsh(law.covariance.matrix))
    eigenvalues += [np.linalg.eigvalsh(covariance.matrix)[None] for covariance in shared.values()]
    require(bool(eigenvalues), "no laws to decompose: give more rows")
    found = np.concatenate(eigenvalues)
    low = float(found.min())
    return Spectrum(
        found[:, 0],
        found[:, -1],
        found[:, -1] / found[:, 0],
        np.median(found, axis=0),
        1.0 / float(np.sqrt(low)) if low > 0 else float("inf"),
        floor,
        low / floor,
        float(np.mean(np.concatenate(diagonals) < NEAR * floor)) if diagonals and floor == floor else float("nan"),
    )


def spectrum_words(condition: float, tail: float, margin: float, near: float) -> str:
    """How round the ellipsoids are, and how far from degenerate."""
    told = f"the longest axis of the set is {math.sqrt(condition):.1f} times the shortest (condition {condition:.3g}"
    told += f", 99 % of the steps below {tail:.3g})" if tail > 1.01 * condition else ")"
    if margin != margin:
        return told
    if near > 0.01:
        return f"{told}; {100 * near:.0f} % of the variances sit near their floor: scores may explode there"
    return f"{told}; the smallest eigenvalue is {margin:,.3g} times the floor"


def spectrum_record(subject: Subject) -> Record:
    """Eigenvalues of the emitted covariances and the margin above the floor."""
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
        "verdict": spectrum_words(condition["p50"], condition["p99"], found.margin, found.near_floor),
    }
