"""The shift of a large graph: its edges, with the same products as the matrix."""

import numpy as np
import pytest

from jointset import JointPredictor, Panel
from jointset import graph as graphs
from jointset.backbones.gpvar import GPVAR
from jointset.graph import normalized_shift
from jointset.inputs import jumps
from jointset.inputs.graph_edges import Edges, closed_neighbourhoods, edges_of
from jointset.inputs.shifts import kept_shift, operator, shift_of


@pytest.fixture
def graph():
    """A ring with weights, one direction of an edge heavier, a self loop and a sensor that is alone."""
    A = np.diag(np.linspace(0.5, 2.0, 29), 1) + np.diag(np.linspace(0.5, 1.0, 29), -1)
    A[3, 3] = 2.0
    A[-1] = A[:, -1] = 0.0
    return A


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(graphs, "MANY", 10)


def panel_of(graph, rows=400):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, 30)).cumsum(axis=0) * 0.1 + rng.normal(size=(rows, 30))
    return Panel(values, [f"s{i}" for i in range(30)], 300 * np.arange(rows), adjacency=graph, directed=True)


def test_edges_multiply_as_the_matrix_does(graph, many):
    kept, matrix = kept_shift(graph), normalized_shift(graph)
    assert isinstance(kept, Edges) and len(kept.weights) == np.count_nonzero(matrix)
    np.testing.assert_allclose(operator(kept).toarray(), matrix, rtol=1e-14)
    y = np.random.default_rng(1).normal(size=(4, 30))
    np.testing.assert_allclose(y @ operator(kept), y @ matrix, rtol=1e-12)
    assert isinstance(kept_shift(np.ones((30, 30))), np.ndarray)  # nearly all pairs: no list


def test_a_small_graph_is_a_matrix(graph):
    np.testing.assert_array_equal(kept_shift(graph), normalized_shift(graph))
    assert shift_of(Panel(np.zeros((3, 1)), ["a"])) is None


def test_the_graph_autoregression_is_the_same(graph, monkeypatch):
    panel = panel_of(graph)
    plain = GPVAR().fit(panel)
    monkeypatch.setattr(graphs, "MANY", 10)
    sparse = GPVAR().fit(panel)
    assert isinstance(sparse.model.shift, Edges)
    np.testing.assert_allclose(sparse.predict(panel.values), plain.predict(panel.values), rtol=1e-9)


def test_members_learn_the_same_and_are_read_back(graph, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from jointset import NodeNet

    panel = panel_of(graph)
    net = NodeNet(steps=3)
    plain = net.fit(panel[:300])
    monkeypatch.setattr(graphs, "MANY", 10)
    sparse = JointPredictor(net).fit(panel[:300]).calibrate(panel[300:])
    assert isinstance(sparse.filter.shift, Edges)
    alike = net.fit(panel[:300])
    for one, other in zip(plain.weights, alike.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    law, same = (one.run(panel.values[:20], one.start())[0] for one in (plain, alike))
    np.testing.assert_allclose(law.mean, same.mean, atol=1e-4)
    sparse.save(tmp_path / "model")
    loaded = JointPredictor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict().half_width, sparse.predict().half_width)


def test_neighbourhoods_are_those_of_the_matrix(graph):
    near = (graph != 0) | (graph.T != 0) | np.eye(30, dtype=bool)
    found = closed_neighbourhoods(edges_of(graph), 30)
    seen = []
    for i in range(30):
        if not any(np.array_equal(near[i], near[k]) for k in seen):
            seen.append(i)
    assert [i for i, _ in found] == seen
    assert all(np.array_equal(places, np.flatnonzero(near[i])) for i, places in found)


def test_sums_of_neighbourhoods_are_the_same_where_sensors_are_many(graph, monkeypatch):
    errors = np.random.default_rng(2).normal(size=(50, 30))
    errors[7, 4] = np.nan
    squares = np.linspace(1.0, 2.0, 30)
    around = jumps.Neighbourhoods(edges_of(graph), 30)
    expected = around.sums(errors, around.weights(None, squares[: len(around)]))
    monkeypatch.setattr(jumps, "DENSE", 10)
    around = jumps.Neighbourhoods(edges_of(graph), 30)
    weights = around.weights(None, squares[: len(around)])
    assert not isinstance(weights, np.ndarray)
    np.testing.assert_allclose(around.sums(errors, weights), expected, rtol=1e-12)
