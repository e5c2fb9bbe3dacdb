"""Audits: real protocols on a frozen filter that tell when to trust its prediction set.

Every audit is a function of a fitted filter or a calibrated predictor and readings; it returns numbers and curves,
prints nothing and writes nothing. Names are imported on first use, so `import jointset.audits` costs nothing. A
function named like its module comes from there: `from jointset.audits.contraction import contraction`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "catalogue": ("AUDITS",),
    "collect": ("audit", "audit_cell"),
    "light": ("overall",),
    "contraction": ("Contraction", "sensitivity"),
    "coupling": ("coupled", "perturbed", "trajectories"),
    "dependence": (
        "EffectiveSizes",
        "IndicatorDependence",
        "IntegratedTime",
        "autocovariance",
        "effective_size",
        "effective_sizes",
        "indicator_dependence",
        "integrated_time",
    ),
    "forgetting": ("Forgetting", "robustness", "score_forgetting", "wasserstein_1"),
    "observability": ("Observability",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
