"""Theory calculators against independent computations: products of matrices, simulation, finite differences."""

import numpy as np
import pytest
from scipy.stats import binom, chi, chi2

from jointset import GraphLGSSM, generate_grssf
from jointset.audits import theory
from jointset.errors import InputError
from jointset.filters import GNF
from jointset.laws import DenseLaw
from jointset.regions import Ellipsoid


def second_moment(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, n)) * np.linspace(0.1, 30.0, n)
    return X @ X.T


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=20, seed=3, length=400)


@pytest.fixture(scope="module")
def linear(network):
    return GraphLGSSM().fit(network.panel)


# ------------------------------------------------------------------ linear filter


@pytest.mark.parametrize("normal", ["graph", "rotation"])
def test_rms_identity_is_exact_and_its_envelope_holds(linear, normal):
    if normal == "graph":
        A = linear.closed_loop
    else:  # normal, not symmetric: complex modes
        blocks = [r * np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for r, a in ((0.7, 0.4), (0.3, 2.0))]
        Q = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
        A = Q @ np.block([[blocks[0], np.zeros((2, 2))], [np.zeros((2, 2)), blocks[1]]]) @ Q.T
    found = theory.rms_identity(A, second_moment(len(A)), 40)
    np.testing.assert_allclose(found.identity, found.rms, rtol=1e-10)
    assert np.all(found.envelope >= found.rms * (1 - 1e-10))
    assert found.envelope[-1] == pytest.approx(found.rms[-1], rel=1e-10)


def test_rms_identity_is_the_decay_of_coupled_filters(linear, network):
    rng, T, pairs = np.random.default_rng(0), 12, 4000
    gaps = rng.standard_normal((pairs, 20)) * np.linspace(0.2, 2.0, 20)
    M0 = gaps.T @ gaps / pairs
    found = theory.rms_identity(linear.closed_loop, M0, T)
    first, others = np.zeros(20), gaps.copy()
    for t, y in enumerate(network.panel.values[:T]):
        first = linear.step(linear.start()._replace(mean=first), y).mean
        others = others @ linear.closed_loop.T + linear.input_gain @ y  # the same readings
        rms = np.sqrt(np.mean(np.sum((others - first) ** 2, axis=1)))
        assert rms == pytest.approx(found.identity[t], rel=1e-8)


def test_a_closed_loop_that_is_not_normal_is_refused():
    with pytest.raises(InputError, match="not normal"):
        theory.rms_identity(np.array([[0.5, 1.0], [0.0, 0.4]]), np.eye(2), 3)


def test_rates_are_ordered_and_meet_in_special_cases(linear):
    a, U = linear.steady.closed_loop, linear.spectrum[1]
    M0 = second_moment(20)
    rates = [theory.rho_m0(a, t, M0, U) for t in (1, 5, 50, 500)]
    assert rates == sorted(rates) and rates[-1] <= theory.sigma_1(a) * (1 + 1e-12)
    assert theory.rho_m0(linear.closed_loop, 7, M0) == pytest.approx(theory.rho_m0(a, 7, M0, U), rel=1e-10)
    assert theory.rho_m0(a, 9, 3.0 * np.eye(20), U) == pytest.approx(theory.rho_tr(a, 9), rel=1e-12)
    same = theory.steady_state(np.full(5, 0.8), 1.0, 2.0)
    assert theory.rho_snr(0.8, same.prior, 2.0) == pytest.approx(theory.sigma_1(same.closed_loop), rel=1e-12)


def test_no_go_prefactor_is_attained(linear):
    rate, T = 0.2, 15
    A = linear.closed_loop
    powers = [np.linalg.norm(np.linalg.matrix_power(A, t), 2) / rate**t for t in range(1, T + 1)]
    assert max(powers) == pytest.approx(theory.no_go_prefactor(theory.sigma_1(linear.steady.closed_loop), rate, T))


# ------------------------------------------------------------------ Jacobians


def test_jacobian_rate_of_the_linear_filter_is_rho_m0(linear, network):
    M0 = second_moment(20)
    rates = theory.jacobian_rms_rate(linear, network.panel.values[:30], second_moment=M0)
    a, U = linear.steady.closed_loop, linear.spectrum[1]
    np.testing.assert_allclose(rates, [theory.rho_m0(a, t, M0, U) for t in range(1, 31)], rtol=1e-10)
    plain = theory.jacobian_rms_rate(linear, network.panel.values[:30])
    np.testing.assert_allclose(plain, [theory.rho_tr(a, t) for t in range(1, 31)], rtol=1e-10)


@pytest.fixture(scope="module", params=[False, True], ids=["pooled", "node"])
def learned(request):
    panel = generate_grssf("A", n=8, seed=0, length=400).panel
    filter_ = GNF(node=request.param, width=6, rank=1, steps=15).fit(panel)
    rows = panel.values[:25].copy()
    rows[[3, 9], [1, 4]] = np.nan  # a gap is filled by the state itself: part of the map
    return filter_, rows


def states(filter_, rows, state):
    found = []
    for y in rows:
        state = filter_.step(state, y)
        found.append(state.hidden.ravel())
    return np.array(found)


def test_jacobians_of_a_learned_filter_are_those_of_finite_differences(learned):
    filter_, rows = learned
    start = filter_.start()
    product = np.linalg.multi_dot(theory.jacobians(filter_, rows[:5])[::-1])
    for i in range(0, start.hidden.size, 5):
        step = np.zeros(start.hidden.size)
        step[i] = 1e-5
        ends = [
            states(filter_, rows[:5], start._replace(hidden=start.hidden + s * step.reshape(start.hidden.shape)))[-1]
            for s in (1, -1)
        ]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, product[:, i], atol=1e-6)


def test_jacobian_rate_is_that_of_the_products_and_random_directions_estimate_it(learned):
    filter_, rows = learned
    found = theory.jacobians(filter_, rows)
    product, expected = np.eye(found.shape[1]), []
    for t, J in enumerate(found, start=1):
        product = J @ product
        expected.append((np.sum(product**2) / len(product)) ** (0.5 / t))
    np.testing.assert_allclose(theory.jacobian_rms_rate(filter_, rows), expected, rtol=1e-9)
    rough = theory.jacobian_rms_rate(filter_, rows, directions=400)
    np.testing.assert_allclose(rough, expected, rtol=0.15)


def test_perturbation_bound_holds_for_coupled_learned_filters(learned):
    filter_, rows = learned
    start, rng = filter_.start(), np.random.default_rng(0)
    gap = 0.01 * rng.standard_normal(start.hidden.shape)
    other = start._replace(hidden=start.hidden + gap)
    constants = theory.jacobian_constants(filter_, rows, start, other)
    assert 0 < constants.epsilon < 1 and constants.envelope >= 1
    rates = theory.jacobian_rms_rate(filter_, rows, second_moment=np.outer(gap, gap))
    apart = np.linalg.norm(states(filter_, rows, other) - states(filter_, rows, start), axis=1)
    d0 = float(np.linalg.norm(gap))
    for t, rms in enumerate(apart, start=1):
        assert rms <= theory.jacobian_perturbation_bound(rates[t - 1], t, *constants, d0) * (1 + 1e-9)


def test_filters_without_a_known_state_map_are_refused():
    class Other:
        def start(self):
            return None

    with pytest.raises(InputError, match="no Jacobians for Other: its state map is not known"):
        theory.jacobian_rms_rate(Other(), np.zeros((2, 2)))


# ------------------------------------------------------------------ coverage


def test_bernstein_interval_covers_a_binomial_share_and_widens_with_dependence():
    for m in (50, 300, 3000):
        low, high = theory.bernstein_interval(0.1, m, 0.1)
        assert binom.cdf(np.floor(high * m), m, 0.9) - binom.cdf(np.ceil(low * m) - 1, m, 0.9) >= 0.9
        assert theory.bernstein_interval(0.1, m / 10, 0.1)[0] < low
        assert theory.bernstein_interval(0.1, m, 0.1, test_size=m)[0] < low


def test_chebyshev_interval_needs_second_moments_only_and_pays_for_it():
    m, rho = 2000, 0.8
    gamma = 0.09 * rho ** np.arange(1, 200)
    tau = 1 + 2 * np.sum(gamma) / 0.09
    bernstein, chebyshev = (
        theory.bernstein_interval(0.1, m / tau),
        theory.chebyshev_interval(0.1, m, gamma, variance=0.09),
    )
    assert chebyshev[0] < bernstein[0] < 0.9 < bernstein[1] < chebyshev[1]
    variance = theory.hit_variance(m, gamma, 0.09)
    assert variance == pytest.approx(0.09 * tau / m, rel=0.01)
    assert 1 / (m + 1) < 0.9 - chebyshev[0] - np.sqrt(2 * variance / 0.1) < 1.1 / m


def test_quantile_concentration_holds_for_independent_root_scores():
    n, m, epsilon, rng = 5, 3000, 0.25, np.random.default_rng(0)
    top = chi.ppf(0.9, n)
    density = chi.pdf(top + epsilon, n)  # smallest on the interval: the density falls there
    radii = np.quantile(chi.rvs(n, size=(500, m), random_state=rng), 0.9, axis=1)
    bound = theory.quantile_concentration(epsilon, m, np.zeros(0), density)
    assert np.mean(np.abs(radii - top) > epsilon) <= bound < 1
    assert theory.quantile_concentration(epsilon, m, np.zeros(0), density, bias=1.0) == 1.0


def test_forgetting_bound_holds_for_a_linear_gaussian_chain():
    # score |h_{t-1} + noise|, h_t = a h_{t-1} + xi: started at h = 3, a stationary chain beside it
    a, h0, noise = 0.7, 3.0, 1.0
    stationary = np.sqrt(1 / (1 - a**2))
    u = np.linspace(0.5, 3.0, 20)

    def cdf(mean, sd):
        from scipy.stats import norm

        return norm.cdf((u - mean) / sd) - norm.cdf((-u - mean) / sd)

    settled = np.hypot(stationary, noise)
    density = 2 / (settled * np.sqrt(2 * np.pi))
    distance = np.mean(np.abs(h0 - stationary * np.random.default_rng(0).standard_normal(100_000)))
    for t in range(1, 30):
        sd = np.hypot(stationary * np.sqrt(1 - a ** (2 * (t - 1))), noise)
        gap = np.max(np.abs(cdf(h0 * a ** (t - 1), sd) - cdf(0.0, settled)))
        assert gap <= theory.forgetting_bound(t, a, 1.0, distance, density)


def test_ridge_stability_bounds_every_replacement():
    rng, m, ridge = np.random.default_rng(0), 60, 0.5
    R = rng.uniform(-1, 1, (m, 3))
    largest = np.sqrt(3.0)
    bound = theory.ridge_stability(largest, ridge, m)
    S = R.T @ R / m + ridge * np.eye(3)
    y = rng.uniform(-1, 1, (200, 3))
    score = np.einsum("ti,ij,tj->t", y, np.linalg.inv(S), y)
    for i in range(m):
        other = R.copy()
        other[i] = rng.uniform(-1, 1, 3)
        moved = np.einsum("ti,ij,tj->t", y, np.linalg.inv(other.T @ other / m + ridge * np.eye(3)), y)
        assert np.max(np.abs(moved - score)) <= bound
    assert theory.plug_in_bound(m, bound, 0.1) == pytest.approx(1 / (m + 1) + 0.2 * bound)


def test_log_volume_gap_is_the_difference_of_volumes_and_stays_below_its_bound():
    n, rng = 6, np.random.default_rng(0)
    X = 0.1 * rng.standard_normal((n, n))
    S = np.eye(n) + X @ X.T
    exact, radius = DenseLaw(np.zeros(n), np.eye(n)), 11.0
    law = DenseLaw(np.zeros(n), S)
    gap = theory.log_volume_gap(radius, float(law.log_det), 0.0, n)
    oracle = Ellipsoid(exact, chi2.ppf(0.9, n)).log_volume
    assert gap == pytest.approx(float(Ellipsoid(law, radius).log_volume - oracle), abs=1e-12)
    kl = 0.5 * (np.trace(np.linalg.inv(S)) - n + float(law.log_det))
    eigenvalues = np.linalg.eigvalsh(S)
    error = abs(np.sqrt(radius) - chi.ppf(0.9, n))
    assert gap <= theory.log_volume_bound(kl, error, n, min(1.0, eigenvalues[0]), eigenvalues[-1])
