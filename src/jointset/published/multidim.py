"""MultiDimSPCI: an ellipsoidal annulus whose two radii follow the recent scores.

With S the covariance of the calibration residuals and e_t = (r_t' S^-1 r_t)^1/2 the set is {lower_t <= e <= upper_t},
the shortest of five intervals between a beta and a 1 - alpha + beta quantile of e_t given its past: from a quantile
forest on the last w scores (`forest`, the authors' method) or plainly from the last w scores (`empirical`). `network`
is the construction in the paper's text: S shrunk by 0.05 to a multiple of the identity, no inner radius, and the
outer radius from a network trained once on the pinball loss.

Reference: Xu, Jiang and Xie, "Conformal prediction for multi-dimensional time series by ellipsoidal sets", ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jointset.algebra.covariance import Covariance
from jointset.algebra.partial import GapScale
from jointset.algebra.ties import settled
from jointset.calibration.shared_level import AnyRule
from jointset.contracts import Array, MeanModel
from jointset.errors import require, require_alpha
from jointset.joint_predictor import JointPredictor
from jointset.laws import DenseLaw
from jointset.published.ellipsoids import invertible, local_covariances, shrunk
from jointset.published.filter import published
from jointset.published.forest import ForestSettings, ForestState, forest_intervals
from jointset.published.radius_network import NetworkState, network_radii, train
from jointset.published.sets import Annulus
from jointset.published.shortest_intervals import sliding_intervals
from jointset.storage import storable
from jointset.support.cached import cached_property

WINDOWS = {"forest": 10, "empirical": 100, "network": 32}
REFIT = 50
TREES, DEPTH = 10, 2


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
    radii: Any
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
        radii: Any = scores[-self.lags :]
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
        if self.variant == "network":
            upper, after = network_radii(state.radii, residuals)
            lower = np.zeros_like(upper)
        else:
            emitted = state.past.emitted if covariances is None else Covariance(covariances[:-1])
            lower, upper, after = self._intervals(state.radii, np.sqrt(settled(emitted.distance(residuals))))
        parameters = (lower, upper) if covariances is None else (lower, upper, covariances)
        return parameters, MultiDimState(state.past, after, recent)

    def _intervals(self, radii: Any, scores: Array) -> tuple[Array, Array, Any]:
        if self.variant == "forest":
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
    backbone: MeanModel | None = None,
    wrap: AnyRule | None = None,
    warmup: int = 50,
    standardize: bool = True,
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
    return published(rule, name, backbone, wrap=wrap, warmup=warmup, standardize=standardize)
