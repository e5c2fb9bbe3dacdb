"""GRU backbone: one recurrent state for the whole vector of sensors, blind to the graph (Cho et al. 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace
from jointset.backbones.layers import dense
from jointset.backbones.learned import LearnedBackbone
from jointset.errors import require
from jointset.filters.initial import glorot, orthogonal
from jointset.filters.recurrent_cells import pooled_step
from jointset.storage import storable


@storable
class GRUWeights(NamedTuple, Generic[Numbers]):
    """Gates in the order reset, update, candidate, and the head."""

    input_weight: Numbers  # (N, 3h)
    hidden_weight: Numbers  # (h, 3h)
    gate_bias: Numbers  # (1, 3h)
    head_weight: Numbers  # (h, N)
    head_bias: Numbers  # (1, N)


@storable
@dataclass(frozen=True)
class GRUBackbone(LearnedBackbone):
    """m_t = y_{t-1} + sd * (W h_t + b), h_t the GRU state after the last `window` readings, from zero.

    3h (N + h + 1) + N (h + 1) parameters with h = `width`. Other settings as in `LearnedBackbone`.
    """

    width: int = 64
    window: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width >= 1 and self.window >= 2, f"width {self.width} or window {self.window} is too small")

    @property
    def lags(self) -> int:
        """The window."""
        return self.window

    def initial_weights(self, n: int, rng: np.random.Generator) -> GRUWeights:
        """Glorot input products, orthogonal recurrent ones, update bias -1 (long memory), zero head."""
        h = self.width
        bias = np.zeros((1, 3 * h))
        bias[:, h : 2 * h] = -1.0
        return GRUWeights(
            input_weight=np.concatenate([glorot(rng, n, h) for _ in range(3)], axis=1),
            hidden_weight=np.concatenate([orthogonal(rng, h) for _ in range(3)], axis=1),
            gate_bias=bias,
            head_weight=np.zeros((h, n)),
            head_bias=np.zeros((1, n)),
        )

    def changes(self, weights: GRUWeights[Numbers], z: Numbers, keep: int) -> Numbers:
        """Head of the last `keep` states."""
        gates = dense(z.swapaxes(-3, -2), weights.input_weight, weights.gate_bias)  # (seeds, L, B, 3h)
        states = _states(gates, weights.hidden_weight, keep)
        return dense(states, weights.head_weight, weights.head_bias).swapaxes(-3, -2)


def _states(gates: Any, hidden_weight: Any, keep: int) -> Any:
    """Last `keep` states (seeds, keep, B, h) of windows from zero, given gate inputs (seeds, L, B, 3h)."""
    if namespace(gates) is not np:
        from jointset.filters.recurrence import pooled_states

        return pooled_states(gates, hidden_weight)[:, -keep:]
    h = np.zeros((gates.shape[1], hidden_weight.shape[0]))
    states = []
    for gate in gates:
        h = pooled_step(gate, h, hidden_weight)
        states.append(h)
    return np.stack(states[-keep:])
