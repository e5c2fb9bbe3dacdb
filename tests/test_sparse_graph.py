"""A graph may come as its edges (scipy.sparse): everything made of it is what the matrix of all pairs gives."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import coo_array, csr_array, csr_matrix

import jointset
from jointset import Panel, generate_grssf
from jointset import graph as graphs
from jointset.catalogue import TABLE
from jointset.errors import InputError
from jointset.inputs.adjacency import correlation_knn
from jointset.inputs.communities import components
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.graph_files import read_graph
from jointset.methods import predictor_for
from jointset.writing import write_edges

N, ROWS = 8, 700
GRAPHED = sorted({name for name, line in TABLE.items() if "graph" in line.needs} | {"kalman", "var"})


@pytest.fixture(scope="module")
def dense():
    """A ring with weights and a chord."""
    ring = np.diag(np.linspace(0.5, 1.0, N - 1), 1)
    ring[0, -1], ring[2, 6] = 0.25, 0.75
    return generate_grssf("B", n=N, seed=3, length=ROWS).panel.with_graph(ring + ring.T)


@pytest.fixture
def sparse(dense):
    return dense.with_graph(csr_array(dense.adjacency))


@pytest.fixture
def few(monkeypatch):
    """Five sensors are many."""
    monkeypatch.setattr(graphs, "MANY", 5)


def test_a_panel_keeps_it_and_nobody_can_change_it(dense, sparse):
    assert graphs.is_sparse(sparse.adjacency) and sparse != dense
    np.testing.assert_array_equal(sparse.adjacency.toarray(), dense.adjacency)
    with pytest.raises(ValueError, match="read-only"):
        sparse.adjacency.data[0] = 7.0
    assert sparse.describe() == dense.describe()
    assert sparse[:5].adjacency is not None and sparse == sparse.with_graph(coo_array(dense.adjacency))
    chosen = list(dense.sensors[::-2])
    np.testing.assert_array_equal(sparse.select(chosen).adjacency.toarray(), dense.select(chosen).adjacency)
    np.testing.assert_array_equal(edges_of(sparse.adjacency).ends, edges_of(dense.adjacency).ends)
    assert components(sparse.adjacency) == components(dense.adjacency)


def test_the_caller_may_change_what_was_given(dense):
    given = csr_array(dense.adjacency)
    panel = dense.with_graph(given)
    given.data[:] = 9.0
    np.testing.assert_array_equal(panel.adjacency.toarray(), dense.adjacency)


def test_faults_are_those_of_a_matrix(dense):
    for fault, words in ((np.nan, "not a finite"), (-1.0, "negative"), (5.0, "not symmetric")):
        A = np.array(dense.adjacency)
        i, j = np.argwhere(A)[0]
        A[i, j] = fault
        messages = []
        for given in (A, csr_matrix(A)):
            with pytest.raises(InputError, match=words) as caught:
                dense.with_graph(given)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    with pytest.raises(InputError, match="expected \\(8, 8\\)"):
        dense.with_graph(csr_array((3, 3)))
    one_way = np.triu(dense.adjacency)
    made = (dense.with_graph(given, symmetrize=True).adjacency for given in (one_way, csr_array(one_way)))
    np.testing.assert_array_equal(*map(graphs.dense, made))


def test_files_give_it_back(sparse, dense, few, tmp_path):
    assert Panel.read(sparse.to_npz(tmp_path / "panel.npz")) == sparse
    write_edges(sparse, tmp_path / "edges.csv")
    for file in ("panel.npz", "edges.csv"):
        found = read_graph(tmp_path / file, dense.sensors)
        assert graphs.is_sparse(found)
        np.testing.assert_allclose(found.toarray(), dense.adjacency, rtol=1e-6)


def test_edges_of_a_file_must_end_at_sensors(dense, tmp_path):
    wrong = {"no sensor": [[0, N]], "shape": [[0, 1, 2]]}
    for words, edges in wrong.items():
        np.savez(tmp_path / "graph.npz", edges=np.array(edges))
        with pytest.raises(InputError, match=words):
            read_graph(tmp_path / "graph.npz", dense.sensors)


def test_correlations_make_the_same_graph(dense, monkeypatch):
    for values in (
        dense.values,
        np.where(np.random.default_rng(0).random(dense.values.shape) < 0.2, np.nan, dense.values),
    ):
        whole = correlation_knn(values, k=3)
        with monkeypatch.context() as many:
            many.setattr(graphs, "MANY", 5)
            many.setattr("jointset.inputs.adjacency.BLOCK", 3)
            thin = correlation_knn(values, k=3)
        assert isinstance(whole, np.ndarray) and graphs.is_sparse(thin)
        np.testing.assert_allclose(thin.toarray(), whole, rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHED)
def test_every_method_that_needs_a_graph_takes_it(name, dense, sparse):
    runs = []
    for panel in (dense, sparse):
        predictor = predictor_for(f"{name}+aci").fit(panel[:300]).calibrate(panel[300:600])
        runs.append(predictor.run(panel[600:]))
    np.testing.assert_array_equal(runs[0].score, runs[1].score)
    np.testing.assert_array_equal(runs[0].radius, runs[1].radius)


def test_quick_and_its_file_take_it(dense, sparse, tmp_path):
    predictor = jointset.predictor("quick").fit(sparse[:300]).calibrate(sparse[300:600])
    plain = jointset.predictor("quick").fit(dense[:300]).calibrate(dense[300:600])
    predictor.save(tmp_path / "model")
    loaded = jointset.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.run(sparse[600:]).score, plain.run(dense[600:]).score)


def test_edges_that_are_none_are_refused(tmp_path):
    Panel(np.ones((2, 2)), ("a", "b")).to_npz(tmp_path / "panel.npz")
    pairs = np.array([[0, 1], [1, 0]])
    for edges, weights in ((np.array(3), np.ones(1)), (1.0 * pairs, np.ones(2)), (pairs, np.array(["1", "2"]))):
        np.savez(tmp_path / "graph.npz", edges=edges, weights=weights)
        with pytest.raises(InputError, match=r"graph.npz: .*(whole numbers|must be numbers)"):
            Panel.read(tmp_path / "panel.npz", graph=tmp_path / "graph.npz")


@pytest.mark.parametrize("kind", ["bsr_array", "coo_array", "dia_array", "lil_matrix"])
def test_a_file_of_readings_takes_any_kind_of_sparse_matrix(kind, tmp_path):
    Panel(np.ones((2, 2)), ("a", "b")).to_npz(tmp_path / "panel.npz")
    A = np.array([[0.0, 2.0], [2.0, 0.0]])
    found = Panel.read(tmp_path / "panel.npz", graph=getattr(scipy.sparse, kind)(A))
    np.testing.assert_array_equal(found.adjacency.toarray(), A)
