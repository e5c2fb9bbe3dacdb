"""The interval score of joint sets: what a miss costs, and that it asks for the level promised."""

from types import SimpleNamespace

import numpy as np
import pytest

from jointset import Panel, generate_grssf
from jointset.bench.measures import joint_score, winkler
from jointset.methods import predictor_for


@pytest.mark.parametrize("name", ["static", "static:box", "kalman+aci"])
def test_with_one_sensor_it_is_the_interval_score(name):
    values = np.random.default_rng(0).standard_t(4, size=(900, 1)).cumsum(axis=0) * 0.3
    panel = Panel(values, ["a"])
    run = predictor_for(name).fit(panel[:500]).calibrate(panel[500:700]).run(panel[700:])
    assert 0 < run.inside.mean() < 1
    assert joint_score(run, 0.1) == pytest.approx(winkler(run, 0.1))


@pytest.fixture(scope="module")
def runs():
    panel = generate_grssf("B", n=8, length=900).panel

    def run(name):
        return predictor_for(name).fit(panel[:500]).calibrate(panel[500:800]).run(panel[800:])

    return run


@pytest.mark.parametrize("name", ["static", "ewma+pid", "factor+aci", "copula+aci", "spci-empirical", "copula"])
def test_a_miss_costs_the_growth_of_the_set_over_alpha(name, runs):
    run = runs(name)
    size, held, missed = np.exp(run.log_volume), np.exp(run.log_volume_held), ~run.inside
    assert missed.any() and (held[missed] > size[missed]).all()
    assert held[~missed] == pytest.approx(size[~missed], rel=1e-12)
    assert joint_score(run, 0.2) == pytest.approx(np.mean(size + 5.0 * (held - size)))


def test_an_ellipsoid_grows_with_the_root_of_its_radius_and_a_box_with_its_own(runs):
    ellipsoid, box, own = (runs(name) for name in ("static", "static:box", "spci-empirical"))
    growth = np.exp(ellipsoid.log_volume_held - ellipsoid.log_volume)
    assert growth == pytest.approx(np.sqrt(np.maximum(ellipsoid.score / ellipsoid.radius, 1.0)))
    for run in (box, own):
        out = np.abs(run.values - (run.lower + run.upper) / 2) / ((run.upper - run.lower) / 2)
        assert np.exp(run.log_volume_held - run.log_volume) == pytest.approx(np.maximum(out.max(axis=1), 1.0))


def test_the_radius_with_the_least_expected_score_is_missed_with_probability_alpha():
    scores = np.random.default_rng(0).chisquare(5, 4000)
    radii = np.quantile(scores, [0.7, 0.8, 0.9, 0.95, 0.99])

    def expected(radius):
        logs = (0.5 * np.log(np.full(len(scores), radius)), 0.5 * np.log(np.maximum(scores, radius)))
        return joint_score(SimpleNamespace(score=scores, log_volume=logs[0], log_volume_held=logs[1]), 0.1)

    assert np.argmin([expected(radius) for radius in radii]) == 2


def test_an_empty_set_costs_what_it_lacks_and_one_without_an_end_everything():
    run = SimpleNamespace(score=np.array([1.0]), log_volume=np.array([-np.inf]), log_volume_held=np.array([0.0]))
    assert joint_score(run, 0.1) == pytest.approx(10.0)
    run.log_volume = run.log_volume_held = np.array([np.inf])
    assert joint_score(run, 0.1) == np.inf
    run.score = np.array([np.nan])  # no reading
    assert np.isnan(joint_score(run, 0.1))
