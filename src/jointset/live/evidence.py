"""Evidence of a lasting change from p-values, one a row, and how much of it a false alarm a month needs.

A bet against chance turns a p-value p into

    e(p) = int_0^1 a p^(a - 1) da = (1 - p + p log p) / (p log^2 p),

whose mean is 1 or less while p-values are valid. Shiryaev and Roberts' sum over all moments at which a change may have
begun, R_t = (1 + R_{t-1}) e(p_t), then has the mean t or less, so that it takes n rows or more on average to meet
R >= n by chance (an e-detector; Shin, Ramdas, Rinaldo 2023).

Scores of real networks are not exchangeable: bad hours come together, and R climbs on them. The limit is therefore
taken from the calibration rows as well: the largest log R of each of their days, a Gumbel law through these maxima, and
of it the level that is passed once in the asked number of days, divided by the part that scores have of all false
alarms. The higher of the two limits counts.
"""

from __future__ import annotations

import math

import numpy as np

from jointset.contracts import Array

DAY = 86_400
MONTH = 30  # days
KEPT = 1_000  # order statistics that stand for all reference scores
FEWEST_BLOCKS = 8  # maxima below which blocks of rows are shorter than a day
JUMPS, SCORES = 0.45, 0.1  # of the false alarms that are allowed: rises and drops each, and scores
EULER = 0.5772156649015329
NONE = -50.0  # log R of no evidence at all


def reference_of(scores: Array) -> Array:
    """At most KEPT order statistics (ascending) that stand for scores (m,); NaN is no score."""
    ordered = np.sort(scores[~np.isnan(scores)])
    if len(ordered) <= KEPT:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, KEPT).round().astype(int)]


def rank_among(reference: Array, score: float) -> float:
    """The conformal p-value of a score: (1 + how many of the reference are not smaller) / (1 + all); ties count.

    >>> [rank_among(np.array([1.0, 2.0, 2.0]), score) for score in (0.0, 2.0, 3.0)]
    [1.0, 0.75, 0.25]
    """
    m = len(reference)
    return (1 + m - int(reference.searchsorted(score))) / (1 + m)


def log_bet(p: float) -> float:
    """log e(p): what a p-value adds to the evidence; -log 2 at p = 1.

    >>> [round(log_bet(p), 2) for p in (0.001, 0.1, 0.5, 1.0)]
    [3.03, 0.23, -0.45, -0.69]
    """
    if p > 0.999:
        return -math.log(2.0) + (1.0 - p) / 3.0
    log = math.log(p)
    return math.log1p(p * (log - 1.0)) - math.log(p) - 2.0 * math.log(-log)


def add_evidence(log_r: float, bet: float) -> float:
    """log R after one more bet."""
    return bet + (log_r + math.log1p(math.exp(-log_r)) if log_r > 0 else math.log1p(math.exp(log_r)))


def evidence_course(scores: Array, reference: Array) -> Array:
    """log R after each of the scores (T,)."""
    log_r, course = NONE, np.empty(len(scores))
    for t, score in enumerate(scores.tolist()):
        log_r = course[t] = add_evidence(log_r, log_bet(rank_among(reference, score)))
    return course


def limit_of(course: Array, rows_a_day: float, days: float = MONTH) -> float:
    """log R that is passed by chance once in `days` days at most, from a course (T,) without a change.

    >>> round(limit_of(np.zeros(0), 288.0), 2) == round(math.log(30 * 288), 2)
    True
    """
    nominal = math.log(max(days * rows_a_day, 2.0))
    size = int(min(rows_a_day, len(course) / FEWEST_BLOCKS))
    if size < 2:
        return nominal
    maxima = course[len(course) % size :].reshape(-1, size).max(axis=1)
    return max(nominal, gumbel_level(maxima, days * rows_a_day / size / SCORES, least=1.0))


def gumbel_level(maxima: Array, blocks: float, least: float = 0.0) -> float:
    """The level that the largest value of a block passes once in so many blocks, from maxima (B,).

    A Gumbel law through their mean and standard deviation; `least` is the smallest scale, 1 for log R of independent
    p-values.
    """
    scale = max(float(maxima.std(ddof=1)) * math.sqrt(6.0) / math.pi, least)
    return float(maxima.mean()) + scale * (math.log(blocks) - EULER)
