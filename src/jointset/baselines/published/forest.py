"""Quantile regression forest on the last w scores: trees choose which past steps resemble the present one.

Weight of past pair i for a query x: mean over trees of c_i 1{same leaf} / (sum of c in that leaf), with c_i the copies
of the pair in the bootstrap sample of the tree. A conditional quantile is the quantile of the past targets under these
weights (Meinshausen, "Quantile regression forests", JMLR 2006).

Trees are grown by scikit-learn (10 of depth 2) and kept as arrays of complete binary trees. Growing is the slow part:
trees are grown anew every `refit` steps only, while the pairs in their leaves slide with every step, so each quantile
is taken from the very scores a forest grown at that step would hold; a new pair has Poisson(1) copies in every tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointset.baselines.published.windows import BINS, levels, shortest
from jointset.contracts import Array
from jointset.storage import storable


@storable
class Forest(NamedTuple):
    """B complete binary trees of one depth: `feature` and `threshold` (B, 2^depth - 1); go right where x > threshold.

    `copies` (n + refit, B) says how often the bootstrap sample of a tree holds the pairs it grew on and the next ones.
    """

    feature: Array
    threshold: Array
    copies: Array
    block: int  # which stretch of `refit` steps it was grown for


def grow(
    features: Array, targets: Array, trees: int, depth: int, seed: tuple[int, ...], ahead: int, block: int
) -> Forest:
    """Bagged regression trees on features (n, w) and targets (n,), ready to take in `ahead` more pairs."""
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    n, inner = len(targets), 2**depth - 1
    feature, threshold = np.zeros((trees, inner), np.int32), np.full((trees, inner), np.inf)
    drawn = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(trees)]
    later = rng.poisson(1.0, (ahead, trees))  # online bagging (Oza and Russell, 2001)
    rows = features.astype(np.float32)
    for b, counts in enumerate(drawn):
        model = DecisionTreeRegressor(max_depth=depth, random_state=int(rng.integers(2**31 - 1)))
        model.fit(rows, targets, sample_weight=counts, check_input=False)
        feature[b], threshold[b] = _complete(model.tree_, inner)
    return Forest(feature, threshold, np.concatenate([np.stack(drawn, axis=1), later]).astype(np.uint8), block)


def _complete(tree: Any, inner: int) -> tuple[Array, Array]:
    """A scikit-learn tree as a complete one: node p has children 2 p + 1 and 2 p + 2, below a leaf all keep left."""
    feature, threshold = np.zeros(inner, np.int32), np.full(inner, np.inf)
    nodes = {0: 0}  # our node to scikit-learn's
    for place in range(inner):
        node = nodes.get(place, -1)
        if node < 0 or tree.children_left[node] < 0:
            continue
        feature[place], threshold[place] = tree.feature[node], tree.threshold[node]
        nodes[2 * place + 1], nodes[2 * place + 2] = tree.children_left[node], tree.children_right[node]
    return feature, threshold


def leaves(forest: Forest, features: Array) -> Array:
    """Number of the leaf (n, B) that every row of features (n, w) falls into."""
    trees, inner = forest.feature.shape
    rows = features.astype(np.float32)  # scikit-learn compares single-precision features with its thresholds
    place = np.zeros((len(rows), trees), np.intp)
    lines, every = np.arange(len(rows))[:, None], np.arange(trees)
    for _ in range((inner + 1).bit_length() - 1):
        right = rows[lines, forest.feature[every, place]] > forest.threshold[every, place]
        place = 2 * place + 1 + right
    return (place - inner).astype(np.uint8)


def weighted_quantiles(ordered: Array, weights: Array, q: Array) -> Array:
    """Quantiles of ascending values (n,) under weights (n,) that may be zero; q = 0 and 1 are the extremes with weight.

    Value i stands at the middle of its weight, (w_1 + .. + w_i) - w_i / 2, and quantiles between are interpolated.

    >>> weighted_quantiles(np.array([1.0, 2.0, 9.0]), np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 1.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    kept = np.flatnonzero(weights)
    w = weights[kept]
    total = np.cumsum(w)
    return np.interp(np.asarray(q) * total[-1], total - 0.5 * w, ordered[kept])


def forest_weights(query: Array, pool: Array, copies: Array, valid: Array) -> Array:
    """Weights (k, n) of pairs with leaves and copies (n, B) for queries with leaves (k, B); zero where not `valid`."""
    weights = np.zeros(valid.shape)
    for b in range(pool.shape[1]):
        same = ((pool[:, b] == query[:, b, None]) & valid) * copies[:, b].astype(float)
        weights += same / np.maximum(same.sum(axis=1), 1.0)[:, None]
    empty = ~weights.any(axis=1)
    weights[empty] = valid[empty]  # a query alone in all its leaves: every pair counts the same
    return weights


@storable
class ForestState(NamedTuple):
    """The last n scores, the number of scores seen since the start, and the forest in use."""

    pool: Array
    step: int
    forest: Forest | None


class ForestSettings(NamedTuple):
    """Size of the forest and of its window; `refit` = 1 grows it at every step."""

    alpha: float
    window: int
    trees: int
    depth: int
    refit: int
    seed: int


def forest_intervals(
    state: ForestState, new: Array, settings: ForestSettings
) -> tuple[Array, Array, Array, ForestState]:
    """Shortest conditional intervals after 0, 1, .., T of the new scores (T,): lower, upper, number of beta, state."""
    n, w = len(state.pool), settings.window
    series = np.concatenate([state.pool, new])
    windows = np.lib.stride_tricks.sliding_window_view(series, w)
    low, high = np.empty((len(new) + 1, BINS)), np.empty((len(new) + 1, BINS))
    forest, j = state.forest, 0
    while j <= len(new):
        block = (state.step + j) // settings.refit
        if forest is None or forest.block != block:
            pairs, seed = slice(j, n + j - w), (settings.seed, block)
            size = settings.trees, settings.depth
            forest = grow(windows[pairs], series[w:][pairs], *size, seed, settings.refit, block)
        born = block * settings.refit - state.step
        stop = min(born + settings.refit, len(new) + 1, j + 64)
        low[j:stop], high[j:stop] = _stretch(forest, windows, series[w:], (j, stop, born), n, settings.alpha)
        j = stop
    lower, upper, best = shortest(low, high)
    return lower, upper, best, ForestState(series[len(new) :], state.step + len(new), forest)


def _stretch(
    forest: Forest, windows: Array, targets: Array, span: tuple[int, int, int], n: int, alpha: float
) -> tuple[Array, Array]:
    """Candidate ends (k, 5) of steps start .. stop - 1 with one forest, grown at step `born`.

    Pair i, of features windows[i] and target targets[i], is in the pool of step j if j <= i < n + j - w.
    """
    start, stop, born = span
    w = windows.shape[1]
    ids = leaves(forest, windows[start : n + stop - w])
    steps = np.arange(start, stop)
    place = start + np.argsort(targets[start : n + stop - 1 - w], kind="stable")
    valid = (place >= steps[:, None]) & (place < n - w + steps[:, None])
    weights = forest_weights(ids[steps + n - w - start], ids[place - start], forest.copies[place - born], valid)
    q = np.concatenate(levels(alpha, rounded=False))
    ends = np.array([weighted_quantiles(targets[place], row, q) for row in weights])
    return ends[:, :BINS], ends[:, BINS:]
