"""Score forgetting: the Wasserstein distance is SciPy's, and the fitted rate is that of the filter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from jointset import GNF, GraphLGSSM, MaxStudentised, generate_grssf
from jointset.audits.forgetting import _forgetting, coupled_scores, robustness, score_forgetting, wasserstein_1
from jointset.filters.riccati import sigma_1

numbers = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=30, length=400).panel


@given(numbers, numbers)
def test_wasserstein_equals_scipy(a, b):
    np.testing.assert_allclose(wasserstein_1(np.array(a), np.array(b)), wasserstein_distance(a, b), atol=1e-9)


def test_wasserstein_is_batched_and_zero_on_equal_samples():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 9)), rng.normal(size=(6, 4))
    each = [wasserstein_distance(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(wasserstein_1(a, b), each, atol=1e-12)
    assert (wasserstein_1(a, rng.permuted(a, axis=1)) < 1e-15).all()


def test_equal_states_have_equal_score_distributions(network):
    filter = GraphLGSSM().fit(network)
    found = score_forgetting(filter, network.values, scale=0.0)
    assert found.distance.max() == 0.0 and np.isnan(found.rho) and not found.measurable


def test_linear_filter_forgets_scores_at_the_rate_of_its_state(network):
    """It is at rounding level before step 20, so the paper's window 20 .. 100 holds nothing, and that is said."""
    filter = GraphLGSSM().fit(network)
    found = score_forgetting(filter, network.values, copies=30)
    assert not found.measurable and found.floor_share > 0.9
    assert abs(found.rho - sigma_1(filter.steady.closed_loop)) < 0.03
    assert found.free.last < 40


def test_a_slow_filter_is_fitted_in_the_window_of_the_paper():
    """Modes of rate near 0.9 stay above rounding through step 100."""
    panel = generate_grssf("A", n=30, length=400).panel
    filter = GraphLGSSM(rho=0.95, sigma_q=0.1, sigma_r=1.0).fit(panel)
    found = score_forgetting(filter, panel.values, copies=10)
    assert found.measurable and found.fixed.first == 20 and found.fixed.last <= 100
    assert abs(found.rho - sigma_1(filter.steady.closed_loop)) < 0.03


def test_geometric_decay_is_recovered_whatever_its_unit():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(5, 200))
    scores = np.vstack([np.full(200, 10.0), 10.0 + signs * 0.8 ** np.arange(200)])
    for unit in (1.0, 1e4):
        found = _forgetting(unit * scores, (20, 100), 1.0)
        assert abs(found.fixed.rate - 0.8) < 1e-4 and abs(found.free.rate - 0.8) < 1e-3


def test_rows_without_readings_are_left_out(network):
    filter = GNF(steps=3).fit(network)
    values = network.values[-100:].copy()
    values[7] = np.nan
    found = score_forgetting(filter, values)
    assert 7 not in found.steps and len(found.steps) == len(found.distance) == 99
    assert np.isfinite(found.distance).all()


def test_other_scores_can_be_audited(network):
    filter = GraphLGSSM().fit(network)
    box = coupled_scores(filter, network.values[:30], 2, score=MaxStudentised().score)
    laws, _ = filter.run(network.values[:30], filter.start())
    np.testing.assert_allclose(box[0], MaxStudentised().score(laws, network.values[:30]), rtol=1e-9)


def test_robustness_grid_and_seeds(network):
    filter = GraphLGSSM().fit(network)
    grid = robustness(filter, network.values)
    assert len({setting[:4] for setting in grid}) == len(grid) == 15
    assert all(0.25 < setting.rho < 0.36 for setting in grid)
    a, b = (score_forgetting(filter, network.values, seed=3) for _ in range(2))
    np.testing.assert_array_equal(a.distance, b.distance)
