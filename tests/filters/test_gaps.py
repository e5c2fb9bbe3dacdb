"""Missing sensors in the graph Kalman filter: the textbook's numbers, at a cost that follows the number of gaps."""

import numpy as np
import pytest

from jointset import GraphLGSSM, JointPredictor, Panel
from jointset.algebra.covariance import Covariance
from jointset.algebra.law_blocks import concatenate
from jointset.filters.kalman import KalmanState
from jointset.laws import DenseLaw
from jointset.storage import pack, unpack

N, T = 80, 90


def panel(graph="sparse", n=N, steps=T, seed=0):
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    if graph.startswith("sparse"):  # a ring with a few chords
        i = np.arange(n)
        A[i, (i + 1) % n] = A[i, (i + 7) % n] = rng.uniform(0.5, 2, n)
    elif graph == "full":
        A = rng.uniform(0.1, 1, (n, n)) * (1 - np.eye(n))
    return Panel(rng.normal(size=(steps, n)), [f"s{i}" for i in range(n)], adjacency=np.maximum(A, A.T))


def with_gaps(values):
    """Every kind of gap: single ones, many at once, silence, a sensor that dies, rows complete in between."""
    rng, values = np.random.default_rng(1), values.copy()
    values[3, 5] = np.nan
    values[6, [1, 2, 70]] = np.nan
    values[20, rng.random(N) < 0.4] = np.nan
    values[24] = np.nan
    values[45:48] = np.nan  # from rest
    values[48, 9] = np.nan  # off rest on the diagonal, then a single one
    values[65:, 33] = np.nan
    values[80, rng.random(N) < 0.6] = np.nan
    values[84:87, :40] = np.nan
    return values


def textbook(f, values):
    """Means (T + 1, N) and covariances (T + 1, N, N) of the predicted state, as written in every book."""
    n, F, P, mean = values.shape[1], f.transition, f.prior, np.zeros(values.shape[1])
    means, covariances = [mean], [P]
    for y in values:
        seen = np.flatnonzero(~np.isnan(y))
        S = P[np.ix_(seen, seen)] + f.sigma_r**2 * np.eye(len(seen))
        gain = np.linalg.solve(S, P[seen]).T
        mean, P = mean + gain @ (y[seen] - mean[seen]), P - gain @ P[seen]
        mean, P = F @ mean, F @ P @ F.T + f.sigma_q**2 * np.eye(n)
        means, covariances = [*means, mean], [*covariances, 0.5 * (P + P.T)]
    return np.array(means), np.array(covariances)


FILTERS = {"default": GraphLGSSM(), "slow to forget": GraphLGSSM(rho=0.95, sigma_q=0.1, sigma_r=0.8)}


@pytest.mark.parametrize("graph", ["sparse", "sparse, small", "full", "none"])
@pytest.mark.parametrize("kind", FILTERS)
def test_every_kind_of_gap_gives_the_numbers_of_the_textbook(kind, graph, monkeypatch):
    if graph == "sparse":
        monkeypatch.setattr("jointset.filters.kalman_gaps.SMALL", 0)
    data = panel(graph)
    f, values = FILTERS[kind].fit(data), with_gaps(data.values)
    means, covariances = textbook(f, values)
    laws, last = f.run(values, f.start())
    np.testing.assert_allclose(laws.mean, means[:-1], atol=1e-9)
    emitted = covariances[:-1] + f.sigma_r**2 * np.eye(N)
    np.testing.assert_allclose(laws.covariance.matrix, emitted, atol=1e-9)
    np.testing.assert_allclose(laws.log_det, np.linalg.slogdet(emitted)[1], rtol=1e-10)
    state = f.start()
    for y in values:
        state = f.step(state, y)
    np.testing.assert_allclose(state.mean, last.mean, atol=1e-11)
    np.testing.assert_allclose(f.law(state).variance, covariances[-1].diagonal() + f.sigma_r**2, rtol=1e-9)


@pytest.mark.parametrize("kind", FILTERS)
def test_a_network_that_is_not_large_has_the_same_numbers_by_plain_matrices(kind, monkeypatch):
    data = panel(steps=200)
    values = data.values.copy()
    values[:T] = with_gaps(values[:T])
    values[100:190, 33] = np.nan  # long enough for another rest
    f = FILTERS[kind].fit(data)
    modes, last = f.run(values, f.start())
    monkeypatch.setattr("jointset.filters.kalman_course.DENSE", N)
    laws, end = f.run(values, f.start())
    np.testing.assert_allclose(laws.mean, modes.mean, atol=1e-10)
    moved, also = laws.rescale(np.ones(N), np.linspace(0.1, 9, N)), modes.rescale(np.ones(N), np.linspace(0.1, 9, N))
    y = 1.0 + np.linspace(0.1, 9, N) * values
    for what in ("mahalanobis", "nll", "contributions"):
        np.testing.assert_allclose(getattr(moved, what)(y), getattr(also, what)(y), rtol=1e-8, atol=1e-10)
    for what in ("variance", "log_det"):
        np.testing.assert_allclose(getattr(moved, what), getattr(also, what), rtol=1e-10)
    np.testing.assert_allclose(f.law(end).variance, f.law(last).variance, rtol=1e-10)
    if kind == "default":
        assert len({id(S) for S in laws.covariance.each[140:190]}) == 1
    assert laws.covariance.each[0] is laws.covariance.each[3] is f.emitted


@pytest.mark.parametrize("graph", ["sparse", "none"])
def test_laws_after_gaps_are_those_of_their_matrices(graph):
    data = panel(graph)
    f, values = GraphLGSSM(rho=0.9, sigma_q=0.5).fit(data), with_gaps(data.values)
    laws, _ = f.run(values, f.start())
    plain = DenseLaw(laws.mean, Covariance(laws.covariance.matrix))
    for y in (values, data.values):
        for what in ("mahalanobis", "nll", "contributions"):
            np.testing.assert_allclose(getattr(laws, what)(y), getattr(plain, what)(y), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(laws.variance, plain.variance, rtol=1e-10)
    seen = ~np.isnan(values)
    np.testing.assert_allclose(laws.effective_sensors(seen), plain.effective_sensors(seen), rtol=1e-9)
    shift, scale = np.arange(N) / 7, np.linspace(0.1, 9, N)
    moved, also = laws.rescale(shift, scale), plain.rescale(shift, scale)
    y = shift + scale * values
    np.testing.assert_allclose(moved.mahalanobis(y), also.mahalanobis(y), rtol=1e-8)
    np.testing.assert_allclose(moved.contributions(y), also.contributions(y), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(moved.log_det, also.log_det, rtol=1e-10)
    some = [3, 33, 9, 70]
    np.testing.assert_allclose(moved.select(some).nll(y[:, some]), also.select(some).nll(y[:, some]), rtol=1e-9)
    whole = concatenate([moved[:10], moved[10:50], moved[50:]])
    np.testing.assert_allclose(whole.nll(y), moved.nll(y), rtol=1e-12)


def test_few_gaps_form_nothing_of_size_n_by_n():
    data = panel()
    predictor = JointPredictor(GraphLGSSM(), warmup=1).fit(data).calibrate(data)
    y = data.values[0].copy()
    y[4] = np.nan
    for _ in range(40):
        region = predictor.predict()
        region.bounds, region.log_volume, predictor.contributions(y)
        predictor.update(y)
        state = predictor.filter_state
        assert state.covariance is None and state.excess.shape[1] <= 16
    parts = vars(region.law.covariance.base).values()
    squares = [part for part in parts if isinstance(part, np.ndarray) and part.shape == (N, N)]
    assert len(squares) == 1 and squares[0] is predictor.filter.spectrum[1]  # the graph modes


def test_the_excess_of_gaps_is_forgotten_and_of_a_dead_sensor_stays_small():
    data = panel(steps=300)
    f = GraphLGSSM(rho=0.95, sigma_q=0.1, sigma_r=0.8).fit(data)
    dead = data.values.copy()
    dead[:, 7] = np.nan
    state = f.start()
    for y in dead:
        state = f.step(state, y)
    assert state.covariance is None and 0 < state.excess.shape[1] <= 48  # 105 gaps are remembered
    for y in data.values:
        state = f.step(state, y)
    assert state.at_rest


def test_silence_costs_no_rank():
    data = panel()
    f = GraphLGSSM().fit(data)
    state = f.step(f.start(), np.full(N, np.nan))
    assert state.covariance is None and state.excess is None and state.prior is not None
    for y in data.values:
        state = f.step(state, y)
    assert state.at_rest


def test_rows_at_rest_share_one_covariance():
    data = panel()
    f = GraphLGSSM().fit(data)
    laws, _ = f.run(with_gaps(data.values), f.start())
    assert laws.covariance.each[0] is laws.covariance.each[3] is laws.covariance.each[44] is f.emitted


def test_states_of_earlier_versions_load():
    data = panel()
    f = GraphLGSSM().fit(data)
    P = f.prior + np.eye(N)
    arrays = {}
    tree = pack(KalmanState(np.ones(N), P), arrays)
    tree["fields"] = {name: tree["fields"][name] for name in ("mean", "covariance")}
    state = unpack(tree, arrays)
    np.testing.assert_array_equal(f.law(state).covariance.matrix, P + np.eye(N))


def test_law_sizes_bound_what_laws_hold():
    data = panel()
    f, values = GraphLGSSM().fit(data), with_gaps(data.values)
    sizes = f.law_sizes(values)
    assert sizes[0] == 4 * N and sizes.max() == 4 * N**2
    assert (f.law_sizes(data.values) == 4 * N).all()


def test_a_run_with_gaps_is_cut_where_its_laws_are_large(monkeypatch):
    data = panel()
    values = with_gaps(data.values)
    predictor = JointPredictor(GraphLGSSM(), warmup=1).fit(data).calibrate(data)
    whole = predictor.copy().run(data.with_values(values))
    monkeypatch.setattr("jointset.predicting.passes.BLOCK", 10 * N**2)
    blocks = []
    cut = predictor.copy().run(data.with_values(values), progress=blocks.append)
    assert sum(blocks) == T and max(blocks) > 3 and min(blocks) <= 3
    for name in ("score", "lower", "log_volume"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9)
    np.testing.assert_array_equal(cut.regions.contains(values), cut.inside)


def test_a_row_of_a_large_network_keeps_the_memory_of_the_last(monkeypatch):
    """The setting is made once, where matrices are large, and never for small networks."""
    from jointset.filters import kalman_gaps

    called = []
    monkeypatch.setattr(kalman_gaps, "keep_freed_memory", lambda: called.append(1))
    for n, times in ((kalman_gaps.SMALL, 0), (kalman_gaps.SMALL + 1, 2)):
        P, e = np.eye(n), np.zeros(n)
        missing = np.arange(n) < n // 2
        transition = kalman_gaps.transition_form(0.5 * np.eye(n))
        for _ in range(2):
            kalman_gaps.block_step(transition, Covariance(P + np.eye(n)), e, e, missing, 1.0, 1.0)
        assert len(called) == times


def test_steps_off_rest_know_the_distances_of_their_own_readings_and_find_those_of_others():
    data = panel()
    f, values = GraphLGSSM().fit(data), with_gaps(data.values)
    laws, _ = f.run(values, f.start())
    formed = DenseLaw(laws.mean, laws.covariance.matrix)
    for y in (values, data.values, values + 1e-6, np.where(np.isnan(values), np.nan, 0.3)):
        np.testing.assert_allclose(laws.mahalanobis(y), formed.mahalanobis(y), rtol=1e-9)
        np.testing.assert_allclose(laws[30:60].nll(y[30:60]), formed[30:60].nll(y[30:60]), rtol=1e-9)
    np.testing.assert_allclose(laws[41].covariance.matrix, formed.covariance.matrix[41], rtol=1e-12)


def test_rows_at_rest_beside_a_dead_sensor_are_those_of_the_textbook_and_know_nothing_of_later_ones():
    rows = panel("sparse", 12, 400)
    values, f = rows.values.copy(), GraphLGSSM().fit(rows)
    values[20:, 3] = np.nan
    laws, after = f.run(values, f.start())
    means, _ = textbook(f, values)
    np.testing.assert_allclose(laws.mean, means[:-1], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(after.mean, means[-1], rtol=0.0, atol=1e-12)
    for end in (150, 215, 399):
        other = values.copy()
        other[end:] = np.arange(12.0)  # the sensor is back
        np.testing.assert_array_equal(f.run(other, f.start())[0].mean[: end + 1], laws.mean[: end + 1])
