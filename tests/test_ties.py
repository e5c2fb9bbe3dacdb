"""Scores that are equal but for rounding tie."""

import numpy as np
import pytest

from jointset import Panel
from jointset.algebra.ties import settled
from jointset.laws import DenseLaw
from jointset.methods import predictor_for
from jointset.published import MultiDimSPCI
from jointset.scores import Mahalanobis, MaxStudentised, RootMahalanobis


def test_the_order_of_the_sensors_does_not_matter():
    """Another order sums in another order: the last bits differ, the scores do not."""
    rng = np.random.default_rng(0)
    n, steps = 40, 500
    A = rng.normal(size=(n, 2 * n))
    S, order, y = A @ A.T / n, rng.permutation(n), rng.normal(size=(steps, n))
    law = DenseLaw(np.zeros((steps, n)), S)
    other = DenseLaw(np.zeros((steps, n)), S[np.ix_(order, order)])
    raw = law.mahalanobis(y) == other.mahalanobis(y[:, order])
    assert raw.mean() < 0.9  # else this shows nothing
    for score in (Mahalanobis(), MaxStudentised()):
        assert (score.score(law, y) == score.score(other, y[:, order])).mean() > 0.95


def test_what_is_no_number_or_differs_stays():
    assert np.isnan(settled(np.nan))
    np.testing.assert_array_equal(
        settled(np.array([0.0, np.inf, -np.inf, 3.5, 5e-324])), [0.0, np.inf, -np.inf, 3.5, 5e-324]
    )
    x = np.geomspace(1e-300, 1e300, 50)
    np.testing.assert_allclose(settled(x), x, rtol=2.0**-42)
    assert (settled(x) != settled(x * (1 + 1e-12))).all()


def test_one_number_is_settled_as_an_array_of_it():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.lognormal(0, 150, 2000), [0.0, 5e-324, 1e308, np.inf, -3.0]])
    alone = np.array([settled(np.float64(one)) for one in x])
    np.testing.assert_array_equal(alone, settled(x))


@pytest.mark.parametrize("score", [Mahalanobis(), MaxStudentised(), RootMahalanobis()])
def test_a_tie_lies_inside_the_set_and_inside_its_bounds(score):
    rng = np.random.default_rng(1)
    for _ in range(300):
        law = DenseLaw(rng.normal(size=1), np.array([[rng.uniform(0.5, 2.0)]]))
        y = law.mean + rng.normal(size=1)
        region = score.region(law, score.score(law, y))
        lower, upper = region.bounds
        assert region.contains(y)
        assert lower <= y <= upper


@pytest.mark.filterwarnings("ignore:.*a ridge of")
@pytest.mark.parametrize("name", ["static", "static+agaci", "ewma", "kalman", "multidim-spci", "group+agaci", "factor"])
def test_a_frozen_network_is_inside(name):
    """Readings that stand still through calibration and test have one score, which is the radius."""
    assert frozen_inside(predictor_for(name)) > 0.95


@pytest.mark.filterwarnings("ignore:.*a ridge of")
def test_a_frozen_network_is_inside_its_local_ellipsoid():
    assert frozen_inside(MultiDimSPCI("empirical", neighbors=20)) > 0.95


def frozen_inside(predictor):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(900, 6)) @ rng.normal(size=(6, 6)) * np.geomspace(0.1, 10.0, 6)
    values[500:] = values[500]
    A = np.ones((6, 6)) - np.eye(6)
    panel = Panel(values, tuple("abcdef"), adjacency=A)
    fitted = predictor.fit(panel[:450]).calibrate(panel[450:700])
    return fitted.run(panel[700:]).inside[120:].mean()  # what came before the standstill has left all windows
