"""Trees lower the sum of squares as much as scikit-learn's; weights and quantiles are the literal ones."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from jointset.published.forest import forest_weights, grow, grown, leaves, weighted_quantiles

RNG = np.random.default_rng(0)
SERIES = {
    "normal": RNG.standard_normal(500),
    "heavy tails": RNG.standard_t(1.5, 500),
    "filled gaps": np.where(RNG.random(500) < 0.3, 0.125, RNG.standard_t(2.0, 500)),
    "rounded": np.round(RNG.standard_normal(500), 1),
    "single precision": np.repeat(RNG.standard_normal(250), 2) + 1e-9 * RNG.standard_normal(500),
    "large and shifted": 1e6 * RNG.standard_normal(500) + 1e8,
    "tiny": 1e-8 * RNG.standard_normal(500),
    "constant": np.full(500, 3.7),
    "one jump": np.r_[np.zeros(499), 1.0],
    "short": RNG.standard_t(1.5, 24),
}


def squares(targets, copies, groups):
    """Weighted sum of squares around the means of the groups."""
    total = 0.0
    for group in np.unique(groups):
        y, c = targets[groups == group], copies[groups == group]
        total += c @ (y - c @ y / max(c.sum(), 1.0)) ** 2
    return total


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", SERIES)
def test_trees_are_as_good_as_scikit_learns(name, depth):
    """Ties are broken in another way, below which a greedy tree can end a little better or worse."""
    series = SERIES[name]
    features, targets = np.lib.stride_tricks.sliding_window_view(series, 6)[:-1], series[6:]
    forest = grow(features, targets, 12, depth, (0,), 5, 0)
    ours, peer = [], []
    for b, copies in enumerate(forest.copies[:-5].T.astype(float)):
        model = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(features, targets, copies)
        ours.append(squares(targets, copies, leaves(forest, features)[:, b]))
        peer.append(squares(targets, copies, model.apply(features)))
    close = 1e-6 * squares(targets, np.ones(len(targets)), np.zeros(len(targets)))
    if depth == 1:  # the best split; scikit-learn's sees features in single precision
        assert np.all(np.array(ours) <= np.array(peer) + close)
    assert np.sum(ours) <= 1.02 * np.sum(peer) + close


@pytest.mark.parametrize("features", [np.zeros((30, 4)), np.tile(np.arange(30.0)[:, None] >= 29, (1, 4)).astype(float)])
def test_a_node_that_cannot_be_split_is_left_whole(features):
    flat = grow(features, np.full(30, 2.5), 5, 2, (0,), 1, 0)
    assert np.isinf(flat.threshold).all()
    assert (leaves(flat, features) == 0).all()


def test_rounding_does_not_choose_among_equally_good_splits():
    rng = np.random.default_rng(3)
    up = np.sort(rng.standard_normal(60))
    both = np.stack([-up, up], axis=1)  # the same splits, summed up from the other side
    for _ in range(50):
        targets = (up > 0.2) + 0.1 * rng.standard_normal(60)
        assert grown(both, targets, np.ones((60, 1)), 1)[0][0, 0] == 0


def test_a_step_is_found():
    x = np.linspace(0.0, 1.0, 200)[:, None]
    forest = grow(x, (x[:, 0] > 0.6).astype(float), 5, 1, (0,), 1, 0)
    assert np.all(np.abs(forest.threshold - 0.6) < 0.03)


def test_weights_and_quantiles_are_the_literal_ones():
    """The same bits as adding up the trees one by one, and as one query at a time."""
    rng = np.random.default_rng(4)
    pool, copies = rng.integers(0, 4, (400, 10)).astype(np.uint8), rng.poisson(1.0, (400, 10)).astype(np.uint8)
    query, valid = rng.integers(0, 4, (30, 10)).astype(np.uint8), rng.random((30, 400)) < 0.9
    plain = np.zeros(valid.shape)
    for b in range(10):
        same = ((pool[:, b] == query[:, b, None]) & valid) * copies[:, b].astype(float)
        plain += same / np.maximum(same.sum(axis=1), 1.0)[:, None]
    weights = forest_weights(query, pool, copies, valid)
    np.testing.assert_array_equal(weights, plain)
    ordered, q = np.sort(rng.standard_normal(400)), np.linspace(0.0, 1.0, 7)
    rows = [weighted_quantiles(ordered, row, q) for row in plain]
    np.testing.assert_array_equal(weighted_quantiles(ordered, weights, q), rows)
