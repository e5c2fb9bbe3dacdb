"""Radius network of the `network` variant of MultiDimSPCI: past residuals in, the 1 - alpha quantile of the score out.

Two hidden layers of 128 with ReLU and a softplus output, trained on the pinball loss with Adam. Torch is needed for
training only; the trained network is a tuple of arrays.

The network has 32 N inputs and is trained on the very residuals whose covariance scores them, with nothing held out, so
on short calibration blocks its radius is too small and coverage falls well below 1 - alpha.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.storage import storable
from jointset.support.extras import require_extra

HIDDEN = 128
RATE = 1e-3
BATCH = 64


@storable
class Network(NamedTuple):
    """Weights and offsets of three layers."""

    W1: Array
    b1: Array
    W2: Array
    b2: Array
    W3: Array
    b3: Array


@storable
class NetworkState(NamedTuple):
    """The last residuals (window, N) and the trained network."""

    recent: Array
    network: Network


def evaluate(network: Network, features: Array) -> Array:
    """Positive radii (T,) of features (T, d)."""
    hidden = np.maximum(features @ network.W1.T + network.b1, 0.0)
    hidden = np.maximum(hidden @ network.W2.T + network.b2, 0.0)
    return np.logaddexp(0.0, hidden @ network.W3[0] + network.b3[0])


def train(residuals: Array, scores: Array, window: int, alpha: float, epochs: int, seed: int) -> Network:
    """Fit the 1 - alpha quantile of scores (m,) given the `window` residuals (m, N) before each."""
    require_extra("torch", "training a network")
    import torch

    from jointset.filters.training import threads

    generator = torch.Generator().manual_seed(seed)
    X = torch.as_tensor(past_windows(residuals[:-1], window), dtype=torch.float32)
    y = torch.as_tensor(scores[window:].copy(), dtype=torch.float32)
    weights: list[torch.Tensor] = []
    for fan_in, fan_out in pairwise([X.shape[1], HIDDEN, HIDDEN, 1]):
        bound = fan_in**-0.5
        for shape in ((fan_out, fan_in), (fan_out,)):
            weights.append((bound * (2 * torch.rand(shape, generator=generator) - 1)).requires_grad_())
    optimiser = torch.optim.Adam(weights, lr=RATE)
    with threads(1):  # more cost time on a model this small
        for _ in range(epochs):
            for rows in torch.randperm(len(X), generator=generator).split(BATCH):
                optimiser.zero_grad()
                _pinball(weights, X[rows], y[rows], alpha).backward()
                optimiser.step()
    return Network(*(w.detach().double().numpy() for w in weights))


def _pinball(weights: list[Any], features: Any, scores: Any, alpha: float) -> Any:
    """Mean pinball loss at level 1 - alpha, as a tensor."""
    import torch

    hidden = torch.relu(features @ weights[0].T + weights[1])
    hidden = torch.relu(hidden @ weights[2].T + weights[3])
    gap = scores - torch.nn.functional.softplus(hidden @ weights[4][0] + weights[5][0])
    return torch.maximum((1.0 - alpha) * gap, -alpha * gap).mean()


def past_windows(residuals: Array, window: int) -> Array:
    """Every stretch of `window` consecutive residuals (T, N) as one row (T - window + 1, window N)."""
    views = np.lib.stride_tricks.sliding_window_view(residuals, window, axis=0)
    return views.reshape(len(views), -1).copy()


def network_radii(state: NetworkState, residuals: Array) -> tuple[Array, NetworkState]:
    """Radii (T + 1,) after 0, 1, .., T of the new residuals (T, N), and the state after the last."""
    window = len(state.recent)
    series = np.concatenate([state.recent, residuals])
    radii = evaluate(state.network, past_windows(series, window))
    return radii, NetworkState(series[len(residuals) :], state.network)
