"""Chi-square laws: points of one law at the tails of another."""

import numpy as np
import pytest
from scipy.stats import chi2

from jointset.algebra.chi_squares import carried, quantile_of_largest, tail_of_largest


@pytest.mark.parametrize(("start", "goal"), [(16, 20), (20, 16), (1, 20), (20, 1), (2, 3), (100, 207), (3, 1000)])
def test_points_carried_from_one_law_to_another_have_its_tail(start, goal):
    ranks = np.concatenate([np.linspace(1e-9, 1.0 - 1e-9, 400), np.logspace(-12, -120, 40)])  # tails
    x = chi2.isf(ranks, start)
    degrees = [np.full((len(x), 1), float(k)) for k in (start, goal)]
    tail = tail_of_largest(degrees[0], x)
    found = carried(x, *degrees, tail)
    np.testing.assert_allclose(found, quantile_of_largest(degrees[1], tail), rtol=1e-11)
    sure = tail < 0.9  # close to 1 a tail has lost the digits of its point
    np.testing.assert_allclose(found[sure], chi2.isf(tail[sure], goal), rtol=1e-10)


def test_a_point_is_carried_alike_alone_and_among_many():
    rng = np.random.default_rng(0)
    start, goal = rng.integers(1, 20, (300, 1)).astype(float), np.full((300, 1), 20.0)
    x = rng.chisquare(start[:, 0])
    tail = tail_of_largest(start, x)
    alone = [carried(x[t : t + 1], start[t : t + 1], goal[t : t + 1], tail[t : t + 1])[0] for t in range(300)]
    np.testing.assert_allclose(carried(x, start, goal, tail), alone, rtol=1e-11)
