import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointset.errors import InputError
from jointset.graph import normalized_shift
from jointset.inputs.adjacency import correlation, correlation_knn, haversine, haversine_kernel, road_kernel

OFF = ~np.eye(207, dtype=bool)


def series(rng, T=400, n=12):
    common = rng.standard_normal((T, 3)).cumsum(axis=0)
    return common @ rng.standard_normal((3, n)) + 2.0 * rng.standard_normal((T, n))


def with_gaps(values, rng, share):
    return np.where(rng.random(values.shape) < share, np.nan, values)


# ---------------------------------------------------------------------- kernels


@pytest.mark.parametrize(("name", "edges"), [("metr-la.npz", 1515), ("pems-bay-graph.npz", 2369)])
def test_road_kernel_gives_the_published_graphs(real_data, name, edges):
    """sigma is the sd of all finite distances, zeros on the diagonal included."""
    file = np.load(real_data(name))
    published, ours = file["adjacency"], road_kernel(file["distances"])
    off = ~np.eye(len(ours), dtype=bool)
    np.testing.assert_allclose(ours[off], published[off], atol=2e-6)
    assert np.count_nonzero(ours) == np.count_nonzero(published[off]) == edges
    assert (published.diagonal() == 1).all() and not ours.diagonal().any()


def test_metr_la_distances_and_weights_share_one_scale(real_data):
    file = np.load(real_data("metr-la.npz"))
    A, D = file["adjacency"].astype(float), file["distances"].astype(float)
    edges = (A > 0) & OFF
    scale = D[edges] / np.sqrt(-np.log(A[edges]))
    assert edges.sum() == 1515
    np.testing.assert_allclose(scale, D[np.isfinite(D)].std(), rtol=1e-4)


def test_road_kernel_follows_its_formula_and_threshold():
    D = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, np.inf], [1.0, 9.0, 0.0]])
    W = road_kernel(D, threshold=0.2, sigma=2.0)
    expected = np.exp(-(D**2) / 4.0)
    kept = (expected >= 0.2) & ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(W, np.where(kept, expected, 0.0))
    np.testing.assert_allclose(road_kernel(7.0 * D), road_kernel(D))  # the default scale follows the unit


def test_haversine_agrees_with_known_distances():
    places = {"Paris": (48.8566, 2.3522), "London": (51.5074, -0.1278), "Sydney": (-33.8688, 151.2093)}
    D = haversine([*places.values()])
    np.testing.assert_allclose(D[0, 1], 343.6, rtol=1e-3)
    np.testing.assert_allclose(D[1, 2], 16993.9, rtol=1e-3)
    np.testing.assert_allclose(D, D.T)


def test_haversine_kernel_joins_near_stations(real_data):
    places = np.load(real_data("aqi.npz"))["coordinates"]
    W, D = haversine_kernel(places), haversine(places)
    np.testing.assert_array_equal(W, W.T)
    assert D[W > 0].max() < D[(W == 0) & ~np.eye(12, dtype=bool)].min()  # a threshold on distance
    assert normalized_shift(W).shape == (12, 12)


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        (lambda: road_kernel(np.zeros((2, 3))), ["(2, 3)"]),
        (lambda: road_kernel([[0, np.nan], [1, 0]]), ["sensor 0", "sensor 1", "inf"]),
        (lambda: road_kernel([[0, -1], [1, 0]]), ["-1", "inf"]),
        (lambda: road_kernel(np.zeros((2, 2))), ["scale", "give sigma"]),
        (lambda: haversine([[116.4, 39.9]]), ["latitude, longitude"]),
        (lambda: haversine([[np.nan, 39.9]]), ["sensor 0"]),
        (lambda: correlation_knn(np.zeros((3, 2)), k=0), ["k = 0"]),
        (lambda: correlation_knn(np.zeros((3, 2)), tau=2), ["tau"]),
    ],
)
def test_bad_input_is_refused_in_one_line(call, facts):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert all(fact in message for fact in facts), message


# ---------------------------------------------------------------------- correlation


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_correlation_is_pandas_pairwise(share):
    rng = np.random.default_rng(0)
    values = 1e4 + with_gaps(series(rng), rng, share)
    np.testing.assert_allclose(correlation(values), pd.DataFrame(values).corr(), atol=1e-9)


def test_correlation_without_meaning_is_zero():
    rng = np.random.default_rng(1)
    values = series(rng, n=4)
    values[:, 1] = 0.1  # constant
    values[:200, 2], values[200:, 3] = np.nan, np.nan  # never seen together
    found = correlation(values)
    assert not found[1].any()
    assert found[2, 3] == 0
    assert found[0, 0] == pytest.approx(1)
    complete = values[:, :2]
    np.testing.assert_array_equal(correlation(complete)[1], 0)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 14), st.floats(0, 1))
def test_knn_keeps_the_strongest_and_no_other(seed, k, tau):
    values = series(np.random.default_rng(seed), T=60)
    strength = np.abs(np.corrcoef(values.T))
    np.fill_diagonal(strength, -1)
    rank = (strength[:, None, :] > strength[:, :, None]).sum(axis=-1)  # [i, j]: sensors closer to i than j is
    kept = np.where((rank < k) & (strength >= tau), strength, 0.0)
    np.testing.assert_allclose(correlation_knn(values, k, tau), (kept + kept.T) / 2, atol=1e-9)


def test_knn_follows_a_permutation_of_the_sensors():
    rng = np.random.default_rng(2)
    values = with_gaps(series(rng), rng, 0.1)
    order = rng.permutation(12)
    permuted = correlation_knn(values[:, order], k=3)
    np.testing.assert_allclose(permuted, correlation_knn(values, k=3)[np.ix_(order, order)], atol=1e-12)


def test_knn_does_not_depend_on_units():
    values = series(np.random.default_rng(3))
    moved = values * np.linspace(-5, 7, 12) + np.linspace(-100, 100, 12)
    np.testing.assert_allclose(correlation_knn(moved), correlation_knn(values), atol=1e-9)


def test_knn_of_a_block_structure_has_its_components():
    rng = np.random.default_rng(4)
    values = np.repeat(rng.standard_normal((500, 3)), 4, axis=1) + 0.3 * rng.standard_normal((500, 12))
    parts = nx.connected_components(nx.from_numpy_array(correlation_knn(values)))
    assert sorted(map(sorted, parts)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
