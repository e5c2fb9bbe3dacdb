"""The instant expert: its mean, its scales, its correlations; gaps, clocks, few rows and many sensors."""

import numpy as np
import pytest

from jointset import JointPredictor, Panel, generate_grssf
from jointset.backbones.var import neighbours
from jointset.checks import check_predictor
from jointset.filters.var import VARFilter
from jointset.laws import LowRankLaw
from jointset.residuals.correlations import FactorCorrelations, MovingCorrelations
from jointset.residuals.scale_regression import ScaleRegression, outlier_weights


def sunny(n=4, days=60, seed=0):
    """Hourly readings whose noise is ten times as large at noon as at night."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    scale = 0.1 + 0.9 * np.maximum(np.sin(2 * np.pi * (hours % 24 - 6) / 24), 0.0)
    values = scale[:, None] * rng.standard_normal((len(hours), n))
    return Panel(values, tuple(f"s{i}" for i in range(n)), timestamps=3600 * hours), scale


def test_the_scale_follows_the_hour():
    panel, scale = sunny()
    fitted = VARFilter().fit(panel[:1200])
    laws, _ = fitted.run(panel.values[1200:], fitted.start(), panel.timestamps[1200:])
    ratio = np.sqrt(laws.variance[48:]) / scale[1248:, None]
    assert 0.75 < np.median(ratio) < 1.25
    assert np.quantile(ratio, 0.9) / np.quantile(ratio, 0.1) < 2.5  # of a scale that moves tenfold


def test_the_scale_follows_the_hour_when_rows_are_too_many_to_fit_on_all(monkeypatch):
    """Every 24th of hourly rows is one hour of the day; rows to fit on are drawn instead."""
    from jointset.residuals import scale_regression

    monkeypatch.setattr(scale_regression, "ROWS", (60, 60))
    monkeypatch.setattr(scale_regression, "FEW", 0.3)
    panel, _ = sunny()
    fitted = VARFilter().fit(panel)
    night, noon = (fitted.law(fitted.expect(fitted.start(), 3600 * (24 * 60 + hour))).variance for hour in (2, 12))
    assert noon.mean() > 4.0 * night.mean()


def test_the_scale_follows_a_jump_of_the_noise_and_a_glitch_is_none():
    rng = np.random.default_rng(1)
    values = rng.standard_normal((3000, 3))
    values[1000:1300] *= 4.0  # there is something to learn from
    values[2600:] *= 4.0
    values[2300] = 400.0
    panel = Panel(values, ("a", "b", "c"))
    fitted = VARFilter().fit(panel[:2000])
    laws, _ = fitted.run(values[2000:], fitted.start())
    sd = np.sqrt(laws.variance)
    assert np.median(sd[640:]) > 2.5 * np.median(sd[:280])
    assert np.median(sd[420:590]) < 1.5 * np.median(sd[:280])  # long after the glitch


def test_scales_are_those_of_the_simulation():
    """log s = 0.2 + 0.8 x with x the predicted mean: the coefficients are found up to their noise."""
    rng = np.random.default_rng(2)
    means = rng.uniform(-1, 1, (6000, 2))
    residuals = np.exp(0.2 + 0.8 * means) * rng.standard_normal((6000, 2))
    panel = Panel(residuals, ("a", "b"))
    model = ScaleRegression().fit(residuals, means, panel)
    memory, _ = model.memories(residuals, model.start())
    found = np.log(model.scales(memory, means, None))
    slope = np.polyfit(means[:, 0], found[:, 0], 1)[0]
    assert slope == pytest.approx(0.8, abs=0.08)


def test_correlations_are_found_and_move():
    rng = np.random.default_rng(3)
    one, other = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([[1.0, -0.9], [-0.9, 1.0]])
    z = np.concatenate([rng.standard_normal((2000, 2)) @ np.linalg.cholesky(S).T for S in (one, other)])
    fitted = MovingCorrelations(200.0, 0.001).fit(z[:2000])
    ones = np.ones(z[2000:].shape)
    law, after = fitted.run(z[2000:], 0.0 * ones, ones, fitted.start())
    S = law.covariance.matrix

    def correlation(S):
        return S[0, 1] / np.sqrt(S[0, 0] * S[1, 1])

    assert correlation(S[0]) > 0.8 and correlation(S[-1]) < -0.7 and correlation(after) < -0.7


def test_half_life_and_shrinkage_are_chosen_on_the_rows():
    rng = np.random.default_rng(4)
    alike = rng.standard_normal((2000, 1)) + 0.02 * rng.standard_normal((2000, 5))
    apart = rng.standard_normal((400, 30))
    assert MovingCorrelations().fit(alike).shrink <= 0.001
    assert MovingCorrelations().fit(apart).shrink >= 0.2
    still = MovingCorrelations().fit(rng.standard_normal((4000, 12)))
    assert still.half_life in (0.0, 2000.0)


def test_outliers_count_less_and_empty_rows_nothing():
    z = np.array([[1.0, 1.0], [10.0, 10.0], [np.nan, np.nan], [1.0, np.nan]])
    weights = outlier_weights(z)
    assert weights[0] == weights[3] == pytest.approx(0.75) and weights[1] < 0.05 and weights[2] == 0.0


def test_factor_correlations_are_those_of_a_factor_model():
    rng = np.random.default_rng(5)
    loadings = rng.uniform(0.3, 0.8, 40)
    z = rng.standard_normal((6000, 1)) * loadings + rng.standard_normal((6000, 40)) * np.sqrt(1 - loadings**2)
    fitted = FactorCorrelations().fit(z)
    law, _ = fitted.run(z[:1], np.zeros((1, 40)), np.ones((1, 40)), fitted.start())
    assert isinstance(law, LowRankLaw)
    found = law.dense()[0]
    expected = np.outer(loadings, loadings)
    off = ~np.eye(40, dtype=bool)
    assert np.abs(found - expected)[off].mean() < 0.05


@pytest.mark.parametrize("rows", [120, 300])
@pytest.mark.parametrize("n", [2, 8])
def test_few_rows_few_sensors_no_times_no_graph(rows, n):
    panel = generate_grssf("A", n=max(n, 8), seed=1, length=1000).panel.select(range(n))
    bare = Panel(panel.values, panel.sensors)
    predictor = JointPredictor(VARFilter()).fit(bare[:rows]).calibrate(bare[rows : rows + 400])
    run = predictor.run(bare[rows + 400 :])
    assert np.isfinite(run.log_volume).all() and run.joint > 0.75


def test_gaps_everywhere():
    panel = generate_grssf("A", n=10, seed=2, length=1500).panel
    values = panel.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.3] = np.nan  # no row is complete
    holed = panel.with_values(values)
    predictor = JointPredictor(VARFilter()).fit(holed[:800]).calibrate(holed[800:1200])
    assert 0.8 < predictor.run(holed[1200:]).joint <= 1.0


def test_what_was_not_read_moves_nothing():
    panel = generate_grssf("A", n=8, seed=3, length=700).panel
    fitted = VARFilter().fit(panel[:600])
    state = fitted.run(panel.values[600:650], fitted.start())[1]
    empty = fitted.step(state, np.full(8, np.nan))
    np.testing.assert_array_equal(empty.memory, state.memory)
    np.testing.assert_array_equal(empty.correlations, state.correlations)
    some = panel.values[650].copy()
    some[2] = np.nan
    np.testing.assert_array_equal(fitted.step(state, some).memory[:, 2], state.memory[:, 2])


def test_a_clock_that_is_set_gives_the_law_of_that_hour():
    panel, _ = sunny()
    fitted = VARFilter().fit(panel[:1200])
    state = fitted.start()
    assert state.next == panel.timestamps[1200]
    noon, night = (fitted.law(fitted.expect(state, 3600 * (24 * 60 + hour))) for hour in (12, 1))
    assert noon.variance.mean() > 4.0 * night.variance.mean()


def test_many_sensors_give_laws_of_low_rank(monkeypatch):
    from jointset.backbones import var as mean
    from jointset.filters import var

    monkeypatch.setattr(var, "DENSE", 10)
    monkeypatch.setattr(mean, "DENSE", 10)
    panel = generate_grssf("A", n=30, seed=0, length=1200).panel
    predictor = JointPredictor(VARFilter()).fit(panel[:700]).calibrate(panel[700:950])
    assert isinstance(predictor.filter.law(predictor.filter_state), LowRankLaw)
    assert 0.8 < predictor.run(panel[950:]).joint < 0.98


def test_it_keeps_the_contract():
    def var():
        return JointPredictor(VARFilter())

    check_predictor(var)


def test_few_rows_for_many_sensors_leave_the_law_at_its_level():
    """Later rows are farther out than those fitted on, and count less for it: a law that moves would shrink."""
    panel = generate_grssf("B", n=60, seed=0, length=1200).panel
    fitted = VARFilter().fit(panel[:600])
    law, _ = fitted.run(panel.values[600:], fitted.start())
    distance = law.covariance.distance(panel.values[600:] - law.mean) / 60
    assert distance.mean() < 1.3
    assert distance[-150:].mean() < 1.12 * distance[:150].mean()


def test_above_300_sensors_each_looks_at_itself_and_its_nearest():
    """Those of a stable sort of the whole row, though only what it is close to is sorted."""
    rng = np.random.default_rng(0)
    graph = np.triu(np.where(rng.random((310, 310)) < 0.06, rng.random((310, 310)).round(1), 0.0), 1)
    graph[:2] = 0.0
    sensors = [f"s{i}" for i in range(310)]
    panel = Panel(rng.standard_normal((20, 310)), sensors, adjacency=graph + graph.T)
    closeness = np.where(np.eye(310, dtype=bool), np.inf, panel.adjacency)
    np.testing.assert_array_equal(neighbours(panel), np.argsort(-closeness, axis=1, kind="stable")[:, :20])


def test_scales_of_sensors_do_not_depend_on_how_many_are_fitted_at_once(monkeypatch):
    panel = generate_grssf("B", n=8, length=300).panel
    whole = VARFilter().fit(panel).scale
    monkeypatch.setattr("jointset.residuals.scale_regression.AT_ONCE", 3)
    parts = VARFilter().fit(panel).scale
    for name in ("center", "spread", "weights"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-14)
