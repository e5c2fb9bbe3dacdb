"""The node-wise recurrence with its own backward pass is the cell over time, gradients included."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jointset.filters import recurrent_cells as cells  # noqa: E402
from jointset.filters.gnf_training import NodeModel  # noqa: E402
from jointset.filters.recurrence import node_states  # noqa: E402

SEEDS, WINDOWS, NODES, STEPS, WIDTH = 2, 3, 5, 7, 8


@pytest.mark.parametrize("graphs", [None, 1, SEEDS], ids=["no graph", "one graph", "a graph a seed"])
def test_states_and_gradients_are_those_of_the_cell(graphs):
    rng = np.random.default_rng(0)
    shift = None if graphs is None else torch.tensor(rng.random((graphs, NODES, NODES)))
    drawn = [NodeModel(NODES, 4, WIDTH, None).initial(rng) for _ in range(SEEDS)]
    w = cells.NodeWeights(*(torch.tensor(np.stack(x)).requires_grad_() for x in zip(*drawn, strict=True)))
    y = torch.tensor(rng.standard_normal((STEPS, SEEDS, WINDOWS * NODES, 1)))
    start = torch.tensor(rng.standard_normal((SEEDS, WINDOWS * NODES, WIDTH))).requires_grad_()
    weighting = torch.tensor(rng.standard_normal((STEPS, SEEDS, WINDOWS * NODES, WIDTH)))

    def spread(x):
        return x if shift is None else (shift[:, None] @ x.reshape(SEEDS, WINDOWS, NODES, -1)).reshape(x.shape)

    h, states = start, []
    for t in range(STEPS):
        h = cells.node_step(y[t], h, spread, w)
        states.append(h)
    expected, found = torch.stack(states), node_states(y, start, shift, w)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    trained = [*w[:4], start]  # the heads have no part in it
    gradients = (torch.autograd.grad((x * weighting).sum(), trained) for x in (expected, found))
    for wanted, made in zip(*gradients, strict=True):
        torch.testing.assert_close(made, wanted, rtol=1e-10, atol=1e-10)


def test_heads_are_the_same_in_numpy_and_in_torch_and_no_variance_is_below_the_floor():
    rng = np.random.default_rng(1)
    w = cells.NodeWeights(*(np.asarray(x) for x in NodeModel(NODES, 4, WIDTH, None).initial(rng)))
    h = 20.0 * rng.standard_normal((NODES, WIDTH))  # far out: some logs of variances lie below the floor
    found = cells.node_heads(h, w)
    in_torch = cells.node_heads(torch.tensor(h), cells.NodeWeights(*map(torch.tensor, w)))
    for one, other in zip(found, in_torch, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-12)
    logs = (h @ w.head_weight + w.head_bias)[..., 1]
    assert logs.min() < np.log(cells.FLOOR) < logs.max()
    np.testing.assert_allclose(found[1], np.maximum(np.exp(logs), cells.FLOOR), rtol=1e-12)
