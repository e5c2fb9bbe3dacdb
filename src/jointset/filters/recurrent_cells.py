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
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.lowrank import namespace
from jointset.storage import storable

FLOOR = 1e-4  # smallest variance of the diagonal
HASTINGS = np.float32(0.3275911 / np.sqrt(2.0))  # of the approximation of the error function in single precision
HASTINGS_TERMS = np.array([0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429], np.float32)


@storable
class PooledWeights(NamedTuple):
    """Graph layer, GRU with gates in the order reset, update, candidate, and the three heads side by side."""

    graph_weight: Any  # (1, h)
    graph_bias: Any  # (1, h)
    input_weight: Any  # (h, 3h)
    hidden_weight: Any  # (h, 3h)
    gate_bias: Any  # (1, 3h)
    head_weight: Any  # (h, N (2 + r)): N means, N diagonals, N r factors
    head_bias: Any  # (1, N (2 + r))


@storable
class VectorWeights(NamedTuple):
    """As `PooledWeights` without the graph layer."""

    input_weight: Any  # (N, 3h)
    hidden_weight: Any
    gate_bias: Any
    head_weight: Any
    head_bias: Any


@storable
class NodeWeights(NamedTuple):
    """Gates (reset, update) see [h, S h, y], the candidate sees [r h, S (r h), y]; heads serve every node."""

    gate_weight: Any  # (2h + 1, 2h)
    gate_bias: Any  # (1, 2h)
    candidate_weight: Any  # (2h + 1, h)
    candidate_bias: Any  # (1, h)
    head_weight: Any  # (h, 2 + r): mean, log diagonal, factors
    head_bias: Any  # (1, 2 + r)


def sigmoid(x: Any) -> Any:
    """Logistic function."""
    xp = namespace(x)
    if xp is not np:
        return xp.sigmoid(x)
    out = 0.5 * x
    np.tanh(out, out=out)
    out *= 0.5
    out += 0.5
    return out


def gelu(x: Any) -> Any:
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


def _gelu_single(x: Any) -> Any:
    """The same by a rational approximation of the error function (Hastings, off by 1.5e-7 at most), much faster."""
    size = np.abs(x)
    t = 1.0 / (1.0 + HASTINGS * size)
    tail = t * HASTINGS_TERMS[-1]
    for a in HASTINGS_TERMS[-2::-1]:
        tail += a
        tail *= t
    tail *= np.exp(-0.5 * x * x)  # 1 - Phi(|x|), twice
    return 0.5 * (x + size) - 0.5 * size * tail


def softplus(x: Any) -> Any:
    """log(1 + exp x), without overflow."""
    xp = namespace(x)
    return np.logaddexp(x, 0.0) if xp is np else xp.nn.functional.softplus(x)


def pooled_gates(y: Any, shift: Any, w: PooledWeights | VectorWeights) -> Any:
    """Gate inputs (..., M, 3h) of readings (..., M, N); `shift` is S (N, N), or None for no graph."""
    if isinstance(w, VectorWeights):
        return y @ w.input_weight + w.gate_bias
    mixed = y if shift is None else y @ shift
    inner = mixed[..., None] * w.graph_weight[..., None, :]
    inner += w.graph_bias[..., None, :]
    return gelu(inner).mean(-2) @ w.input_weight + w.gate_bias


def pooled_step(gates: Any, h: Any, hidden_weight: Any) -> Any:
    """Next state (..., M, h) from gate inputs (..., M, 3h)."""
    n = h.shape[-1]
    inner = h @ hidden_weight[..., : 2 * n]
    inner += gates[..., : 2 * n]
    both = sigmoid(inner)
    inner = (both[..., :n] * h) @ hidden_weight[..., 2 * n :]
    inner += gates[..., 2 * n :]
    return h + both[..., n:] * (namespace(h).tanh(inner) - h)


def pooled_heads(h: Any, w: PooledWeights | VectorWeights, n: int) -> tuple[Any, Any, Any]:
    """Mean (..., M, N), diagonal (..., M, N), factor (..., M, N, r) of states (..., M, h)."""
    out = h @ w.head_weight + w.head_bias
    factor = out[..., 2 * n :]
    rank = factor.shape[-1] // n
    return out[..., :n], softplus(out[..., n : 2 * n]) + FLOOR, factor.reshape(*factor.shape[:-1], n, rank)


def node_step(y: Any, h: Any, spread: Callable[[Any], Any], w: NodeWeights) -> Any:
    """Next states (..., M, h) of M nodes (windows times nodes) from readings (..., M, 1); `spread` is x -> S x."""
    n = h.shape[-1]
    gates = h @ w.gate_weight[..., :n, :] + spread(h) @ w.gate_weight[..., n : 2 * n, :]
    both = sigmoid(gates + y * w.gate_weight[..., 2 * n :, :] + w.gate_bias)
    kept = both[..., :n] * h
    inner = kept @ w.candidate_weight[..., :n, :] + spread(kept) @ w.candidate_weight[..., n : 2 * n, :]
    candidate = namespace(h).tanh(inner + y * w.candidate_weight[..., 2 * n :, :] + w.candidate_bias)
    return h + both[..., n:] * (candidate - h)


def node_heads(h: Any, w: NodeWeights) -> tuple[Any, Any, Any]:
    """Mean (..., M), diagonal (..., M), factor (..., M, r) of node states (..., M, h)."""
    xp = namespace(h)
    out = h @ w.head_weight + w.head_bias
    log_floor = float(np.log(FLOOR))
    log_diagonal = np.maximum(out[..., 1], log_floor) if xp is np else out[..., 1].clamp(min=log_floor)
    return out[..., 0], xp.exp(log_diagonal), out[..., 2:]
