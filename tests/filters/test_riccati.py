"""The closed-form steady state against two independent solvers, and the contraction rates against their theorems."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

from jointset.datasets import generate_grssf
from jointset.datasets.grssf import block_model
from jointset.filters import GraphLGSSM
from jointset.filters.riccati import rho_snr, rho_weighted, sigma_1, steady_state
from jointset.panel import Panel


def on_random_graph(seed, n=12, **options):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
    panel = Panel(rng.normal(size=(5, n)), [f"s{i}" for i in range(n)], adjacency=weights + weights.T)
    return GraphLGSSM(**options).fit(panel)


def iterate_riccati(F, Q, R, tolerance=1e-9, most=10_000):
    """Prior covariance P^- from the literal recursion with C = I, started at P = Q.

    Stops when the posterior changes by less than `tolerance` relative in Frobenius norm.
    """
    P = Q
    for _ in range(most):
        prior = F @ P @ F.T + Q
        gain = np.linalg.solve(prior + R, prior).T
        new = prior - gain @ prior
        done = np.linalg.norm(new - P) <= tolerance * np.linalg.norm(new)
        P = 0.5 * (new + new.T)
        if done:
            break
    return F @ P @ F.T + Q


@settings(max_examples=40)
@given(st.integers(0, 1000), st.floats(0.05, 0.98), st.floats(0.05, 5), st.floats(0.05, 5))
def test_closed_form_equals_dare_and_iteration(seed, rho, sigma_q, sigma_r):
    f = on_random_graph(seed, rho=rho, sigma_q=sigma_q, sigma_r=sigma_r)
    F, Q, R = f.transition, sigma_q**2 * np.eye(12), sigma_r**2 * np.eye(12)
    scale = np.abs(f.prior).max()
    np.testing.assert_allclose(f.prior, solve_discrete_are(F.T, np.eye(12), Q, R), atol=1e-9 * scale)
    np.testing.assert_allclose(f.prior, iterate_riccati(F, Q, R, tolerance=1e-12), atol=1e-9 * scale)
    gain = f.prior @ np.linalg.inv(f.prior + R)
    np.testing.assert_allclose(f.closed_loop, F @ (np.eye(12) - gain), atol=1e-9)
    np.testing.assert_allclose(f.input_gain, F @ gain, atol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-9])
def test_the_papers_stopping_rule_is_accurate_enough(tolerance):
    f = on_random_graph(0)
    np.testing.assert_allclose(f.prior, iterate_riccati(f.transition, np.eye(12), np.eye(12), tolerance), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_sigma_1_is_the_same_on_every_graph(seed):
    """The top mode of every normalised shift has f = rho, so sigma_1 depends on (rho, q, r) only."""
    f = on_random_graph(seed)
    assert np.linalg.svd(f.closed_loop, compute_uv=False)[0] == pytest.approx(0.33756, abs=5e-6)
    assert sigma_1(f.steady.closed_loop) == pytest.approx(0.33756, abs=5e-6)


def test_isotropic_modes_make_the_surrogate_exact():
    rest = steady_state(np.full(7, 0.8), 1.0, 1.0)
    assert rho_snr(0.8, rest.prior, 1.0) == pytest.approx(sigma_1(rest.closed_loop), abs=1e-14)


def test_tiny_process_noise_does_not_cancel():
    """p^2 + (nu (1 - f^2) - q) p - q nu = 0 must hold to rounding even when q << nu."""
    q, nu, f = 1e-12, 1.0, 0.5
    p = steady_state(np.array([f]), q, nu).prior[0]
    assert p == pytest.approx(q / (1 - f**2), rel=1e-9)


def test_rms_identity_holds_along_the_real_filter():
    """Couple two copies of the filter on the same readings: E|D_t|^2 follows the weighted rate exactly."""
    network = generate_grssf("A", n=30, seed=3, length=60)
    f = GraphLGSSM().fit(network.panel)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 30)) * rng.uniform(0.1, 3, 30)  # D_0 is one of 30 columns, equally likely
    M0 = root @ root.T / 30
    basis, a = f.spectrum[1], f.steady.closed_loop
    base, moved = f.start(), [f.start()._replace(mean=column) for column in root.T]
    start = np.trace(M0)
    for t in range(1, 11):
        y = network.panel.values[t]
        base, moved = f.step(base, y), [f.step(state, y) for state in moved]
        spread = np.mean([np.sum((state.mean - base.mean) ** 2) for state in moved])
        predicted = rho_weighted(a, t, M0, basis) ** t * np.sqrt(start)
        assert np.sqrt(spread) == pytest.approx(predicted, rel=1e-10, abs=1e-10)


def test_rms_envelope_and_ordering():
    network = generate_grssf("A", n=30, seed=1, length=20)
    f = GraphLGSSM().fit(network.panel)
    a, basis = f.steady.closed_loop, f.spectrum[1]
    M0 = np.diag(np.random.default_rng(0).uniform(0.1, 9, 30))
    rates = [rho_weighted(a, t, M0, basis) for t in (1, 2, 5, 10, 50)]
    assert all(x < y for x, y in itertools.pairwise(rates)) and rates[-1] < sigma_1(a)
    assert rho_weighted(a, 10, 4.0 * np.eye(30), basis) == pytest.approx(rho_weighted(a, 10), rel=1e-12)
    assert np.isfinite(rho_weighted(a, 5000))  # high powers do not underflow


def test_block_model_has_the_stated_edge_rates():
    rng = np.random.default_rng(0)
    communities = np.repeat(np.arange(4), 60)
    A = block_model(communities, rng)
    same = communities[:, None] == communities
    off = ~np.eye(240, dtype=bool)
    assert (A == A.T).all() and A.diagonal().sum() == 0
    assert A[same & off].mean() == pytest.approx(0.6, abs=0.02)
    assert A[~same].mean() == pytest.approx(0.1, abs=0.01)
