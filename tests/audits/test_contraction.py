"""Contraction: the coupled pairs of a linear filter contract at sigma_1, and the fit obeys its own rule."""

import numpy as np
import pytest

from jointset import GNF, GraphLGSSM, generate_grssf
from jointset.audits.contraction import contraction, decay, finite_horizon, sensitivity
from jointset.audits.coupling import coupled, decay_rate, fit_window, perturbed, starts, trajectories
from jointset.datasets.cells import cell
from jointset.errors import InputError
from jointset.filters.riccati import rho_weighted, sigma_1
from jointset.laws import LowRankLaw


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=30, length=400).panel


@pytest.fixture(scope="module", params=["pooled", "node", "diagonal"])
def learned(request, network):
    kinds = {
        "pooled": GNF(steps=3),
        "node": GNF(node=True, steps=3, recipe="sharp"),
        "diagonal": GNF(graph=False, rank=0, steps=3),
    }
    return kinds[request.param].fit(network)


def assert_contracts_at_sigma_1(panel):
    filter = GraphLGSSM().fit(panel)
    found = contraction(filter, panel.values)
    truth = sigma_1(filter.steady.closed_loop)
    assert abs(found.rho_dG.late.rate - truth) < 0.01
    assert found.rho_dG.late.rate < truth + 1e-9
    # the fit over the whole window mixes faster modes in: it lies between the trace rate and sigma_1
    assert rho_weighted(filter.steady.closed_loop, 1) < found.rho_dG.rate < truth
    assert truth - found.rho_dG.rate < 0.03
    assert abs(found.rho_DL.rate - found.rho_dG.rate) < 0.03  # as the paper says of the two
    assert found.floor_share == 1.0 and found.fitted_share == 1.0


@pytest.mark.parametrize("n", [30, 60, 120])
def test_linear_filter_contracts_at_sigma_1_on_grssf(n):
    assert_contracts_at_sigma_1(generate_grssf("A", n=n, length=400).panel)


@pytest.mark.parametrize("name", ["metr-la-20", "metr-la-207"])
def test_linear_filter_contracts_at_sigma_1_on_metr_la(name, real_data):
    real_data("metr-la.npz")
    assert_contracts_at_sigma_1(cell(name).train)


def test_linear_distances_are_powers_of_the_closed_loop(network):
    filter = GraphLGSSM().fit(network)
    delta = np.random.default_rng(0).normal(size=30)
    start = filter.start()
    found = coupled(filter, [start, perturbed(start, delta)], network.values[:12])[0]
    powers = [np.linalg.norm(np.linalg.matrix_power(filter.closed_loop, t) @ delta) for t in range(12)]
    np.testing.assert_allclose(found, powers, rtol=1e-7)


def test_gaps_are_handled_as_the_filter_handles_them(network):
    filter = GraphLGSSM().fit(network)
    values = network.values[:40].copy()
    values[3, :5] = values[10] = np.nan
    rng = np.random.default_rng(0)
    found = list(trajectories(filter, starts(filter, 2, 1.0, rng), values))
    alone, _ = filter.run(values, starts(filter, 2, 1.0, np.random.default_rng(0))[2])
    np.testing.assert_allclose([laws.mean[2] for laws in found], alone.mean, atol=1e-12)
    distances = coupled(filter, starts(filter, 2, 1.0, np.random.default_rng(0)), values)
    means = np.stack([laws.mean for laws in found])
    np.testing.assert_allclose(distances, np.linalg.norm(means[:, 1:] - means[:, :1], axis=-1).T, rtol=1e-9)


@pytest.mark.parametrize("gaps", [False, True])
def test_copies_run_together_emit_what_each_emits_alone(learned, network, gaps):
    values = network.values[:25].copy()
    if gaps:
        values[4, :7] = values[9] = np.nan
    states = starts(learned, 3, 1.0, np.random.default_rng(1))
    together = list(trajectories(learned, states, values))
    for k, state in enumerate(states):
        alone, _ = learned.run(values, state)
        for name in ("mean", "diagonal", "factor"):
            batch = np.stack([getattr(laws, name)[k] for laws in together])
            np.testing.assert_allclose(batch, getattr(alone, name), rtol=1e-9, atol=1e-12)


def test_coupled_distances_are_those_of_the_laws(learned, network):
    states = starts(learned, 2, 1.0, np.random.default_rng(2))
    values = network.values[:6]
    found = coupled(learned, states, values)
    laws = [learned.run(values, state)[0] for state in states]
    assert isinstance(laws[0], LowRankLaw)
    for k in (1, 2):
        np.testing.assert_allclose(found[k - 1], laws[0].distance(laws[k]), rtol=1e-7)


def test_equal_states_stay_equal(learned, network):
    state = learned.start()
    assert coupled(learned, [state, state], network.values[:5]).max() == 0.0


def test_the_rate_does_not_depend_on_the_unit_of_the_distance():
    rng = np.random.default_rng(0)
    distances = 5.0 * 0.7 ** np.arange(60) * np.exp(0.1 * rng.normal(size=(8, 60)))
    first = decay(distances, floor=1e-8)
    other = decay(1e3 * distances, floor=1e-5)
    np.testing.assert_allclose(other.rates, first.rates, rtol=1e-10)
    np.testing.assert_allclose(other.late.rate, first.late.rate, rtol=1e-10)
    assert abs(first.rate - 0.7) < 0.01


def test_the_window_begins_below_the_top_and_ends_at_the_floor():
    distance = np.array([1.0, 0.9, 0.5, 0.1, 1e-3, 1e-9, 1e-3, 1e-4])
    assert np.flatnonzero(fit_window(distance, 1e-8, 0.8)).tolist() == [2, 3, 4]
    assert np.isnan(decay_rate(distance, np.array([True, True] + [False] * 6)).rate)


def test_a_filter_that_does_not_forget_has_no_rate():
    constant = np.ones((4, 50))
    found = decay(constant)
    assert np.isnan(found.rate) and found.late.points == 0


def test_finite_horizon_distance_sums_the_next_steps():
    distances = np.array([[3.0, 4.0, 0.0, 1.0]])
    np.testing.assert_allclose(finite_horizon(distances, 1), [[5.0, 4.0, 1.0]])


def test_same_seed_same_numbers_and_another_seed_others(learned, network):
    a, b, c = (contraction(learned, network.values, pairs=3, steps=40, seed=s) for s in (5, 5, 6))
    np.testing.assert_array_equal(a.distances, b.distances)
    assert not np.array_equal(a.distances, c.distances)
    assert a.mean.shape == a.error.shape == a.steps.shape == (40,)


def test_sensitivity_varies_one_setting_at_a_time(network):
    filter = GraphLGSSM().fit(network)
    grid = sensitivity(filter, network.values)
    assert len(grid) == 7 and len({setting[:3] for setting in grid}) == 7
    rates = [setting.rho_dG for setting in grid]
    assert max(rates) - min(rates) < 0.02  # as the paper says


def test_what_cannot_be_audited_is_refused(network):
    filter = GraphLGSSM().fit(network)
    with pytest.raises(InputError, match="at least 30 rows"):
        contraction(filter, network.values[:20])
    with pytest.raises(InputError, match="no hidden state"):
        perturbed((1, 2), np.zeros(2))
