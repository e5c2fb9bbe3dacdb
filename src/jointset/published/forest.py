"""Quantile regression forest on the last w scores: trees choose which past steps resemble the present one.

Weight of past pair i for a query x: mean over trees of c_i 1{same leaf} / (sum of c in that leaf), with c_i the copies
of the pair in the bootstrap sample of the tree. A conditional quantile is the quantile of the past targets under these
weights (Meinshausen, "Quantile regression forests", JMLR 2006).

The gain of a split is S^2 / (C (W - C)), with C the copies and S the sum of centred targets left of it, W the copies in
the node; up to a factor it is the drop of the sum of squares. Of equally good splits the first feature's lowest wins.

The trees (10 of depth 2, by least squares) are kept as arrays of complete binary trees. Growing is the slow part: trees
are grown anew every `refit` steps only, while the pairs in their leaves slide with every step, so each quantile is
taken from the very scores a forest grown at that step would hold; a new pair has Poisson(1) copies in every tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.published.shortest_intervals import BINS, levels, shortest
from jointset.storage import storable, storable_not_finite
from jointset.support.how_far import tell

PURE = 1e-12  # a gain below this share of the node's mean square is rounding
EQUAL = 1e-9  # gains that differ by less, as a share, do by rounding


def grown(rows: Array, targets: Array, copies: Array, depth: int) -> tuple[Array, Array]:
    """Feature and threshold (B, 2^depth - 1) of complete trees on rows (n, w), each with its copies (n, B) of them.

    Node p has children 2 p + 1 and 2 p + 2; a node without a split has threshold infinity, so that all keep left.
    """
    columns = np.ascontiguousarray(rows.T)
    order = np.argsort(columns, axis=1)
    trees = copies.shape[1]
    feature, threshold = np.zeros((trees, 2**depth - 1), np.int32), np.full((trees, 2**depth - 1), np.inf)
    for b, held in enumerate(np.ascontiguousarray(copies.T, float)):
        nodes = [_kept(order, held > 0.0)]  # the rows of every node in the order of each feature (w, m)
        for place in range(2**depth - 1):
            members = nodes[place]
            k, cut = feature[b, place], threshold[b, place] = _best(members, columns, targets, held)
            if 2 * place + 2 < 2**depth - 1:
                left = columns[k] <= cut
                nodes += [_kept(members, left), _kept(members, ~left)]
    return feature, threshold


def _kept(order: Array, keep: Array) -> Array:
    """The rows of each feature's order (w, m) that are kept, of which `keep` (n,) says which."""
    return order.take(np.flatnonzero(keep.take(order))).reshape(len(order), -1)


def _best(members: Array, columns: Array, targets: Array, held: Array) -> tuple[int, float]:
    """Feature and threshold of the best split of a node; 0 and infinity if there is none."""
    rows = members[0]
    if len(rows) < 2:
        return 0, np.inf
    copies = held[rows]
    whole = copies.sum()
    mean = copies @ targets[rows] / whole
    count = np.cumsum(held.take(members), axis=1)
    total = np.cumsum((held * (targets - mean)).take(members), axis=1)
    values = columns.take(members + np.arange(0, columns.size, columns.shape[1])[:, None])
    apart = values[:, 1:] > values[:, :-1]
    gain = total[:, :-1]
    gain *= gain
    gain /= count[:, :-1] * (whole - count[:, :-1])
    gain *= apart
    k, i = divmod(int((gain >= gain.max() * (1.0 - EQUAL)).argmax()), gain.shape[1])
    if gain[k, i] <= PURE * (copies @ (targets[rows] - mean) ** 2) / whole:
        return 0, np.inf
    low, high = float(values[k, i]), float(values[k, i + 1])
    return k, min(low + 0.5 * (high - low), np.nextafter(high, low))


@storable_not_finite("threshold")
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
    rng = np.random.default_rng(seed)
    n = len(targets)
    drawn = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(trees)], axis=1)
    later = rng.poisson(1.0, (ahead, trees))  # online bagging (Oza and Russell, 2001)
    feature, threshold = grown(features, targets, drawn, depth)
    return Forest(feature, threshold, np.concatenate([drawn, later]).astype(np.uint8), block)


def leaves(forest: Forest, features: Array) -> Array:
    """Number of the leaf (n, B) that every row of features (n, w) falls into."""
    columns = np.ascontiguousarray(features.T)
    right = columns[forest.feature] > forest.threshold[..., None]  # (B, 2^depth - 1, n)
    place, first = np.zeros((len(right), len(features)), np.uint8), 0
    while first < right.shape[1]:
        turn = [right[:, first + node] & (place == node) for node in range(first + 1)]
        place, first = 2 * place + np.logical_or.reduce(turn), 2 * first + 1
    return place.T


def weighted_quantiles(ordered: Array, weights: Array, q: Array) -> Array:
    """Quantiles of ascending values (n,) under weights (..., n), zero or not; q = 0 and 1 are the extremes with weight.

    Value i stands at the middle of its weight, (w_1 + .. + w_i) - w_i / 2, and quantiles between are interpolated.

    >>> weighted_quantiles(np.array([1.0, 2.0, 9.0]), np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 1.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    rows = weights.reshape(-1, weights.shape[-1])
    out = np.empty((len(rows), len(q)))
    for i, row in enumerate(rows):
        kept = np.flatnonzero(row > 0)
        w = row.take(kept)
        total = np.cumsum(w)
        out[i] = np.interp(q * total[-1], total - 0.5 * w, ordered.take(kept))
    return out.reshape(*weights.shape[:-1], len(q))


def forest_weights(query: Array, pool: Array, copies: Array, valid: Array) -> Array:
    """Weights (k, n) of pairs with leaves and copies (n, B) for queries with leaves (k, B); zero where not `valid`."""
    names = np.arange(1 + max(query.max(), pool.max()))[:, None]
    held = (pool.T[:, None] == names) * copies.T[:, None].astype(float)  # (B, leaves, n)
    sums = valid.astype(np.float32) @ held.reshape(-1, len(pool)).astype(np.float32).T  # whole numbers
    sums = np.maximum(sums.reshape(len(query), *held.shape[:2]), 1.0).astype(float)
    weights, shares = np.zeros(valid.shape), np.empty(valid.shape)
    for b, leaf in enumerate(query.T):
        own = sums[np.arange(len(leaf)), b, leaf]
        _, first, kind = np.unique(own * len(names) + leaf, return_index=True, return_inverse=True)
        part = held[b].take(leaf[first], axis=0, out=shares[: len(first)], mode="clip")
        part /= own[first, None]  # many queries have the same
        for row, i in zip(weights, kind.tolist(), strict=True):
            row += part[i]
    weights *= valid
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
        tell(j, len(new) + 1)
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
    ends = weighted_quantiles(targets[place], weights, q)
    return ends[:, :BINS], ends[:, BINS:]
