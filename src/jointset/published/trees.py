"""Regression trees of one bootstrap forest: all splits of all features of a node at once.

The gain of a split is S^2 / (C (W - C)), with C the copies and S the sum of centred targets left of it, W the copies in
the node; up to a factor it is the drop of the sum of squares. Of equally good splits the first feature's lowest wins.
"""

from __future__ import annotations

import numpy as np

from jointset.contracts import Array

PURE = 1e-12  # a gain below this share of the node's mean square is rounding


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
    k, i = divmod(int(gain.argmax()), gain.shape[1])
    if gain[k, i] <= PURE * (copies @ (targets[rows] - mean) ** 2) / whole:
        return 0, np.inf
    low, high = float(values[k, i]), float(values[k, i + 1])
    return k, min(low + 0.5 * (high - low), np.nextafter(high, low))
