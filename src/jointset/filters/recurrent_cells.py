"""The recurrent cells of the learned graph filter, written once for NumPy (inference) and PyTorch (training).

Data are matrices (..., M, k), one row a time step or window, biases rows (..., 1, k): with a leading seed axis on all
of them the same lines train many filters at once. All cells have h = (1 - u) h + u h~ and the reset gate
applied to h before the recurrent product:

- pooled, the paper's equations: z = mean over nodes of GELU(S y w + b), one GRU state for the whole network;
- the same without a graph layer: the GRU sees the readings of all sensors themselves;
- node-wise, the filter behind the paper's tables: a graph GRU state for every node, weights shared by all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace
from jointset.storage import storable

FLOOR = 1e-4  # smallest variance of the diagonal
HASTINGS = np.float32(0.3275911 / np.sqrt(2.0))  # of the approximation of the error function in single precision
HASTINGS_TERMS = np.array([0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429], np.float32)


@storable
class PooledWeights(NamedTuple, Generic[Numbers]):
    """Graph layer, GRU with gates in the order reset, update, candidate, and the three heads side by side."""

    graph_weight: Numbers  # (1, h)
    graph_bias: Numbers  # (1, h)
    input_weight: Numbers  # (h, 3h)
    hidden_weight: Numbers  # (h, 3h)
    gate_bias: Numbers  # (1, 3h)
    head_weight: Numbers  # (h, N (2 + r)): N means, N diagonals, N r factors
    head_bias: Numbers  # (1, N (2 + r))


@storable
class VectorWeights(NamedTuple, Generic[Numbers]):
    """As `PooledWeights` without the graph layer."""

    input_weight: Numbers  # (N, 3h)
    hidden_weight: Numbers
    gate_bias: Numbers
    head_weight: Numbers
    head_bias: Numbers


@storable
class NodeWeights(NamedTuple, Generic[Numbers]):
    """Gates (reset, update) see [h, S h, y], the candidate sees [r h, S (r h), y]; heads serve every node."""

    gate_weight: Numbers  # (2h + 1, 2h)
    gate_bias: Numbers  # (1, 2h)
    candidate_weight: Numbers  # (2h + 1, h)
    candidate_bias: Numbers  # (1, h)
    head_weight: Numbers  # (h, 2 + r): mean, log diagonal, factors
    head_bias: Numbers  # (1, 2 + r)


def sigmoid(x: Numbers) -> Numbers:
    """Logistic function."""
    xp = namespace(x)
    if xp is not np:
        return xp.sigmoid(x)
    out = 0.5 * x
    xp.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


def gelu(x: Numbers) -> Numbers:
    """x Phi(x), to the precision of x."""
    xp = namespace(x)
    if xp is not np:
        return xp.nn.functional.gelu(x)
    if x.dtype == np.float32:
        return _gelu_single(x)
    from scipy.special import ndtr  # here, so that importing jointset stays fast

    half = ndtr(x)
    half *= x
    return half


def _gelu_single(x: Numbers) -> Numbers:
    """The same by a rational approximation of the error function (Hastings, off by 1.5e-7 at most), much faster."""
    size = np.abs(x)
    t = 1.0 / (1.0 + HASTINGS * size)
    tail = t * HASTINGS_TERMS[-1]
    for a in HASTINGS_TERMS[-2::-1]:
        tail += a
        tail *= t
    tail *= np.exp(-0.5 * x * x)  # 1 - Phi(|x|), twice
    return 0.5 * (x + size) - 0.5 * size * tail


def softplus(x: Numbers) -> Numbers:
    """log(1 + exp x), without overflow."""
    xp = namespace(x)
    return xp.logaddexp(x, 0.0) if xp is np else xp.nn.functional.softplus(x)


def pooled_gates(y: Numbers, shift: Numbers, w: PooledWeights[Numbers] | VectorWeights[Numbers]) -> Numbers:
    """Gate inputs (..., M, 3h) of readings (..., M, N); `shift` is S (N, N), or None for no graph."""
    if isinstance(w, VectorWeights):
        return y @ w.input_weight + w.gate_bias
    mixed = y if shift is None else y @ shift
    inner = mixed[..., None] * w.graph_weight[..., None, :]
    inner += w.graph_bias[..., None, :]
    return gelu(inner).mean(-2) @ w.input_weight + w.gate_bias


def pooled_step(gates: Numbers, h: Numbers, hidden_weight: Numbers) -> Numbers:
    """Next state (..., M, h) from gate inputs (..., M, 3h)."""
    n = h.shape[-1]
    inner = h @ hidden_weight[..., : 2 * n]
    inner += gates[..., : 2 * n]
    both = sigmoid(inner)
    inner = (both[..., :n] * h) @ hidden_weight[..., 2 * n :]
    inner += gates[..., 2 * n :]
    return h + both[..., n:] * (namespace(h).tanh(inner) - h)


def pooled_heads(
    h: Numbers, w: PooledWeights[Numbers] | VectorWeights[Numbers], n: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Mean (..., M, N), diagonal (..., M, N), factor (..., M, N, r) of states (..., M, h)."""
    out = h @ w.head_weight + w.head_bias
    factor = out[..., 2 * n :]
    rank = factor.shape[-1] // n
    return out[..., :n], softplus(out[..., n : 2 * n]) + FLOOR, factor.reshape(*factor.shape[:-1], n, rank)


def node_step(y: Numbers, h: Numbers, spread: Callable[[Numbers], Numbers], w: NodeWeights[Numbers]) -> Numbers:
    """Next states (..., M, h) of M nodes (windows times nodes) from readings (..., M, 1); `spread` is x -> S x."""
    n = h.shape[-1]
    gates = h @ w.gate_weight[..., :n, :] + spread(h) @ w.gate_weight[..., n : 2 * n, :]
    both = sigmoid(gates + y * w.gate_weight[..., 2 * n :, :] + w.gate_bias)
    kept = both[..., :n] * h
    inner = kept @ w.candidate_weight[..., :n, :] + spread(kept) @ w.candidate_weight[..., n : 2 * n, :]
    candidate = namespace(h).tanh(inner + y * w.candidate_weight[..., 2 * n :, :] + w.candidate_bias)
    return h + both[..., n:] * (candidate - h)


def node_heads(h: Numbers, w: NodeWeights[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """Mean (..., M), diagonal (..., M), factor (..., M, r) of node states (..., M, h)."""
    xp = namespace(h)
    out = h @ w.head_weight + w.head_bias
    log_floor = float(np.log(FLOOR))
    log_diagonal = xp.maximum(out[..., 1], log_floor) if xp is np else xp.clamp(out[..., 1], min=log_floor)
    return out[..., 0], xp.exp(log_diagonal), out[..., 2:]
