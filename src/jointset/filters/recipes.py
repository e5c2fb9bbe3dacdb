"""How to train: the settings of a run, and the named recipes of the learned filter.

- `paper`: the published schedule. Pooled: 60 epochs of 64 windows of 24 drawn with replacement. Node-wise: 60 passes
  through the series in pieces of 64 with the state carried on, the first tenth of the series not in the loss.
- `fast` (default): at most a twentieth of those optimiser steps, with a higher rate that rises and falls. Node-wise it
  follows 16 parts of the series at once.
- `sharp` (node-wise): more and shorter pieces. Smaller sets where outages dominate the likelihood (METR-LA), at the
  price of a worse likelihood there; elsewhere about the same as `fast`.

All were chosen on validation blocks of METR-LA-20, ETT and AQI.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from jointset.errors import require
from jointset.storage import storable

DROPOUT = 0.3  # share of states dropped in training on few rows
FEW, ENOUGH = 3000, 5000  # rows up to which that share holds, and from which nothing is dropped

RECIPES: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "pooled": {"epochs": 60, "batch": 64, "window": 24, "rate": 1e-3, "clip": "value", "limit": 5.0},
        "node": {
            "epochs": 60,
            "batch": 1,
            "window": 64,
            "in_order": True,
            "skip_share": 0.1,
            "rate": 1e-3,
            "clip": "norm",
            "limit": 5.0,
            "weight_decay": 1e-4,
        },
    },
    "fast": {
        "pooled": {"epochs": 3, "batch": 64, "window": 24, "rate": 8e-3, "schedule": "cosine", "clip": "norm"},
        "node": {
            "epochs": 48,  # passes of a sixteenth: three passes through the whole series
            "batch": 16,
            "window": 64,
            "in_order": True,
            "rate": 2e-2,
            "schedule": "cosine",
            "clip": "norm",
            "weight_decay": 1e-4,
        },
    },
    "sharp": {
        "node": {
            "steps": 4000,
            "batch": 8,
            "window": 16,
            "in_order": True,
            "rate": 5e-3,
            "schedule": "cosine",
            "clip": "norm",
            "weight_decay": 1e-4,
        },
    },
}


@storable
@dataclass(frozen=True)
class Recipe:
    """How to train. Steps are `epochs` times the number of whole windows in the series, unless given."""

    epochs: int = 60
    steps: int | None = None
    batch: int = 64
    window: int = 24
    skip: int = 0  # first steps of a window that are not in the loss
    in_order: bool = False  # cut the series into `batch` parts and go through each window by window, state carried on
    skip_share: float = 0.0  # in order: first share of the series that only brings the state up
    rate: float = 1e-3
    schedule: str = "constant"  # or "cosine": warm up over 5 % of the steps, then down to zero
    clip: str = "value"  # each gradient entry to +-limit, or "norm": the whole gradient of a seed
    limit: float = 5.0
    weight_decay: float = 0.0

    def for_rows(self, rows: int) -> Recipe:
        """The recipe with as many parts as a short series has windows; refused when it has none."""
        require(
            rows > self.window,
            f"{rows} training rows are fewer than one window of {self.window} and the row after it: give more rows",
        )
        return replace(self, batch=min(self.batch, (rows - 1) // self.window)) if self.in_order else self

    def total(self, rows: int) -> int:
        """Optimiser steps on a series of that many rows."""
        return self.steps if self.steps is not None else self.epochs * self.windows(rows)

    def windows(self, rows: int) -> int:
        """Steps of one pass over a series of that many rows: its whole windows, or those of one part in order."""
        return (rows - 1) // (self.batch if self.in_order else 1) // self.window

    def rate_at(self, step: int, rows: int) -> float:
        """Learning rate of a step: zero where an ordered pass only brings the state up."""
        if self.in_order and (step % self.windows(rows)) * self.window < self.skip_share * rows:
            return 0.0
        return self.rate * rate_factor(self.schedule, step, self.total(rows))


def rate_factor(schedule: str, step: int, total: int) -> float:
    """Learning rate at a step, as a share of the recipe's rate."""
    if schedule == "constant":
        return 1.0
    warm = max(1, total // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def dropout_for(rows: int) -> float:
    """Share of the states of a learned member that is dropped in training: `DROPOUT` where rows are few, then less."""
    return round(DROPOUT * min(max((ENOUGH - rows) / (ENOUGH - FEW), 0.0), 1.0), 3)
