"""HopCPT: one interval a sensor from past residuals weighted by how much their contexts resemble the present one.

The interval runs from the alpha / 2 to the 1 - alpha / 2 quantile of the residuals in memory under the attention
weights (the deterministic `cdf` mode). The memory is the last m residuals and moves with every step; the attention is
trained once, at calibration. Each sensor has its own model and level alpha, so the box covers all sensors at once far
less often than 1 - alpha; `bonferroni=True` takes alpha / N a sensor instead.

The context of a step is the last w residuals of the sensor in units of their spread. An encoder h = relu(W c + b) and
two linear maps give query and key; a query attends to the memory with softmax(beta q' k_i), beta = d^-1/2. The maps are
trained so that the attended |residual| is near the one that came, in squared error. Torch is needed for training only;
sensors are trained side by side.

Reference: Auer, Gauch, Klotz and Hochreiter, "Conformal prediction for time series with modern Hopfield networks",
NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.published.filter import IntervalRule, RowOptions, published
from jointset.published.forest import weighted_quantiles
from jointset.storage import storable
from jointset.support.extras import require_extra
from jointset.support.how_far import each

HIDDEN, DIMENSION = 32, 16
RATE = 1e-3
BATCH, MEMORY = 64, 512  # queries and memory pairs drawn for one update
SIDE_BY_SIDE = 32  # sensors trained at once
CHUNK = 64  # steps attended at once


@storable
class Attention(NamedTuple):
    """Maps of N sensors: W (N, h, w), b (N, h), query and key (N, d, h); spread (N,) of the residuals."""

    W: Array
    b: Array
    query: Array
    key: Array
    spread: Array


def attention_weights(queries: Array, keys: Array, beta: float, valid: Array | None = None) -> Array:
    """softmax over the memory of beta q' k: (T, n) from queries (T, d) and keys (n, d); zero where not `valid`.

    >>> attention_weights(np.ones((1, 2)), np.array([[0.0, 1.0], [2.0, 3.0]]), beta=0.0).tolist()
    [[0.5, 0.5]]
    """
    weights = queries @ keys.T
    weights *= beta
    if valid is not None:
        np.copyto(weights, -np.inf, where=~valid)
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def encode(attention: Attention, sensor: int, contexts: Array) -> tuple[Array, Array]:
    """Queries and keys (n, d) of the contexts (n, w) of one sensor."""
    hidden = np.maximum(contexts / attention.spread[sensor] @ attention.W[sensor].T + attention.b[sensor], 0.0)
    return hidden @ attention.query[sensor].T, hidden @ attention.key[sensor].T


def train(residuals: Array, window: int, updates: int, seed: int) -> Attention:
    """Maps of all sensors from residuals (m, N), by AdamW."""
    require_extra("torch", "training an attention")
    from jointset.filters.training import threads

    spread = np.maximum(residuals.std(axis=0), 1e-12)
    scaled = residuals / spread
    groups = range(0, residuals.shape[1], SIDE_BY_SIDE)
    with threads(1):  # more cost time on models this small
        parts = [_train_group(scaled[:, g : g + SIDE_BY_SIDE], window, updates, (seed, g)) for g in each(groups)]
    W, b, query, key = (np.concatenate(maps) for maps in zip(*parts, strict=True))
    return Attention(W, b, query, key, spread)


def _train_group(scaled: Array, window: int, updates: int, seed: tuple[int, int]) -> list[Array]:
    """W, b, query, key of the sensors of one group, each its own model."""
    import torch

    rng = np.random.default_rng(seed)
    n = scaled.shape[1]
    pairs = len(scaled) - window
    views = np.lib.stride_tricks.sliding_window_view(scaled[:-1], window, axis=0)  # (pairs, n, w)
    contexts = torch.as_tensor(views.astype(np.float32, order="C"))
    sizes = torch.as_tensor(np.abs(scaled[window:]).astype(np.float32))

    def initial(*shape: int) -> Any:
        bound = shape[-1] ** -0.5
        return torch.as_tensor(rng.uniform(-bound, bound, shape), dtype=torch.float32).requires_grad_()

    W, b = initial(n, HIDDEN, window), torch.zeros(n, 1, HIDDEN, requires_grad=True)
    query, key = initial(n, DIMENSION, HIDDEN), initial(n, DIMENSION, HIDDEN)
    optimiser = torch.optim.AdamW([W, b, query, key], lr=RATE)
    asked = min(BATCH, max(pairs // 2, 1))
    for _ in each(range(updates)):
        drawn = torch.as_tensor(rng.permutation(pairs)[: asked + MEMORY])  # no query is in its own memory
        hidden = torch.relu(contexts.index_select(0, drawn).transpose(0, 1) @ W.mT + b)
        came = sizes.index_select(0, drawn).T
        ask, remember = hidden.split([asked, len(drawn) - asked], dim=1)
        logits = (ask @ query.mT * DIMENSION**-0.5) @ (remember @ key.mT).mT
        attended = torch.softmax(logits, dim=-1) @ came[:, asked:, None]
        loss = ((attended[..., 0] - came[:, :asked]) ** 2).mean(dim=1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [x.detach().double().numpy() for x in (W, b[:, 0], query, key)]


def attended_intervals(attention: Attention, sensor: int, series: Array, n: int, q: Array) -> Array:
    """Weighted residual quantiles (T + 1, len(q)) of one sensor, after 0, 1, .., T of the residuals beyond the first n.

    The memory of step j holds the pairs of the n residuals before it: pair i, with context series[i : i + w] and
    residual series[i + w], is in it if j <= i < n + j - w.
    """
    w = attention.W.shape[-1]
    queries, keys = encode(attention, sensor, np.lib.stride_tricks.sliding_window_view(series, w))
    targets = series[w:]
    out = np.empty((len(series) - n + 1, len(q)))
    for start in each(range(0, len(out), CHUNK)):
        steps = np.arange(start, min(start + CHUNK, len(out)))
        place = start + np.argsort(targets[start : n - w + steps[-1]], kind="stable")
        valid = (place >= steps[:, None]) & (place < n - w + steps[:, None])
        weights = attention_weights(queries[steps + n - w], keys[place], DIMENSION**-0.5, valid)
        out[steps] = weighted_quantiles(targets[place], weights, q)
    return out


@storable
class HopCPTState(NamedTuple):
    """The memory (m, N) of residuals and the trained attention."""

    memory: Array
    attention: Attention


@storable
@dataclass(frozen=True)
class HopCPTRule(IntervalRule):
    """Settings of HopCPT and its sets."""

    alpha: float = 0.1
    window: int = 64  # residuals in a context
    updates: int = 1000  # of the optimiser; the paper has 10,000, which cover less
    bonferroni: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        require(self.window >= 1, f"hopcpt: window must be at least 1, got {self.window}")
        require(self.updates >= 0, f"hopcpt: updates must be at least 0, got {self.updates}")

    @property
    def needed(self) -> int:
        """A context and as many pairs as show the outer quantiles."""
        return self.window + int(np.ceil(2.0 / self.alpha))

    def start(self, residuals: Array) -> HopCPTState:
        """Train on the calibration residuals (m, N), which are also the first memory."""
        return HopCPTState(residuals, train(residuals, self.window, self.updates, self.seed))

    def radii(self, state: HopCPTState, residuals: Array) -> tuple[tuple[Array, ...], HopCPTState]:
        """Lower and upper ends (T + 1, N) relative to the mean."""
        m, n = state.memory.shape
        alpha = self.each(n)
        q = np.array([0.5 * alpha, 1.0 - 0.5 * alpha])
        series = np.concatenate([state.memory, residuals])
        ends = np.stack([attended_intervals(state.attention, i, series[:, i], m, q) for i in each(range(n))], axis=1)
        return (ends[..., 0], ends[..., 1]), HopCPTState(series[len(residuals) :], state.attention)


def HopCPT(
    *,
    alpha: float = 0.1,
    window: int = 64,
    updates: int = 1000,
    bonferroni: bool = False,
    seed: int = 0,
    **row: Unpack[RowOptions],
) -> JointPredictor:
    """HopCPT (Auer et al.), a sensor at a time.

    The attention is trained for 1,000 updates, where the paper that compares it has 10,000 (`updates=10_000`). More of
    them fit the calibration residuals, which are the memory too, and lose coverage later: `docs/fidelity.md`.

    >>> HopCPT(window=8).filter.rule.needed
    28
    """
    rule = HopCPTRule(alpha, window, updates, bonferroni, seed)
    return published(rule, "hopcpt", **row)
