"""What the engine needs to train the learned filter: initial weights and the likelihood of windows."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from jointset.contracts import Array
from jointset.filters import recurrent_cells as cells
from jointset.filters.initial import glorot, orthogonal
from jointset.filters.likelihood import low_rank_nll
from jointset.filters.recurrence import fused, node_states, pooled_states
from jointset.filters.recurrent_cells import NodeWeights, PooledWeights, VectorWeights
from jointset.filters.training import last_seen


class _Model:
    """Sizes and graph; `shift` is S (N, N), or None where every node sees itself only."""

    def __init__(self, n: int, rank: int, width: int, shift: Array | None) -> None:
        self.n, self.rank, self.width, self.shift = n, rank, width, shift
        self._placed: dict[tuple[torch.device, torch.dtype], torch.Tensor] = {}

    def identity(self) -> str:
        """Kind of cell and graph."""
        graph = b"" if self.shift is None else np.ascontiguousarray(self.shift).tobytes()
        return f"{type(self).__name__} {hashlib.sha256(graph).hexdigest()}"

    def zero_state(self, seeds: int, batch: int) -> torch.Tensor:
        """Hidden state before the first row (S, B, h)."""
        return torch.zeros(seeds, batch, self.width)

    def loss(
        self, weights: object, windows: torch.Tensor, state: torch.Tensor, skip: int, gaps: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Likelihood of the readings after the first, summed over the window and averaged over the batch (S,).

        Missing readings are left out of the likelihood; as inputs they are their predicted mean, as in later rows.
        """
        windows = windows.transpose(1, 2)  # (S, window + 1, B, N): time leads, for the recursion
        filled, seen = windows, None
        if gaps:
            missing = torch.isnan(windows)
            filled, seen = self._filled(weights, windows, missing, state), (~missing[:, 1:]).to(windows.dtype)
        mean, diagonal, factor, after = self.laws(weights, filled[:, :-1], state)
        nll = low_rank_nll(filled[:, 1:] - mean, diagonal, factor, seen)  # (S, window, B)
        return nll[:, skip:].sum(1).mean(-1), after

    def _filled(
        self, weights: object, windows: torch.Tensor, missing: torch.Tensor, state: torch.Tensor
    ) -> torch.Tensor:
        """Windows (S, window + 1, B, N) with gaps at their predicted mean.

        That is the mean after last readings in place of gaps: means after means would go step by step.
        """
        filled = last_seen(windows, 1)
        with torch.no_grad():
            mean = self.laws(weights, filled[:, :-1], state)[0]
        return torch.cat([filled[:, :1], torch.where(missing[:, 1:], mean, filled[:, 1:])], dim=1)

    def laws(self, weights: Any, inputs: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Mean, diagonal, factor of the readings that follow inputs (S, T, B, N), and the state after them."""
        raise TypeError("laws belongs to the pooled and the node-wise model")

    def _shift(self, like: torch.Tensor) -> torch.Tensor | None:
        """The shift where the data is, copied there once."""
        key = (like.device, like.dtype)
        if self.shift is not None and key not in self._placed:
            self._placed[key] = torch.as_tensor(self.shift, dtype=like.dtype, device=like.device)
        return self._placed.get(key)


class PooledModel(_Model):
    """The paper's filter: 64 + 6240 + head parameters at width 32."""

    def initial(self, rng: np.random.Generator) -> PooledWeights:
        """Glorot for input and head products, orthogonal for recurrent ones, update bias 1, other biases 0."""
        h, out = self.width, self.n * (2 + self.rank)
        bias = np.zeros((1, 3 * h))
        bias[:, h : 2 * h] = 1.0
        heads = [glorot(rng, h, self.n), glorot(rng, h, self.n), glorot(rng, h, self.n * self.rank)]
        return PooledWeights(
            graph_weight=glorot(rng, 1, h),
            graph_bias=np.zeros((1, h)),
            input_weight=np.concatenate([glorot(rng, h, h) for _ in range(3)], axis=1),
            hidden_weight=np.concatenate([orthogonal(rng, h) for _ in range(3)], axis=1),
            gate_bias=bias,
            head_weight=np.concatenate(heads, axis=1),
            head_bias=np.zeros((1, out)),
        )

    def laws(self, weights: Any, inputs: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Graph layer and heads for all steps at once; only the recurrence goes step by step, always from zero."""
        S, T, B, N = inputs.shape
        gates = pooled_gates(inputs.reshape(S, T * B, N), self._shift(inputs), weights)
        states = pooled_states(gates.reshape(S, T, B, -1), weights.hidden_weight)
        mean, diagonal, factor = cells.pooled_heads(states.reshape(S, T * B, -1), weights, N)
        shape = (S, T, B, N)
        return mean.reshape(shape), diagonal.reshape(shape), factor.reshape(*shape, self.rank), states[:, -1]


class VectorModel(PooledModel):
    """A GRU on the readings of all sensors, without a graph."""

    def initial(self, rng: np.random.Generator) -> Any:
        """As the pooled filter."""
        drawn = super().initial(rng)
        inputs = np.concatenate([glorot(rng, self.n, self.width) for _ in range(3)], axis=1)
        return VectorWeights(inputs, drawn.hidden_weight, drawn.gate_bias, drawn.head_weight, drawn.head_bias)


class NodeModel(_Model):
    """The node-wise graph GRU: the number of parameters does not depend on the number of sensors."""

    def initial(self, rng: np.random.Generator) -> NodeWeights:
        """Glorot products, update bias 1, other biases 0."""
        h = self.width
        bias = np.zeros((1, 2 * h))
        bias[:, h:] = 1.0
        return NodeWeights(
            gate_weight=glorot(rng, 2 * h + 1, 2 * h),
            gate_bias=bias,
            candidate_weight=glorot(rng, 2 * h + 1, h),
            candidate_bias=np.zeros((1, h)),
            head_weight=glorot(rng, h, 2 + self.rank),
            head_bias=np.zeros((1, 2 + self.rank)),
        )

    def zero_state(self, seeds: int, batch: int) -> torch.Tensor:
        """Hidden states of all nodes before the first row (S, B N, h)."""
        return torch.zeros(seeds, batch * self.n, self.width)

    def laws(self, weights: NodeWeights, inputs: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Node states step by step, heads for all steps at once."""
        S, T, B, N = inputs.shape
        readings = inputs.transpose(0, 1).reshape(T, S, B * N, 1)
        states = node_states(readings, state, self._shift(inputs), weights)
        mean, diagonal, factor = cells.node_heads(states.transpose(0, 1).reshape(S, T * B * N, -1), weights)
        shape = (S, T, B, N)
        return mean.reshape(shape), diagonal.reshape(shape), factor.reshape(*shape, self.rank), states[-1]


def pooled_gates(y: torch.Tensor, shift: torch.Tensor | None, w: PooledWeights | VectorWeights) -> torch.Tensor:
    """Gate inputs as in `cells`, through the fused kernel on a GPU."""
    if isinstance(w, VectorWeights) or not fused(y, w.graph_weight.shape[-1]):
        return cells.pooled_gates(y, shift, w)
    from jointset.filters.kernels import GraphFeatures

    features = GraphFeatures.apply(y if shift is None else y @ shift, w.graph_weight, w.graph_bias)
    return features @ w.input_weight + w.gate_bias
