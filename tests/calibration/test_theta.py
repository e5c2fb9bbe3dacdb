"""The theta scorecaster against its batch definition and an independent library."""

import numpy as np
import pytest

from jointset.calibration.pid import SMOOTHINGS, start_theta, theta_forecast, update_theta


def recursive(scores):
    state = start_theta()
    for score in scores.tolist():
        state = update_theta(state, score)
    return theta_forecast(state)


def batch(scores):
    """Smoothing of the whole series for every a, initial level by least squares, half the fitted slope as drift."""
    n, time = len(scores), np.arange(len(scores))
    best = (np.inf, 0.0)
    for a in SMOOTHINGS:
        kernel = np.array([[a * (1 - a) ** (t - 1 - s) if s < t else 0.0 for s in range(n)] for t in range(n + 1)])
        decay, smooth = (1 - a) ** np.arange(n + 1), kernel @ scores
        residual = scores - smooth[:n]
        start = (residual @ decay[:n]) / (decay[:n] @ decay[:n])
        error = ((residual - start * decay[:n]) ** 2).sum()
        drift = np.polyfit(time, scores, 1)[0] / 2 * (1 - (1 - a) ** n) / a
        best = min(best, (error, smooth[n] + start * decay[n] + drift))
    return best[1]


@pytest.mark.parametrize("seed", range(3))
def test_recursion_equals_the_batch_definition(seed):
    rng = np.random.default_rng(seed)
    scores = 5 + 0.05 * np.arange(60) + rng.normal(size=60).cumsum() * 0.3 + rng.normal(size=60)
    assert recursive(scores) == pytest.approx(batch(scores), rel=1e-9)


def test_infinite_scores_are_left_out():
    scores = np.random.default_rng(0).chisquare(3, 40)
    assert recursive(np.insert(scores, 10, np.inf)) == recursive(scores)


def test_close_to_statsmodels():
    """Same method, smoothing constant by another optimiser: forecasts agree to a small part of the noise."""
    theta = pytest.importorskip("statsmodels.tsa.forecasting.theta")
    rng = np.random.default_rng(1)
    scores = 5 + 0.02 * np.arange(200) + np.sin(np.arange(200) / 20) + rng.normal(size=200)
    expected = theta.ThetaModel(scores, period=1, deseasonalize=False).fit().forecast(1).iloc[0]
    assert recursive(scores) == pytest.approx(expected, abs=0.05)
