"""A trained filter taken through readings from other states: many copies in one batch, and its state map on tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.contracts import Array
from jointset.filters import recurrent_cells as cells
from jointset.laws import LowRankLaw

if TYPE_CHECKING:
    from jointset.filters.gnf import GNF, GNFState


def side_by_side(filter: GNF, h: Array, values: Array) -> Iterator[LowRankLaw]:
    """Laws (K, N) of K copies before each row of values (T, N): h (K, N, width) node-wise, (K, 1, width) pooled."""
    advance = _node_advance(filter) if filter.node else _pooled_advance(filter)
    for y in values:
        if filter.node:
            law = LowRankLaw(*cells.node_heads(h, filter.weights))
        else:
            law = LowRankLaw(*cells.pooled_heads(h[:, 0], filter.weights, filter.sensors))
        yield law
        h = advance(h, np.where(np.isnan(y), law.mean, y) if np.isnan(y).any() else y)


def _node_advance(filter: GNF) -> Callable[[Array, Array], Array]:
    mix: Any = filter.shift  # as a matrix for products from the left, sparse where that pays
    if mix is not None and np.count_nonzero(mix) <= 0.1 * mix.size:
        from scipy.sparse import csr_array  # here, so that importing jointset stays fast

        mix = csr_array(mix)

    def spread(x: Array) -> Array:
        if mix is None:
            return x
        nodes = np.moveaxis(x, 1, 0)
        return np.moveaxis((mix @ nodes.reshape(len(nodes), -1)).reshape(nodes.shape), 0, 1)

    return lambda h, y: cells.node_step(y[..., None], h, spread, filter.weights)


def _pooled_advance(filter: GNF) -> Callable[[Array, Array], Array]:
    def advance(h: Array, y: Array) -> Array:
        gates = cells.pooled_gates(np.atleast_2d(y), filter.shift, filter.weights)
        return cells.pooled_step(gates, h[:, 0], filter.weights.hidden_weight)[:, None]

    return advance


def state_map(filter: GNF, state: GNFState) -> tuple[Callable[[Any, Array], Any], Any]:
    """The hidden state after a reading, (h, y) -> h on flat tensors, and the one of `state`."""
    import torch

    def tensor(x: object) -> Any:
        return torch.from_numpy(np.array(x, dtype=float))

    weights = type(filter.weights)(*(tensor(part) for part in filter.weights))
    shift = None if filter.shift is None else tensor(filter.shift)
    shape = state.hidden.shape

    def learned(h: Any, y: Array) -> Any:
        hidden, seen, reading = h.reshape(shape), torch.as_tensor(~np.isnan(y)), tensor(np.nan_to_num(y))
        if filter.node:
            if not seen.all():
                reading = torch.where(seen, reading, cells.node_heads(hidden, weights)[0])
            spread = (lambda x: x) if shift is None else (lambda x: shift @ x)
            return cells.node_step(reading[:, None], hidden, spread, weights).reshape(-1)
        if not seen.all():
            reading = torch.where(seen, reading, cells.pooled_heads(hidden, weights, filter.sensors)[0][0])
        gates = cells.pooled_gates(reading[None], shift, weights)
        return cells.pooled_step(gates, hidden, weights.hidden_weight).reshape(-1)

    return learned, tensor(state.hidden).reshape(-1)
