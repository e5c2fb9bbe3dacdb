"""MultiDimSPCI: an ellipsoidal annulus whose two radii follow the recent scores.

With S the covariance of the calibration residuals and e_t = (r_t' S^-1 r_t)^1/2 the set is {lower_t <= e <= upper_t},
the shortest of five intervals between a beta and a 1 - alpha + beta quantile of e_t given its past: from a quantile
forest on the last w scores (`forest`, the authors' method) or plainly from the last w scores (`empirical`). `network`
is the construction in the paper's text: S shrunk by 0.05 to a multiple of the identity, no inner radius, and the
outer radius from a network trained once on the pinball loss (Adam; two hidden layers of 128 with ReLU, softplus at the
end). It has 32 N inputs and is trained on the very residuals whose covariance scores them, with nothing held out, so on
short calibration blocks its radius is too small and coverage falls well below 1 - alpha. Torch is needed for training
only.

Reference: Xu, Jiang and Xie, "Conformal prediction for multi-dimensional time series by ellipsoidal sets", ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Unpack

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.partial import GapScale
from jointset.algebra.ties import settled
from jointset.contracts import Array
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.laws import DenseLaw
from jointset.published.filter import RowOptions, published
from jointset.published.forest import ForestSettings, ForestState, forest_intervals
from jointset.published.sets import Annulus
from jointset.published.shortest_intervals import sliding_intervals
from jointset.residuals.shrinkage import is_singular, ridge_of
from jointset.storage import storable
from jointset.support.cached import cached_property
from jointset.support.extras import require_extra
from jointset.support.how_far import each

LOCAL_SHARE = 0.95  # weight of the neighbours' covariance, the rest is the global one


def local_covariances(series: Array, m: int, neighbors: int, overall: Array) -> Array:
    """0.95 of the covariance of the residuals that resemble the present + 0.05 of the global one, (T + 1, N, N).

    Of residuals (m + 1 + T, N) the set after the first m + 1 + j looks at the last m: those whose predecessors are
    nearest to the very last residual, in Euclidean distance.
    """
    out = np.empty((len(series) - m, *overall.shape))
    for j in each(range(len(out))):
        before, after = series[j : j + m], series[j + 1 : j + m + 1]
        nearest = np.argsort(((before - series[j + m]) ** 2).sum(axis=1), kind="stable")[:neighbors]
        out[j] = LOCAL_SHARE * np.cov(after[nearest].T) + (1.0 - LOCAL_SHARE) * overall
    return out


def shrunk(covariance: Array, share: float) -> Array:
    """(1 - share) S + share sigma^2 I, with sigma^2 the mean variance."""
    n = len(covariance)
    return (1.0 - share) * covariance + share * np.trace(covariance) / n * np.eye(n)


def invertible(covariance: Array, name: str = "multidim-spci") -> tuple[Array, float]:
    """The covariance and the ridge that was added to its diagonal (with a warning): 0 unless it is singular.

    Duplicate sensors, or fewer residuals than sensors, need one: `jointset.residuals.shrinkage`.
    """
    covariance = np.atleast_2d(covariance)
    if not is_singular(covariance):
        return covariance, 0.0
    ridge = ridge_of(float(np.mean(np.diag(covariance))), name)
    return covariance + ridge * np.eye(len(covariance)), ridge


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
        for _ in each(range(epochs)):
            for rows in each(torch.randperm(len(X), generator=generator).split(BATCH)):
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


WINDOWS = {"forest": 10, "empirical": 100, "network": 32}
REFIT = 50
TREES, DEPTH = 10, 2
EACH = 10  # rows an input of the network below which it learns them by heart


@storable
@dataclass(frozen=True)
class Past:
    """What stays fixed after calibration: the covariance (N, N), and the ridge that made it invertible."""

    covariance: Array
    ridge: float = 0.0

    @cached_property
    def emitted(self) -> Covariance:
        """The covariance, factorised once."""
        return Covariance(self.covariance, lasting=True)


@storable
class MultiDimState(NamedTuple):
    """Fixed part, the state of the radii (a ForestState, a NetworkState or the last scores), and recent residuals.

    The residuals (m + 1, N) are kept where neighbours are looked for among them.
    """

    past: Past
    radii: ForestState | NetworkState | Array
    recent: Array | None


@storable
@dataclass(frozen=True)
class MultiDimRule:
    """Settings of MultiDimSPCI and its sets."""

    variant: str = "forest"
    alpha: float = 0.1
    window: int | None = None  # by default 10 (forest), 100 (empirical) or 32 (network)
    refit: int = REFIT  # the forest is grown anew every so many steps; 1 is the authors' way
    neighbors: int = 0  # local covariance from so many past residuals; 0 is the global one only
    shrinkage: float = 0.05  # of the covariance, variant "network" only
    epochs: int = 20  # of the network
    seed: int = 0

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        known = ", ".join(WINDOWS)
        require(self.variant in WINDOWS, f"multidim-spci: unknown variant {self.variant!r}, choose one of {known}")
        require(self.lags >= 1, f"multidim-spci: window must be at least 1, got {self.window}")
        require(self.refit >= 1, f"multidim-spci: refit must be at least 1, got {self.refit}")
        require(self.neighbors == 0 or self.neighbors >= 2, "multidim-spci: neighbors must be 0 or at least 2")

    @property
    def lags(self) -> int:
        """Length of the window."""
        return WINDOWS[self.variant] if self.window is None else self.window

    @property
    def needed(self) -> int:
        """A window of scores, and for the learned radii as many pairs as show the 1 - alpha quantile."""
        pairs = 0 if self.variant == "empirical" else int(np.ceil(2.0 / self.alpha))
        return max(self.lags + pairs, self.neighbors, 3)

    def shortfall(self, rows: int, n: int) -> str:
        """See `Cautious`."""
        inputs = n * self.lags if self.variant == "network" else 0
        if EACH * inputs <= rows:
            return ""
        return (
            f"a network of {inputs:,} inputs learns from {rows:,} rows and covers too little: add +auto, or more rows"
        )

    @property
    def forest(self) -> ForestSettings:
        """Settings of the forest."""
        return ForestSettings(self.alpha, self.lags, TREES, DEPTH, self.refit, self.seed)

    def start(self, residuals: Array) -> MultiDimState:
        """Covariance and radii from the calibration residuals (m, N)."""
        covariance = np.atleast_2d(np.cov(residuals.T))
        if self.variant == "network":
            covariance = shrunk(covariance, self.shrinkage)
        past = Past(*invertible(covariance))
        scores = np.sqrt(settled(past.emitted.distance(residuals)))
        radii: ForestState | NetworkState | Array = scores[-self.lags :]
        if self.variant == "forest":
            radii = ForestState(scores, 0, None)
        elif self.variant == "network":
            network = train(residuals, scores, self.lags, self.alpha, self.epochs, self.seed)
            radii = NetworkState(residuals[-self.lags :], network)
        before = np.zeros((1, residuals.shape[1]))  # nothing came before the first residual
        return MultiDimState(past, radii, np.concatenate([before, residuals]) if self.neighbors else None)

    def radii(self, state: MultiDimState, residuals: Array) -> tuple[tuple[Array, ...], MultiDimState]:
        """Inner and outer radii (T + 1,) on the root scale, and local covariances (T + 1, N, N) where asked for."""
        covariances, recent = None, None
        if state.recent is not None:
            series = np.concatenate([state.recent, residuals])
            covariances = local_covariances(series, len(state.recent) - 1, self.neighbors, state.past.covariance)
            recent = series[len(residuals) :]
        after: ForestState | NetworkState | Array
        if isinstance(state.radii, NetworkState):
            upper, after = network_radii(state.radii, residuals)
            lower = np.zeros_like(upper)
        else:
            emitted = state.past.emitted if covariances is None else Covariance(covariances[:-1])
            lower, upper, after = self._intervals(state.radii, np.sqrt(settled(emitted.distance(residuals))))
        parameters = (lower, upper) if covariances is None else (lower, upper, covariances)
        return parameters, MultiDimState(state.past, after, recent)

    def _intervals(self, radii: ForestState | Array, scores: Array) -> tuple[Array, Array, ForestState | Array]:
        if isinstance(radii, ForestState):
            lower, upper, _, after = forest_intervals(radii, scores, self.forest)
            return lower, upper, after
        lower, upper, _ = sliding_intervals(radii, scores, self.alpha)
        return lower, upper, np.concatenate([radii, scores])[len(scores) :]

    def shape(self, state: MultiDimState, parameters: tuple[Array, ...], mean: Array) -> Annulus:
        """Annuli around the means."""
        lower, upper, *local = parameters
        covariance = Covariance(local[0]) if local else state.past.emitted
        return Annulus(DenseLaw(mean, covariance), lower, upper, GapScale(1.0 - self.alpha))


def MultiDimSPCI(
    variant: str = "forest",
    *,
    alpha: float = 0.1,
    window: int | None = None,
    refit: int = REFIT,
    neighbors: int = 0,
    shrinkage: float = 0.05,
    epochs: int = 20,
    seed: int = 0,
    **row: Unpack[RowOptions],
) -> JointPredictor:
    """MultiDimSPCI (Xu, Jiang and Xie): `variant` is "forest" (the authors'), "empirical" or "network" (the text's).

    With `neighbors` the covariance is local: 0.95 of that of the recent residuals whose predecessors are nearest to
    the last one, and 0.05 of the global one; the authors take a tenth of the calibration rows. It holds one N x N
    matrix a step, so it is for small networks.

    >>> MultiDimSPCI("empirical").filter.rule.lags
    100
    """
    rule = MultiDimRule(variant, alpha, window, refit, neighbors, shrinkage, epochs, seed)
    name = "multidim-spci" if variant == "forest" else f"multidim-spci-{variant}"
    return published(rule, name, **row)
