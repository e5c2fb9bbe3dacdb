import networkx as nx
import numpy as np
import pytest
from sklearn.cluster import KMeans

from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.inputs.communities import components, k_means, louvain, spectral_groups
from jointset.regions import check_blocks

PLANTED = [8, 8, 7, 7]  # sizes of the communities of a GRSSF network of 30 sensors


def planted(inside=0.9, across=0.02, seed=0):
    """Adjacency of four clear communities, and their groups."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(range(4), PLANTED)
    upper = np.triu(rng.random((30, 30)) < np.where(labels[:, None] == labels, inside, across), 1)
    return (upper | upper.T).astype(float), tuple(tuple(np.flatnonzero(labels == c).tolist()) for c in range(4))


@pytest.mark.parametrize("groups_of", [louvain, spectral_groups])
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_clear_communities_are_found(groups_of, seed):
    adjacency, truth = planted()
    assert groups_of(adjacency, seed=seed) == truth


@pytest.mark.parametrize("seed", range(3))
def test_busy_and_quiet_sensors_of_a_community_are_one_group(seed):
    """Directions of the eigenvectors tell communities; their lengths tell how much a sensor is joined to."""
    truth = planted()[1]
    labels, size = np.repeat(range(4), PLANTED), np.random.default_rng(seed).lognormal(0.0, 1.5, 30)
    adjacency = np.outer(size, size) * np.where(labels[:, None] == labels, 1.0, 0.02)
    assert spectral_groups(adjacency) == truth


@pytest.mark.parametrize("groups_of", [louvain, spectral_groups, lambda a, seed: components(a)])
def test_groups_are_a_partition_in_order_and_repeatable(groups_of):
    adjacency = generate_grssf("A", n=30, length=20).panel.adjacency
    for seed in range(5):
        groups = groups_of(adjacency, seed=seed)
        check_blocks(groups, 30)
        assert [g[0] for g in groups] == sorted(min(g) for g in groups)
        assert all(list(g) == sorted(g) for g in groups)
        assert groups == groups_of(adjacency.copy(), seed=seed)


def test_louvain_beats_the_trivial_partition_and_follows_resolution():
    adjacency = planted(inside=0.6, across=0.1)[0]
    graph = nx.from_numpy_array(adjacency)
    found = louvain(adjacency)
    assert nx.community.modularity(graph, found) >= 0.99 * nx.community.modularity(graph, planted()[1])
    assert len(louvain(adjacency, resolution=3.0)) > len(found) > len(louvain(adjacency, resolution=0.1))


@pytest.mark.parametrize("groups_of", [louvain, spectral_groups, components])
def test_self_loops_and_direction_do_not_matter(groups_of):
    adjacency = planted(inside=0.5)[0]
    one_way = 2 * np.triu(adjacency)
    assert groups_of(one_way + 5 * np.eye(30)) == groups_of(adjacency)


def test_graphs_without_edges_and_small_graphs():
    alone = tuple((i,) for i in range(6))
    assert components(np.zeros((6, 6))) == louvain(np.zeros((6, 6))) == alone
    check_blocks(spectral_groups(np.zeros((6, 6))), 6)
    assert spectral_groups(np.ones((3, 3)), k=4) == ((0,), (1,), (2,))
    assert spectral_groups(planted()[0], k=1) == (tuple(range(30)),)


def test_no_group_is_empty_when_points_coincide():
    labels = k_means(np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0), 4, np.random.default_rng(0))
    assert len(set(labels)) == 2
    groups = spectral_groups(np.kron(np.eye(2), np.ones((5, 5))), k=4)
    assert all(groups)
    check_blocks(groups, 10)


def test_k_means_ends_at_a_fixed_point():
    rng = np.random.default_rng(5)
    points = np.concatenate([c + 0.1 * rng.standard_normal((20, 2)) for c in ([0, 0], [3, 0], [0, 3])])
    labels = k_means(points, 3, np.random.default_rng(1))
    centers = np.stack([points[labels == c].mean(axis=0) for c in range(3)])
    nearest = ((points[:, None] - centers) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(nearest, labels)
    assert [len(set(labels[i : i + 20])) for i in (0, 20, 40)] == [1, 1, 1]


def test_k_means_keeps_the_tightest_of_its_starts():
    points = np.random.default_rng(6).standard_normal((60, 3))

    def spread(labels):
        return sum(((points[labels == c] - points[labels == c].mean(axis=0)) ** 2).sum() for c in set(labels))

    ours = min(spread(k_means(points, 5, np.random.default_rng(seed), starts=20)) for seed in range(3))
    assert ours <= 1.01 * KMeans(5, n_init=60, random_state=0).fit(points).inertia_


def test_a_sensor_without_edges_is_a_part_of_its_own():
    adjacency = np.zeros((9, 9))
    adjacency[:4, :4] = adjacency[4:8, 4:8] = 1
    assert spectral_groups(adjacency, k=3) == ((0, 1, 2, 3), (4, 5, 6, 7), (8,))


def test_spectral_groups_do_not_hang_on_rounding_or_order():
    """More parts than groups: the bottom eigenvectors are not unique, the groups are."""
    sizes = [6, 4, 3, 2, 1, 1]
    label = np.repeat(range(6), sizes)
    weights = np.random.default_rng(7).uniform(0.2, 1.0, (17, 17))
    adjacency = np.where(label[:, None] == label, weights + weights.T, 0.0)
    groups = spectral_groups(adjacency, seed=3)
    assert spectral_groups(adjacency * 3.7, seed=3) == groups
    assert any(set(range(6)) <= set(group) for group in groups)  # no part is torn
    assert any(set(range(6, 10)) <= set(group) for group in groups)


def test_bad_options_are_refused():
    with pytest.raises(InputError, match="resolution"):
        louvain(np.eye(3), resolution=0)
    with pytest.raises(InputError, match="group"):
        spectral_groups(np.eye(3), k=0)
