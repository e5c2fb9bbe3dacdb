"""Adapters: jointset under the verbs of scikit-learn, sktime, the Nixtla libraries and river.

Each is imported when it is asked for, and asks for its package then: `from jointset.adapters import JointRegressor`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jointset.adapters.live_model import LiveModel as LiveModel
    from jointset.adapters.long_forecast import LongForecast as LongForecast
    from jointset.adapters.regressor import JointRegressor as JointRegressor
    from jointset.adapters.sktime_forecaster import JointForecaster as JointForecaster

MODULES = {
    "JointRegressor": "regressor",
    "JointForecaster": "sktime_forecaster",
    "LongForecast": "long_forecast",
    "LiveModel": "live_model",
}
__all__ = ["JointForecaster", "JointRegressor", "LiveModel", "LongForecast"]


def __getattr__(name: str) -> Any:
    """The adapter of that name."""
    if name not in MODULES:
        raise AttributeError(f"module 'jointset.adapters' has no attribute {name!r}")
    return getattr(import_module(f"jointset.adapters.{MODULES[name]}"), name)
