"""Transformer backbone: a small causal encoder over the last readings, blind to the graph (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np

from jointset.algebra.lowrank import Numbers, namespace
from jointset.backbones.layers import dense, layer_norm, softmax
from jointset.backbones.learned import LearnedBackbone
from jointset.errors import require
from jointset.filters.initial import glorot
from jointset.filters.recurrent_cells import gelu
from jointset.storage import storable


@storable
class TransformerWeights(NamedTuple, Generic[Numbers]):
    """Embedding, K layers, head. Positions enter as one bias for every layer, head and lag."""

    embed_weight: Numbers  # (N, D)
    embed_bias: Numbers  # (1, D)
    lag_bias: Numbers  # (K, H, window)
    attention_weight: Numbers  # (K, D, 3D): queries, keys, values
    attention_out: Numbers  # (K, D, D)
    inner_weight: Numbers  # (K, D, 2D)
    inner_bias: Numbers  # (K, 1, 2D)
    outer_weight: Numbers  # (K, 2D, D)
    outer_bias: Numbers  # (K, 1, D)
    gains: Numbers  # (K, 2, D) of the two normalisations of a layer
    head_gain: Numbers  # (1, D)
    head_weight: Numbers  # (D, N)
    head_bias: Numbers  # (1, N)


@storable
@dataclass(frozen=True)
class TransformerBackbone(LearnedBackbone):
    """m_t = y_{t-1} + sd * (W x + b), x the encoding of y_{t-1} among the last `window` readings.

    A reading (all sensors) is one token. Layers normalise first (Xiong et al. 2020): x += attention(norm x),
    x += W2 GELU(W1 norm x). Attention looks at this and earlier readings only, with a learned bias for each lag
    (Shaw et al. 2018; Raffel et al. 2020). The weights decay by default: without it, means of METR-LA's 207 sensors
    are worse than persistence on later rows (chosen on a split of its training block). Other settings as in
    `LearnedBackbone`.
    """

    weight_decay: float = 1e-3
    width: int = 32
    heads: int = 2
    layers: int = 2
    window: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        require(min(self.heads, self.layers) >= 1, f"heads {self.heads} and layers {self.layers} must be 1 or more")
        require(self.window >= 2, f"window must be 2 or more, got {self.window}")
        require(self.width % self.heads == 0, f"width {self.width} does not divide into {self.heads} heads")

    @property
    def lags(self) -> int:
        """The window."""
        return self.window

    def initial_weights(self, n: int, rng: np.random.Generator) -> TransformerWeights:
        """Glorot products, biases and head zero, gains one."""
        D, K = self.width, self.layers
        return TransformerWeights(
            embed_weight=glorot(rng, n, D),
            embed_bias=np.zeros((1, D)),
            lag_bias=np.zeros((K, self.heads, self.window)),
            attention_weight=np.concatenate([glorot(rng, K, D, D) for _ in range(3)], axis=-1),
            attention_out=glorot(rng, K, D, D),
            inner_weight=glorot(rng, K, D, 2 * D),
            inner_bias=np.zeros((K, 1, 2 * D)),
            outer_weight=glorot(rng, K, 2 * D, D),
            outer_bias=np.zeros((K, 1, D)),
            gains=np.ones((K, 2, D)),
            head_gain=np.ones((1, D)),
            head_weight=np.zeros((D, n)),
            head_bias=np.zeros((1, n)),
        )

    def changes(self, weights: TransformerWeights[Numbers], z: Numbers, keep: int) -> Numbers:
        """Head of the last `keep` encodings."""
        w = weights
        x = dense(z, w.embed_weight, w.embed_bias)  # (seeds, B, L, D)
        for k in range(self.layers):
            last = k == self.layers - 1
            x = self._layer(x, w, k, keep if last else x.shape[-2])
        return dense(layer_norm(x, w.head_gain), w.head_weight, w.head_bias)

    def _layer(self, x: Numbers, w: TransformerWeights[Numbers], k: int, keep: int) -> Numbers:
        """Encodings of the last `keep` of the rows, from all of them."""
        normed = layer_norm(x, w.gains[..., k, :1, :])
        seen = self._attend(dense(normed, w.attention_weight[..., k, :, :]), w.lag_bias[..., k, :, :], keep)
        x = x[..., -keep:, :] + dense(seen, w.attention_out[..., k, :, :])
        inner = dense(layer_norm(x, w.gains[..., k, 1:, :]), w.inner_weight[..., k, :, :], w.inner_bias[..., k, :, :])
        return x + dense(gelu(inner), w.outer_weight[..., k, :, :], w.outer_bias[..., k, :, :])

    def _attend(self, projected: Numbers, lag_bias: Numbers, keep: int) -> Numbers:
        """softmax(Q K' / sqrt(d) + bias of the lag) V for every head, over this and earlier rows."""
        xp = namespace(projected)
        *lead, L, _ = projected.shape
        depth = self.width // self.heads
        split = projected.reshape(*lead, L, 3, self.heads, depth)
        query, key, value = (split[..., i, :, :].swapaxes(-3, -2) for i in range(3))  # (seeds, B, H, L, d)
        row = xp.arange(L, **({} if xp is np else {"device": projected.device}))
        lag = row[-keep:, None] - row
        bias = lag_bias[..., abs(lag)]  # (seeds, H, keep, L)
        scores = query[..., -keep:, :] @ key.swapaxes(-1, -2) / depth**0.5 + bias[..., None, :, :, :]
        weights = softmax(xp.where(lag < 0, -np.inf, scores))
        return (weights @ value).swapaxes(-3, -2).reshape(*lead, keep, self.width)
