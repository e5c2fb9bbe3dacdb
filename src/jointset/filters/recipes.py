"""Named training recipes of the learned filter.

- `paper`: the published schedule. Pooled: 60 epochs of 64 windows of 24 drawn with replacement. Node-wise: 60 passes
  through the series in pieces of 64 with the state carried on, the first tenth of the series not in the loss.
- `fast` (default): at most a twentieth of those optimiser steps, with a higher rate that rises and falls. Node-wise it
  follows 16 parts of the series at once.
- `sharp` (node-wise): more and shorter pieces. Smaller sets where outages dominate the likelihood (METR-LA), at the
  price of a worse likelihood there; elsewhere about the same as `fast`.

All were chosen on validation blocks of METR-LA-20, ETT and AQI.
"""

from __future__ import annotations

from typing import Any

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
