"""Bernstein online aggregation: weights, regret."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointset.calibration.boa import RATES, mix, pinball_regret, start_boa, update_boa

rates = pytest.mark.parametrize("rates", RATES)


def play(forecasts, targets, tau, rates):
    """Weights (T + 1, K) and regrets (T, K) of the mixture."""
    state, weights, regrets = start_boa(forecasts.shape[1]), [], []
    for x, y in zip(forecasts, targets, strict=True):
        weights.append(state.weights)
        regrets.append(pinball_regret(mix(weights[-1], x), x, y, tau))
        state = update_boa(state, regrets[-1], rates)
    return np.array([*weights, state.weights]), np.array(regrets)


@rates
def test_weights_leave_equal_shares_and_find_the_best_expert(rates):
    rng = np.random.default_rng(0)
    targets = rng.normal(size=3000)
    forecasts = np.tile([-1.0, 0.0, 1.2816, 3.0], (3000, 1))  # the third is the 0.9 quantile
    weights, _ = play(forecasts, targets, 0.9, rates)
    assert np.allclose(weights[0], 0.25)
    assert np.abs(weights[10] - 0.25).max() > 0.02
    assert weights[-1].argmax() == 2
    assert weights[-1][2] > 0.9


def second_order_bound(regrets):
    """C1 sqrt(V_j log K) + C2 max|r| log K for each expert: the shape of Wintenberger's second-order bound."""
    entropy = np.log(regrets.shape[1])
    return 3.0 * np.sqrt((regrets**2).sum(0) * entropy) + 4.0 * np.abs(regrets).max() * entropy


@rates
@pytest.mark.parametrize("case", ["drifting", "switching", "adversarial"])
def test_regret_to_every_expert_is_of_the_order_of_its_spread(rates, case):
    rng = np.random.default_rng(1)
    T, K = 4000, 8
    forecasts = rng.normal(size=(T, K)) + np.linspace(0, 2, K)
    if case == "drifting":
        targets = np.linspace(0, 3, T) + rng.normal(size=T)
    elif case == "switching":
        targets = np.where(np.arange(T) // 500 % 2, 3.0, -3.0)
    else:
        targets = np.where(np.arange(T) % 2, 1e3, -1e3)
    _, regrets = play(forecasts, targets, 0.9, rates)
    assert (regrets.sum(0) <= second_order_bound(regrets)).all()


def test_the_bound_can_fail():
    """Equal weights for ever break it, so the test above says something about the weights."""
    forecasts = np.tile(np.linspace(-1, 3, 8), (4000, 1))
    targets = np.random.default_rng(2).normal(size=4000)
    regrets = np.array([pinball_regret(x.mean(), x, y, 0.5) for x, y in zip(forecasts, targets, strict=True)])
    assert (regrets.sum(0) > second_order_bound(regrets)).any()
    moving = play(forecasts, targets, 0.5, "doubling")[1]
    assert (moving.sum(0) <= second_order_bound(moving)).all()


@rates
@settings(max_examples=60)
@given(regrets=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), max_size=20))
def test_weights_are_a_distribution_whatever_the_regrets(rates, regrets):
    state = start_boa(3)
    for regret in regrets:
        state = update_boa(state, np.array(regret), rates)
    assert (state.weights >= 0).all()
    assert state.weights.sum() == pytest.approx(1.0, abs=1e-12)


@rates
def test_one_expert_has_all_the_weight(rates):
    weights, _ = play(np.ones((5, 1)), np.arange(5.0), 0.9, rates)
    assert (weights == 1.0).all()


@rates
def test_agreeing_experts_stay_equal(rates):
    weights, regrets = play(np.full((50, 3), 0.1), np.random.default_rng(3).normal(size=50), 0.9, rates)
    assert (regrets == 0.0).all()
    assert np.allclose(weights, 1 / 3, atol=0)


@rates
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**30])
def test_weights_do_not_depend_on_the_unit_of_the_scores(rates, scale):
    rng = np.random.default_rng(4)
    forecasts, targets = rng.normal(size=(200, 3)), rng.normal(size=200)
    weights, _ = play(forecasts, targets, 0.9, rates)
    rescaled, _ = play(scale * forecasts, scale * targets, 0.9, rates)
    np.testing.assert_allclose(rescaled, weights, rtol=0, atol=1e-12)
