"""STGNN backbone: dilated causal convolutions in time, graph convolutions in space (Graph WaveNet, Wu et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, Self

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace
from jointset.backbones.layers import across, dense, relu, softmax
from jointset.backbones.learned import CHUNK, LearnedBackbone
from jointset.contracts import Array
from jointset.errors import require
from jointset.filters.initial import glorot
from jointset.filters.recurrent_cells import sigmoid
from jointset.graph import normalized_shift
from jointset.panel import Panel
from jointset.storage import storable


@storable
class STGNNWeights(NamedTuple, Generic[Numbers]):
    """Input, K layers, head; all but the two embeddings are shared by the nodes. C is the width, G shifts and one."""

    input_weight: Numbers  # (1, C)
    input_bias: Numbers  # (1, C)
    past_weight: Numbers  # (K, C, 2C): filter and gate, of the reading d steps before
    now_weight: Numbers  # (K, C, 2C)
    gate_bias: Numbers  # (K, 1, 2C)
    node_weight: Numbers  # (K, C, G C): a node itself, then its neighbours in every graph
    skip_weight: Numbers  # (K, C, C)
    skip_bias: Numbers  # (1, C)
    inner_weight: Numbers  # (C, C)
    inner_bias: Numbers  # (1, C)
    head_weight: Numbers  # (C, 1)
    head_bias: Numbers  # (1, 1)
    source: Numbers  # E1 (N, e), e = 0 without an adaptive graph
    target: Numbers  # E2 (N, e)


@storable
@dataclass(frozen=True)
class STGNNBackbone(LearnedBackbone):
    """m_it = y_i,t-1 + sd_i * f(histories of node i and its neighbours), f the same for all nodes.

    Layer k with dilation d_k: g_t = tanh(x_{t-d} P + x_t Q + b) * sigmoid(same with other weights), then
    x_t += g_t W_0 + S g_t W_1 + A g_t W_2, S the normalised shift of the panel's graph and
    A = softmax(relu(E1 E2')) the adaptive adjacency, learned. The head sees the sum of what all layers add (skip
    connections). Without a graph the term in S is left out. No normalisation layers and no dropout: early stopping
    does that work.

    Parameters
    ----------
    batch
        Windows in a training step; by default 320 / N, between 4 and 16, for every node of a window is an example.
    width, dilations
        Channels of a node; steps back of each layer. A mean depends on 1 + sum(dilations) rows.
    graph, adaptive
        Use the panel's graph; columns of E1 and E2 (0: no adaptive adjacency, and the sensors may be permuted).
    """

    steps: int = 900
    batch: int | None = None
    rate: float = 5e-3
    width: int = 16
    dilations: tuple[int, ...] = (1, 2, 4, 4)
    graph: bool = True
    adaptive: int = 8
    shift: Array | None = None  # (N, N), set by fit

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width >= 1, f"width must be 1 or more, got {self.width}")
        require(self.adaptive >= 0, f"adaptive must be 0 or more columns, got {self.adaptive}")
        object.__setattr__(self, "dilations", tuple(self.dilations))
        require(
            len(self.dilations) > 0 and min(self.dilations) >= 1,
            f"dilations must be whole numbers >= 1, at least one, got {self.dilations}",
        )

    @property
    def lags(self) -> int:
        """1 + sum of the dilations: what the convolutions reach."""
        return 1 + sum(self.dilations)

    @property
    def window_rows(self) -> int:
        """Twice the lags: one pass of the convolutions gives the means of half of the rows."""
        return 2 * self.lags

    @property
    def window_skip(self) -> int:
        """All inputs before the first whole history."""
        return self.lags - 1

    def _prepared(self, panel: Panel) -> Self:
        shift = normalized_shift(panel.adjacency) if self.graph and panel.adjacency is not None else None
        return replace(super()._prepared(panel), shift=shift)

    def windows_of(self, n: int) -> int:
        """Windows in a training step for n sensors: `batch`, or what makes 320 series of nodes, from 4 to 16."""
        return self.batch or min(16, max(4, 320 // n))

    def initial_weights(self, n: int, rng: np.random.Generator) -> STGNNWeights:
        """Glorot products, biases and head zero, standard normal embeddings."""
        C, K = self.width, len(self.dilations)
        graphs = 1 + (self.shift is not None) + (self.adaptive > 0)
        return STGNNWeights(
            input_weight=glorot(rng, 1, C),
            input_bias=np.zeros((1, C)),
            past_weight=glorot(rng, K, C, 2 * C),
            now_weight=glorot(rng, K, C, 2 * C),
            gate_bias=np.zeros((K, 1, 2 * C)),
            node_weight=glorot(rng, K, C, graphs * C),
            skip_weight=glorot(rng, K, C, C),
            skip_bias=np.zeros((1, C)),
            inner_weight=glorot(rng, C, C),
            inner_bias=np.zeros((1, C)),
            head_weight=np.zeros((C, 1)),
            head_bias=np.zeros((1, 1)),
            source=rng.standard_normal((n, self.adaptive)),
            target=rng.standard_normal((n, self.adaptive)),
        )

    # ------------------------------------------------------------------ forward

    def changes(self, weights: STGNNWeights[Numbers], z: Numbers, keep: int) -> Numbers:
        """Convolutions without padding: `keep` means need `keep + lags - 1` rows."""
        w, C = weights, self.width
        require(z.shape[-2] - keep == self.lags - 1, f"{keep} means need {keep + self.lags - 1} rows")
        graphs = self._graphs(w)
        x = z.swapaxes(-3, -2).swapaxes(-2, -1)[..., None]  # (seeds, L, N, B, 1)
        x = dense(x, w.input_weight, w.input_bias)
        total = across(w.skip_bias, x)
        for k, d in enumerate(self.dilations):
            past, now = x[..., :-d, :, :, :], x[..., d:, :, :, :]
            inner = dense(now, w.now_weight[..., k, :, :], w.gate_bias[..., k, :, :])
            inner = inner + dense(past, w.past_weight[..., k, :, :])
            g = namespace(x).tanh(inner[..., :C]) * sigmoid(inner[..., C:])
            mixed = _convolve(g, w.node_weight[..., k, :, :], graphs)
            total = total + dense(mixed[..., -keep:, :, :, :], w.skip_weight[..., k, :, :])
            x = now + mixed
        hidden = relu(dense(relu(total), w.inner_weight, w.inner_bias))
        change = dense(hidden, w.head_weight, w.head_bias)[..., 0]  # (seeds, keep, N, B)
        return change.swapaxes(-2, -1).swapaxes(-3, -2)

    def _graphs(self, w: STGNNWeights[Numbers]) -> list[Numbers]:
        """Matrices (seeds, N, N) that mix the nodes."""
        graphs = [] if self.shift is None else [self._shift_beside(w.source)]
        if self.adaptive:
            graphs.append(softmax(relu(w.source @ w.target.swapaxes(-1, -2))))
        return graphs

    @cached_property
    def _placed(self) -> dict[Any, Any]:
        return {}

    def _shift_beside(self, weights: Any) -> Any:
        """The shift where the weights are, copied there once: a training step may be recorded on a device."""
        if namespace(weights) is np:
            return self.shift
        import torch

        key = weights.device, weights.dtype
        if key not in self._placed:
            self._placed[key] = torch.as_tensor(self.shift, dtype=weights.dtype, device=weights.device)
        return self._placed[key]

    def _means(self, filled: Array) -> Array:
        """The convolutions run through the rows: no window is computed twice but where two blocks meet."""
        z, reach = self._scaled(filled), self.lags - 1
        count = len(z) - reach
        size = max(1, CHUNK // (z.shape[1] * self.width * 2))
        blocks = [z[None, i : min(i + size, count) + reach] for i in range(0, count, size)]
        changes = [self.changes(self.weights, block, block.shape[1] - reach)[0] for block in blocks]
        return filled[reach:] + self.scale * np.concatenate(changes)


def _convolve(g: Numbers, weight: Numbers, graphs: list[Numbers]) -> Numbers:
    """g W_0 + sum_i S_i g W_i of node features (seeds, L, N, B, C), W side by side in (seeds, C, G C)."""
    C = weight.shape[-2]
    total = dense(g, weight[..., :C])
    flat = g.reshape(*g.shape[:-2], -1)
    for i, graph in enumerate(graphs, start=1):
        mixed = (graph[..., None, :, :] @ flat).reshape(g.shape)
        total = total + dense(mixed, weight[..., i * C : (i + 1) * C])
    return total
