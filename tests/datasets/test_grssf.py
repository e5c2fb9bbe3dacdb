"""The synthetic family does what its description says, and its ground truth is the truth."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.stats import kurtosis

from jointset.datasets import generate_grssf
from jointset.datasets.grssf import SIZES, TRACKS
from jointset.errors import InputError


@pytest.mark.parametrize("track", TRACKS)
def test_a_seed_fixes_everything_and_another_changes_it(track):
    a, b, c = (generate_grssf(track, n=30, seed=s, length=200) for s in (1, 1, 2))
    assert a.panel == b.panel
    assert not np.array_equal(a.panel.values, c.panel.values)
    assert not np.array_equal(a.panel.adjacency, c.panel.adjacency)


@pytest.mark.parametrize("n", SIZES)
def test_sizes_and_default_length(n):
    network = generate_grssf("A", n=n)
    assert network.panel.values.shape == (8000, n)
    counts = np.bincount(network.truth.communities)
    assert len(counts) == 4 and counts.max() - counts.min() <= 1
    assert np.linalg.norm(network.truth.transition, 2) == pytest.approx(0.8)


def test_readings_have_the_stationary_covariance_of_the_truth():
    """Var Y = P + R with P = F P F' + Q, from the first step on (no burn-in left)."""
    network = generate_grssf("B", n=12, seed=0, length=60_000)
    truth = network.truth
    P = solve_discrete_lyapunov(truth.transition, truth.process_covariance)
    expected = P + truth.observation_covariance
    got = np.cov(network.panel.values.T)
    assert np.abs(got - expected).max() < 0.08
    first = np.var([generate_grssf("A", n=8, seed=s, length=20).panel.values[0] for s in range(300)])
    P = solve_discrete_lyapunov(generate_grssf("A", n=8, seed=0, length=20).truth.transition, np.eye(8))
    assert first == pytest.approx(P.diagonal().mean() + 1, rel=0.1)


def test_transition_is_the_regression_of_the_next_state():
    """Lag-one covariance of the readings is F P."""
    network = generate_grssf("A", n=8, seed=3, length=80_000)
    y, F = network.panel.values, network.truth.transition
    P = solve_discrete_lyapunov(F, np.eye(8))
    lagged = y[1:].T @ y[:-1] / len(y)
    assert np.abs(lagged - F @ P).max() < 0.1


def test_track_b_is_block_diagonal_with_unit_variances():
    truth = generate_grssf("B", n=30, seed=0, length=20).truth
    Q, same = truth.process_covariance, truth.communities[:, None] == truth.communities
    np.testing.assert_allclose(Q.diagonal(), 1.0)
    assert (Q[~same] == 0).all() and np.linalg.eigvalsh(Q).min() > 0
    assert np.abs(Q[same & ~np.eye(30, dtype=bool)]).mean() > 0.1


def test_track_c_has_heavy_tails_of_unit_variance():
    a, c = (generate_grssf(track, n=30, seed=0, length=8000).panel.values for track in "AC")
    assert kurtosis(c.ravel()) > kurtosis(a.ravel()) + 0.3
    assert c.var() == pytest.approx(a.var(), rel=0.05)


def test_track_d_drifts_over_the_test_block_only():
    a, d = (generate_grssf(track, n=30, seed=5, length=1000) for track in "AD")
    np.testing.assert_allclose(d.panel.values[:900], a.panel.values[:900])
    assert np.abs(d.panel.values[900:] - a.panel.values[900:]).max() > 0.1
    assert not np.array_equal(d.truth.transition, d.truth.transition_end)
    np.testing.assert_array_equal(a.truth.transition, a.truth.transition_end)


def test_track_e_doubles_the_innovations_at_the_middle_of_the_test_block():
    a, e = (generate_grssf(track, n=30, seed=5, length=4000) for track in "AE")
    np.testing.assert_allclose(e.panel.values[:3800], a.panel.values[:3800])
    assert e.panel.values[3800:].var() / a.panel.values[3800:].var() > 2
    assert set(e.truth.process_scale[:3800]) == {1.0} and set(e.truth.process_scale[3800:]) == {2.0}


def test_contraction_rates_are_ordered():
    truth = generate_grssf("A", n=60, length=20).truth
    assert truth.rho_tr < truth.sigma_1 < truth.rho_snr < 0.8
    assert truth.sigma_1 == pytest.approx(0.33756, abs=5e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"track": "F"}, "choose one of A, B, C, D, E"),
        ({"n": 3}, "at least 8 sensors"),
        ({"length": 5}, "at least 20 steps"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        generate_grssf(**options)
