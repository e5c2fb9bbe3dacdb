"""Spectrum of the emitted covariances: eigenvalues, condition numbers, and the margin above the variance floor.

M_G = 1 / sqrt(smallest eigenvalue) bounds how much a whitened residual can grow (paper, Audit 2). A covariance near its
floor at some steps means scores that explode there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

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
