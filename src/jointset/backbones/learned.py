"""What the learned backbones share: scaling, training by seeds, early stopping, and prediction by windows.

All predict the change from the last reading, in z-scores of the training rows: m_t = y_{t-1} + sd * f(z_{t-lags} ..
z_{t-1}). The last layer of f starts at zero, so training starts at persistence. Training needs torch; a fitted
backbone predicts with NumPy alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from jointset.backbones.interface import Backbone, seed_list, training_mean
from jointset.contracts import Array
from jointset.errors import require
from jointset.panel import Panel
from jointset.support.extras import require_extra

CHUNK = 2_000_000  # numbers of a block of windows worked on at a time
HELD_OUT = 0.1  # share of the training rows, the last ones, held out to say when to stop; no cell gives another block
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class LearnedBackbone(Backbone):
    """Settings and results of training that all learned backbones have.

    Parameters
    ----------
    steps, batch, rate, weight_decay
        Adam steps, windows in each, the highest learning rate (it rises, then falls along a cosine), decay.
    patience
        A seed is done after this many looks at the error on held-out rows, 50 steps apart, without a new best one.
    seed, device
        Of the training run.
    weights, mean, scale
        Set by `fit`: what was learned, mean and standard deviation (N,) of the training rows.
    """

    steps: int = 2000
    batch: int | None = 32
    rate: float = 3e-3
    weight_decay: float = 0.0
    patience: int = 12
    seed: int = 0
    device: str = "cpu"
    weights: Any = None
    mean: Array | None = None
    scale: Array | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "patience"):
            number = getattr(self, name)
            require(number is None or number >= 1, f"{name} must be 1 or more, got {number}")
        require(self.rate > 0, f"rate must be positive, got {self.rate}")

    # ------------------------------------------------------------------ what a backbone defines

    @property
    def window_rows(self) -> int:
        """Inputs of a training window."""
        return self.lags

    @property
    def window_skip(self) -> int:
        """First inputs of a training window that no mean is trained after: their history is too short."""
        return self.lags // 3

    def windows_of(self, n: int) -> int:
        """Windows in a training step for n sensors: `batch`."""
        return self.batch or 32

    @abstractmethod
    def initial_weights(self, n: int, rng: np.random.Generator) -> Any:
        """Fresh weights for n sensors, a NamedTuple of arrays."""

    @abstractmethod
    def changes(self, weights: Any, z: Any, keep: int) -> Any:
        """Changes (seeds, B, keep, N) that follow the last `keep` rows of windows z (seeds, B, L, N)."""

    def _prepared(self, panel: Panel) -> Self:
        """A copy with all that does not need training: the scale of the sensors, and a graph where one is used."""
        scale = np.nanstd(panel.values, axis=0)
        return replace(self, mean=training_mean(panel), scale=np.where(scale > 0, scale, 1.0))

    # ------------------------------------------------------------------ training

    def fit(self, panel: Panel, validation: Panel | None = None, *, progress: Progress | None = None) -> Self:
        """A trained copy; without a validation block the last tenth of the panel says when to stop."""
        return self.fit_seeds(panel, [self.seed], validation, progress=progress)[0]

    def fit_seeds(
        self,
        panel: Panel,
        seeds: int | Sequence[int],
        validation: Panel | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Self]:
        """Independent backbones for several seeds (0 .. k - 1 for a number k), trained in one program."""
        require_extra("torch", f"training a {type(self).__name__}")
        from jointset.backbones.training import train_seeds  # torch is imported here

        seeds, ready = seed_list(seeds), self._prepared(panel)
        train, later = self._blocks(panel, validation)
        weights = train_seeds(ready, ready._scaled(train.values), ready._scaled(later.values), seeds, progress)
        return [replace(ready, seed=s, weights=w) for s, w in zip(seeds, weights, strict=True)]

    def _blocks(self, panel: Panel, validation: Panel | None) -> tuple[Panel, Panel]:
        """Rows to train on and rows to stop on, each refused when shorter than a window and the row after it."""
        least = self.window_rows + 1
        if validation is None:
            cut = panel.T - max(least, round(HELD_OUT * panel.T))
            require(cut >= least, f"{panel.T} training rows are too few: windows and held-out rows need {2 * least}")
            return panel[:cut], panel[cut:]
        for rows, block in ((panel.T, "training"), (validation.T, "validation")):
            require(rows >= least, f"{rows} {block} rows are fewer than one window and the row after it: give {least}")
        require(
            validation.n_sensors == panel.n_sensors,
            f"the validation block has {validation.n_sensors} sensors and the training block {panel.n_sensors}",
        )
        return panel, validation

    def _scaled(self, values: Array) -> Array:
        return (values - self.mean) / self.scale

    # ------------------------------------------------------------------ prediction

    def _means(self, filled: Array) -> Array:
        z = self._scaled(filled)
        windows = np.lib.stride_tricks.sliding_window_view(z, self.lags, axis=0).swapaxes(1, 2)  # (T, lags, N)
        size = max(1, CHUNK // (self.lags * max(z.shape[1], 128)))
        blocks = [windows[i : i + size] for i in range(0, len(windows), size)]
        changes = np.concatenate([self.changes(self.weights, block, 1)[:, 0] for block in blocks])
        return filled[self.lags - 1 :] + self.scale * changes
