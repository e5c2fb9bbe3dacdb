"""The linear filter's law of the next rows against statsmodels, and against the filter itself run through them."""

import numpy as np
import pytest
from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

from jointset import GraphLGSSM, generate_grssf

N, H, T = 12, 12, 150


def forecasts(f, values):
    """Means (H, N) and covariances (H, N, N) of the rows after these, of an independent implementation."""
    kf = KalmanFilter(k_endog=N, k_states=N)
    kf.bind(np.asfortranarray(np.concatenate([values, np.full((H, N), np.nan)]).T))
    kf["design"], kf["transition"], kf["selection"] = np.eye(N), f.transition, np.eye(N)
    kf["obs_cov"], kf["state_cov"] = f.sigma_r**2 * np.eye(N), f.sigma_q**2 * np.eye(N)
    kf.initialize_known(np.zeros(N), f.prior)
    kf.tolerance = 0
    out = kf.filter()
    P = np.moveaxis(out.predicted_state_cov, -1, 0)[len(values) : -1]
    return out.predicted_state.T[len(values) : -1], P + f.sigma_r**2 * np.eye(N)


@pytest.fixture(scope="module")
def network():
    panel = generate_grssf("A", n=N, seed=2, length=T + H).panel
    return GraphLGSSM(rho=0.7, sigma_q=1.3, sigma_r=0.6).fit(panel), panel.values


def with_gaps(values, kind):
    values, rng = values.copy(), np.random.default_rng(0)
    if kind != "complete":
        values[rng.random(values.shape) < 0.1] = np.nan
    if kind == "outage":
        values[T - 3 : T] = np.nan
    if kind == "many":
        values[T - 4 : T, : N - 2] = np.nan
    return values


@pytest.mark.parametrize("kind", ["complete", "gaps", "outage", "many"])
def test_laws_of_steps_ahead_equal_statsmodels(network, kind):
    f, values = network
    values = with_gaps(values, kind)
    law = f.law(f.run(values[:T], f.start())[1])
    ((_, window),) = f.ahead(law, H, np.zeros(N), np.ones(N))
    mean, covariance = forecasts(f, values[:T])
    np.testing.assert_allclose(window.center, mean, rtol=0, atol=1e-8)
    found = np.stack([window.step(h).covariance() for h in range(H)])
    np.testing.assert_allclose(found, covariance, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["complete", "gaps", "outage"])
def test_the_distance_of_a_window_is_the_sum_of_the_filters_own(network, kind):
    """Prediction error decomposition: the joint density of rows is the product of those of each given the earlier."""
    f, values = network
    values = with_gaps(values, kind)
    shift, scale = np.linspace(-1.0, 1.0, N), np.linspace(0.5, 2.0, N)
    laws = f.run(values, f.start())[0].rescale(shift, scale)
    readings = shift + scale * values
    own, dets = laws.mahalanobis(readings), laws.log_det
    for rows, windows in f.ahead(laws, H, shift, scale):
        for t in range(rows.start, min(rows.stop, T), 7):
            one = windows[t - rows.start]
            whole = np.nansum(own[t : t + H])
            np.testing.assert_allclose(one.mahalanobis(readings[t : t + H].reshape(-1)), whole, rtol=1e-9)
            if not np.isnan(values[t : t + H]).any():
                np.testing.assert_allclose(one.log_det, dets[t : t + H].sum(), rtol=1e-9)
