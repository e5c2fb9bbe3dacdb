"""The graph polynomial VAR behind the one interface of the backbones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jointset.backbones.interface import Backbone, seed_list, training_mean
from jointset.baselines.gpvar import GPVAR, LAGS
from jointset.contracts import Array
from jointset.panel import Panel
from jointset.storage import storable


@storable
@dataclass(frozen=True)
class GPVARBackbone(Backbone):
    """y_t = sum_{k<2, l<2} theta_kl S^k y_{t-1-l} + c, ridge regression (`jointset.baselines.GPVAR`).

    Deterministic: all seeds give the same model, and a validation block is not used. Without a graph S is the
    identity. Five parameters for any number of sensors.
    """

    ridge: float = 1e-2
    model: GPVAR | None = None  # set by fit, as is the mean
    mean: Array | None = None

    @property
    def lags(self) -> int:
        """Two."""
        return LAGS

    def fit_seeds(
        self, panel: Panel, seeds: int | Sequence[int], validation: Panel | None = None
    ) -> list[GPVARBackbone]:
        """The one fitted model, for every seed."""
        fitted = replace(self, model=GPVAR(self.ridge).fit(panel), mean=training_mean(panel))
        return [fitted] * len(seed_list(seeds))

    def _means(self, filled: Array) -> Array:
        assert self.model is not None
        return self.model.predict(filled[1:], filled[:-1])
