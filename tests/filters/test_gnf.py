"""The learned filter: near the oracle where it can be, honest about missing readings, ablations and bad input."""

import numpy as np
import pytest

pytest.importorskip("torch")

from jointset import GNF, GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.filters.gnf_training import NodeModel


@pytest.fixture(scope="module")
def network():
    return generate_grssf("A", n=30, seed=0, length=8000).panel


def per_sensor_nll(f, panel, start):
    laws, _ = f.run(panel.values, f.start())
    return laws[start:].nll(panel.values[start:]).mean() / panel.n_sensors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "n", "rows"), [({"steps": 150}, 30, 7200), ({"node": True, "steps": 60}, 10, 2200)]
)
def test_trained_filter_comes_close_to_the_oracle(network, options, n, rows):
    """Test NLL per sensor within 0.05 of the Kalman filter that knows the truth; node by node little data will do."""
    panel = network if n == 30 else generate_grssf("A", n=n, seed=0, length=rows + 800).panel
    oracle = per_sensor_nll(GraphLGSSM().fit(panel), panel, rows)
    learned = per_sensor_nll(GNF(**options).fit(panel[: rows - 100]), panel, rows)
    assert oracle - 1e-3 < learned < oracle + 0.05


@pytest.fixture(scope="module")
def small():
    return generate_grssf("B", n=8, seed=1, length=400).panel


@pytest.mark.parametrize("node", [False, True])
def test_ablations_are_arguments(small, node):
    full = GNF(node=node, steps=20).fit(small)
    assert full.law(full.start()).factor.shape == (8, 4)
    diagonal = GNF(node=node, rank=0, steps=20).fit(small)
    assert diagonal.law(diagonal.start()).factor.shape == (8, 0)
    alone = GNF(node=node, graph=False, rank=0, steps=20).fit(Panel(small.values, small.sensors))
    assert alone.shift is None


def test_node_wise_weights_do_not_grow_with_the_network(small):
    wide = generate_grssf("A", n=12, seed=0, length=100).panel
    a, b = GNF(node=True, steps=2).fit(small), GNF(node=True, steps=2).fit(wide)
    assert [w.shape for w in a.weights] == [w.shape for w in b.weights]


def test_without_a_graph_a_node_never_hears_of_another(small):
    f = GNF(node=True, graph=False, rank=0, steps=20).fit(small)
    changed = small.values.copy()
    changed[:, 1:] += 100.0
    a, b = (f.run(values, f.start())[0] for values in (small.values, changed))
    np.testing.assert_array_equal(a.mean[:, 0], b.mean[:, 0])


def test_with_a_graph_news_travels_one_hop_at_first(small):
    """A reading opens or closes its own gate, and neighbours average what that gate lets through."""
    f = GNF(node=True, steps=20).fit(small)
    i = int(np.argmax((small.adjacency > 0).sum(1)))
    changed = small.values.copy()
    changed[0, i] += 5.0
    a, b = (f.run(values[:2], f.start())[0].mean for values in (small.values, changed))
    near = (small.adjacency[i] > 0) | (np.arange(8) == i)
    np.testing.assert_array_equal(~np.isclose(a[1], b[1], atol=1e-12), near)


def test_several_seeds_at_once(small):
    filters = GNF(steps=30).fit(small, seeds=3)
    assert [f.seed for f in filters] == [0, 1, 2]
    alone = GNF(steps=30, seed=1).fit(small)
    np.testing.assert_allclose(filters[1].weights.head_weight, alone.weights.head_weight, rtol=1e-4, atol=1e-5)


def test_a_missing_input_is_replaced_by_its_prediction(small):
    f = GNF(node=True, steps=20).fit(small)
    state = f.start()
    y = small.values[0].copy()
    gap = y.copy()
    gap[2] = np.nan
    y[2] = f.law(state).mean[2]
    np.testing.assert_array_equal(f.step(state, gap).hidden, f.step(state, y).hidden)


def test_predictor_with_a_learned_filter_covers(network):
    predictor = JointPredictor(GNF(steps=30)).fit(network[:5600]).calibrate(network[6400:7200])
    assert 0.84 < predictor.run(network[7200:]).joint < 0.96


def test_the_variance_never_falls_below_its_floor(small):
    for node in (False, True):
        f = GNF(node=node, steps=20).fit(small)
        laws, _ = f.run(1e4 * small.values, f.start())
        assert laws.diagonal.min() >= 1e-4 * (1 - 1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: GNF().fit(Panel(p.values, p.sensors)), "no graph.*diag-gru"),
        (lambda p: GNF().fit(p[:20]), "20 training rows are fewer than one window"),
        (lambda p: GNF().start(), "call fit"),
        (lambda p: GNF(recipe="sharp"), "choose one of paper, fast$"),
        (lambda p: GNF(node=True, recipe="slow"), "choose one of paper, fast, sharp"),
        (lambda p: GNF(recipe="slow"), "choose one of paper, fast$"),
        (lambda p: GNF(seed=-1), "seed must be a whole number >= 0"),
        (lambda p: GNF(steps=0), "steps must be 1 or more"),
        (lambda p: GNF(steps=60).fit(p.with_values(1e30 * p.values)), "not finite from the first steps on"),
        (lambda p: GNF(rank=-1), "rank must be 0 or more"),
        (lambda p: GNF(width=0), "width must be 1 or more"),
        (lambda p: GNF(device="quantum").fit(p), "device"),
    ],
)
def test_bad_input(small, call, message):
    with pytest.raises(InputError, match=message):
        call(small)


def test_a_gru_on_all_sensors_tells_them_apart(small):
    """Swapping the readings of two sensors is invisible to a pooled state without a graph, not to this one."""
    panel = Panel(small.values, small.sensors)
    swapped = panel.values[:, [1, 0, *range(2, 8)]]
    for pool in (True, False):
        f = GNF(pool=pool, graph=False, rank=0, steps=5).fit(panel)
        a, b = (f.run(values, f.start())[0].mean for values in (panel.values, swapped))
        assert np.allclose(a, b, atol=1e-12) == pool


def test_a_gru_on_all_sensors_has_no_graph():
    with pytest.raises(InputError, match="pool=False is a GRU on the readings of all sensors"):
        GNF(pool=False)


def test_one_step_is_the_fewest():
    assert GNF(steps=1).steps == 1
    with pytest.raises(InputError, match="steps must be 1 or more, got 0"):
        GNF(steps=0)


def test_training_begins_with_gates_that_keep_the_state():
    w = NodeModel(5, 2, 8, None).initial(np.random.default_rng(0))
    np.testing.assert_array_equal(w.gate_bias, [[0.0] * 8 + [1.0] * 8])  # reset, then update
    assert not np.any(w.candidate_bias)
