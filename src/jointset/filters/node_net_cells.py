"""The network behind the learned members of the default method, written once for NumPy and PyTorch.

Every sensor has two gated recurrent states, one above the other, with weights shared by all sensors. The first reads
the sensor's last value and change, those of its neighbours on the graph, and the clock; the second reads the first, its
own and its neighbours'. The head sees the second state, its mean over the network and the time of the reading to come.
A member with identity has a short vector of its own for every sensor beside all that.

Data are (S, Q, N, k): a leading axis of members (or seeds), steps (times windows), sensors. Weights are (S, k, m).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace
from jointset.contracts import Array
from jointset.filters.kalman_tuning import forward_filled
from jointset.filters.recurrent_cells import gelu, pooled_step
from jointset.storage import storable

READ = 5  # numbers a sensor gives: value, change, both at its neighbours, whether it was read
IDENTITY = 8  # length of a sensor's own vector
FLOOR = 1e-3  # smallest scale
STEEPEST = 6.0  # largest log of a scale: beyond it lies overflow, not weather
MIN_TAIL = 2.1  # degrees of freedom stay above: the law has a variance


@storable
class NodeNetWeights(NamedTuple, Generic[Numbers]):
    """One member, or several with a leading axis."""

    read_weight: Numbers  # (READ, 3h), gates in the order reset, update, candidate
    read_clock: Numbers  # (C, 3h)
    read_identity: Numbers  # (IDENTITY, 3h)
    read_bias: Numbers  # (1, 3h)
    first_weight: Numbers  # (h, 3h), recurrent
    mix_weight: Numbers  # (2h, 3h): the first state, own and neighbours'
    mix_bias: Numbers  # (1, 3h)
    second_weight: Numbers  # (h, 3h), recurrent
    head_weight: Numbers  # (2h, h): the second state, own and of the network
    head_read: Numbers  # (READ, h)
    head_clock: Numbers  # (C, h)
    head_identity: Numbers  # (IDENTITY, h)
    head_bias: Numbers  # (1, h)
    out_weight: Numbers  # (h, 2 + r): correction of the mean, log scale, factors
    out_bias: Numbers  # (1, 2 + r)
    identity: Numbers  # (N, IDENTITY)
    tail: Numbers  # (1, 1), log of the degrees of freedom above MIN_TAIL


def times(x: Numbers, weight: Numbers) -> Numbers:
    """Product (S, Q, N, m) of data (S, Q, N, k) with weights (S, k, m).

    NumPy makes a product a step, so that one step alone has the same digits.
    """
    if isinstance(x, np.ndarray):
        return x @ weight[:, None]
    from jointset.filters.products import product

    S, Q, N, k = x.shape
    return product(x.reshape(S, Q * N, k), weight).reshape(S, Q, N, -1)


def once(x: Numbers, weight: Numbers) -> Numbers:
    """The same for data of the whole network, (S, Q, k)."""
    return (x[:, :, None] @ weight[:, None])[:, :, 0] if namespace(x) is np else x @ weight


def readings(values: Numbers, changes: Numbers, seen: Numbers, spread: Callable[[Numbers], Numbers]) -> Numbers:
    """What the sensors give (S, Q, N, READ), from values, changes and 1 or 0 for read or not (S, Q, N)."""
    xp = namespace(values)
    both = xp.stack([values, changes], -1)
    return xp.concatenate([both, spread(both), seen[..., None]], -1)


def own_inputs(w: NodeNetWeights[Numbers]) -> tuple[Numbers, Numbers]:
    """What the sensors' own vectors add to the gates of the first state (S, N, 3h) and to the head (S, N, h)."""
    return w.identity @ w.read_identity + w.read_bias, w.identity @ w.head_identity


def first_gates(read: Numbers, clock: Numbers, own: Numbers, w: NodeNetWeights[Numbers]) -> Numbers:
    """Gate inputs (S, Q, N, 3h) of the first state, of readings and the clock (S, Q, C) at them."""
    out = times(read, w.read_weight)
    out += own[:, None]
    out += once(clock, w.read_clock)[:, :, None]
    return out


def second_gates(first: Numbers, spread: Callable[[Numbers], Numbers], w: NodeNetWeights[Numbers]) -> Numbers:
    """Gate inputs of the second state, of first states (S, Q, N, h)."""
    h = first.shape[-1]
    mixed = times(first, w.mix_weight[..., :h, :])
    mixed += times(spread(first), w.mix_weight[..., h:, :])
    mixed += w.mix_bias[:, None]
    return mixed


def heads(
    second: Numbers, read: Numbers, clock: Numbers, own: Numbers, w: NodeNetWeights[Numbers]
) -> tuple[Numbers, Numbers, Numbers]:
    """Correction of the mean and scale (S, Q, N), factors (S, Q, N, r) in units of the scale.

    `clock` (S, Q, C) is that of the reading to come.
    """
    xp, h = namespace(second), second.shape[-1]
    network = once(second.mean(2), w.head_weight[..., h:, :]) + once(clock, w.head_clock) + w.head_bias  # (S, Q, h)
    inner = times(second, w.head_weight[..., :h, :])
    inner += times(read, w.head_read)
    inner += network[:, :, None]
    inner += own[:, None]
    out = times(gelu(inner), w.out_weight) + w.out_bias[:, None]
    steep = 3.0 * out[..., 1] - 1.0
    steep = xp.minimum(steep, STEEPEST) if xp is np else xp.clamp(steep, max=STEEPEST)
    return out[..., 0], xp.exp(steep) + FLOOR, out[..., 2:]


def degrees(w: NodeNetWeights[Numbers]) -> Numbers:
    """Degrees of freedom of the law (S,)."""
    return MIN_TAIL + namespace(w.tail).exp(w.tail[..., 0, 0])


def filled(values: Array, last: Array) -> tuple[Array, Array]:
    """Rows with the last reading of every sensor in its gaps, and 1 where there was a reading."""
    missing = np.isnan(values)
    if not missing.any():
        return values, np.ones(values.shape)
    return forward_filled(np.concatenate([last[None], values]))[1:], (~missing).astype(float)


def states(gates: Array, h: Array, recurrent: Array) -> Array:
    """States (M, T, N, h) of gate inputs (M, T, N, 3h) from a state (M, N, h)."""
    if gates.shape[1] == 1:
        return pooled_step(gates[:, 0], h, recurrent)[:, None]
    out = np.empty((*gates.shape[:-1], h.shape[-1]), h.dtype)
    for t in range(gates.shape[1]):
        h = pooled_step(gates[:, t], h, recurrent)
        out[:, t] = h
    return out
