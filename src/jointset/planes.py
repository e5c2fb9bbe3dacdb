"""Two sensors of a joint ellipsoid: its shadow on their plane, and its section through the other readings."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from jointset.algebra.law_rows import others
from jointset.contracts import Array, Law
from jointset.joint_predictor import Run
from jointset.laws import AnyLaw, matrix_of


class Ellipse(NamedTuple):
    """{y : (y - center)' covariance^-1 (y - center) <= radius} in the plane; empty when the radius is negative."""

    center: Array  # (2,)
    covariance: Array  # (2, 2)
    radius: float

    def outline(self, points: int = 181) -> Array:
        """Points (2, points) of the edge, once round.

        >>> Ellipse(np.zeros(2), np.eye(2), 4.0).outline(5).round(6)[0] + 0.0
        array([ 2.,  0., -2.,  0.,  2.])
        """
        angle = np.linspace(0.0, 2.0 * np.pi, points)
        circle = np.sqrt(max(self.radius, 0.0)) * np.stack([np.cos(angle), np.sin(angle)])
        return self.center[:, None] + np.linalg.cholesky(self.covariance) @ circle


def shadow(law: Law, radius: float, pair: tuple[int, int]) -> Ellipse:
    """Projection of the ellipsoid of one step on a pair of sensors: the same radius, their marginal covariance."""
    plane = cast(AnyLaw, law.select(list(pair)))
    return Ellipse(plane.mean, matrix_of(plane), float(radius))


def section(law: Law, radius: float, pair: tuple[int, int], y: Array) -> Ellipse:
    """Cut of the ellipsoid of one step through the readings of all other sensors.

    The distance of the others uses up its part of the radius, (y - m)' S^-1 (y - m) = d_others + d_pair|others, so
    the pair lies inside the cut exactly when the whole reading y lies inside the ellipsoid.
    """
    rest = others(np.asarray(pair), len(y))
    if not len(rest):
        return shadow(law, radius, pair)
    used = float(law.select(rest).mahalanobis(y[rest]))
    given = cast(AnyLaw, law.condition(rest, y[rest]))
    order = np.argsort(np.argsort(pair))  # `condition` keeps the order of the sensors, the pair may not
    return Ellipse(given.mean[order], matrix_of(given)[np.ix_(order, order)], float(radius) - used)


def most_correlated(run: Run) -> tuple[int, int]:
    """The two sensors whose residuals move together most, over the rows without gaps."""
    residuals = run.values - run.mean
    residuals = residuals[~np.isnan(residuals).any(axis=1)]
    if len(residuals) < 3 or residuals.shape[1] < 3:
        return 0, residuals.shape[1] - 1
    strength = np.abs(np.triu(np.corrcoef(residuals.T), k=1))
    i, j = np.unravel_index(int(strength.argmax()), strength.shape)
    return int(i), int(j)


def telling_steps(run: Run, count: int) -> range:
    """Consecutive steps without gaps with one miss among them, past the middle, where the run has such a stretch."""
    gaps = np.asarray(np.isnan(run.values).any(axis=1))
    starts = [t for t in range(len(gaps) - count + 1) if not gaps[t : t + count].any()]
    middle, last = count // 2, count - 1
    with_miss = (
        t for t in starts if run.inside[t : t + count].sum() == last and not run.inside[t + middle : t + last].all()
    )
    start = next(with_miss, starts[0] if starts else 0)
    return range(start, min(start + count, len(gaps)))
