"""The graph Kalman filter against statsmodels, with and without gaps, and its data-driven modes."""

import numpy as np
import pytest
from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

from jointset import JointPredictor
from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.filters import GraphLGSSM
from jointset.filters.kalman_tuning import NOISE_GRID, RHO_GRID, forward_filled


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=12, seed=2, length=400)


def with_gaps(values, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    values = values.copy()
    values[rng.random(values.shape) < share] = np.nan
    values[40:44] = np.nan  # a total outage
    values[200:260, :3] = np.nan  # three sensors down for an hour
    return values


def statsmodels_moments(f, values, start):
    """One-step predictive means (T, N) and covariances (T, N, N) of an independent implementation."""
    n = values.shape[1]
    kf = KalmanFilter(k_endog=n, k_states=n)
    kf.bind(np.asfortranarray(values.T.copy()))
    kf["design"], kf["transition"], kf["selection"] = np.eye(n), f.transition, np.eye(n)
    kf["obs_cov"], kf["state_cov"] = f.sigma_r**2 * np.eye(n), f.sigma_q**2 * np.eye(n)
    kf.initialize_known(np.zeros(n), start)
    kf.tolerance = 0  # no switch to a steady state of its own
    out = kf.filter()
    P = np.moveaxis(out.predicted_state_cov, -1, 0)[:-1]
    return out.predicted_state.T[:-1], P + f.sigma_r**2 * np.eye(n)


def covariances(laws):
    n = laws.mean.shape[1]
    return np.broadcast_to(laws.covariance.matrix, (len(laws), n, n))


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
@pytest.mark.parametrize("start", ["at rest", "from Q"])
def test_moments_equal_statsmodels(network, gaps, start):
    f = GraphLGSSM(rho=0.9, sigma_q=0.7, sigma_r=1.3).fit(network.panel)
    values = with_gaps(network.panel.values) if gaps else network.panel.values
    P0 = f.prior if start == "at rest" else f.sigma_q**2 * np.eye(12)
    laws, _ = f.run(values, f.start(None if start == "at rest" else P0))
    means, covs = statsmodels_moments(f, values, P0)
    np.testing.assert_allclose(laws.mean, means, atol=1e-8)
    np.testing.assert_allclose(covariances(laws), covs, atol=1e-8)


def test_the_filter_comes_back_to_rest_after_a_gap(network):
    f = GraphLGSSM().fit(network.panel)
    values = network.panel.values.copy()
    values[10, 3] = np.nan
    _, state = f.run(values[:11], f.start())
    assert not state.at_rest
    _, state = f.run(values[11:60], state)
    assert state.at_rest


def test_without_a_graph_sensors_are_filtered_one_by_one(network):
    panel = network.panel
    lonely = type(panel)(panel.values, panel.sensors)
    f = GraphLGSSM().fit(lonely)
    np.testing.assert_allclose(f.transition, 0.8 * np.eye(12), atol=1e-15)


def test_noise_from_the_data_matches_the_realised_innovations(network):
    f = GraphLGSSM(rho=0.8, obs_noise_frac=0.1).fit(network.panel)
    laws, _ = f.run(network.panel.values, f.start())
    realised = np.mean((network.panel.values - laws.mean)[80:] ** 2)
    assert realised == pytest.approx(laws.variance.mean(), rel=1e-9)
    assert f.sigma_r**2 / f.sigma_q**2 == pytest.approx(0.1 / (1 - 0.64))


def test_tuning_picks_the_best_pair_of_the_grid_on_the_validation_tail():
    panel = generate_grssf("A", n=12, seed=0, length=1500).panel
    tuned = GraphLGSSM(tune=True).fit(panel)
    assert tuned.rho in RHO_GRID and tuned.obs_noise_frac in NOISE_GRID and tuned.tune

    def validation_nll(rho, frac):
        f = GraphLGSSM(rho=rho, obs_noise_frac=frac).fit(panel[:1200])
        laws, _ = f.run(panel.values, f.start())
        return laws[1200:].nll(panel.values[1200:]).mean()

    best = min((validation_nll(r, v), r, v) for r in RHO_GRID for v in NOISE_GRID)
    assert (tuned.rho, tuned.obs_noise_frac) == best[1:]


def test_tuning_finds_the_modes_once_and_tells_its_progress(network, monkeypatch):
    import jointset.filters.kalman as kalman

    found, told = [], []
    monkeypatch.setattr(kalman, "modes", lambda shift: found.append(1) or np.linalg.eigh(shift))
    fitted = JointPredictor(GraphLGSSM(tune=True)).fit(network.panel, progress=lambda *state: told.append(state))
    assert len(found) == 1 and fitted.filter.steady.prior.shape == (12,) and len(found) == 1
    assert [step for step, _, _ in told] == list(range(17)) and {total for _, total, _ in told} == {16}
    best = [loss for _, _, loss in told[1:]]
    assert best == sorted(best, reverse=True) and np.isfinite(best).all()


def test_calibration_tells_its_progress(network):
    rows = []
    JointPredictor(GraphLGSSM()).fit(network.panel).calibrate(network.panel, progress=rows.append)
    assert sum(rows) == len(network.panel)


def test_tuning_reads_nothing_but_the_training_panel(network):
    panel = network.panel
    a = GraphLGSSM(tune=True).fit(panel[:280])
    noise = np.random.default_rng(0).normal(size=panel.values.shape)
    b = GraphLGSSM(tune=True).fit(panel.with_values(np.where(np.arange(400)[:, None] < 280, panel.values, noise))[:280])
    assert (a.rho, a.sigma_q, a.sigma_r) == (b.rho, b.sigma_q, b.sigma_r)


def test_tuning_with_gaps_still_works(network):
    values = with_gaps(network.panel.values, 0.3)
    f = GraphLGSSM(tune=True).fit(network.panel.with_values(values))
    assert np.isfinite([f.sigma_q, f.sigma_r]).all()


def test_forward_filled():
    nan = np.nan
    filled = forward_filled(np.array([[nan, 1.0], [2.0, nan], [nan, nan], [4.0, 5.0]]))
    np.testing.assert_array_equal(filled, [[3.0, 1.0], [2.0, 1.0], [2.0, 1.0], [4.0, 5.0]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GraphLGSSM(rho=1.0), "rho must lie strictly between 0 and 1"),
        (lambda: GraphLGSSM(sigma_q=0), "must be positive"),
        (lambda: GraphLGSSM(obs_noise_frac=-1), "must be positive"),
        (lambda: GraphLGSSM().start(), "call fit"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(InputError, match=message):
        build()
