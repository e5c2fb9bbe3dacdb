"""Adapters: jointset under the verbs of scikit-learn, sktime, the Nixtla libraries and river.

Each is imported when it is asked for, and asks for its package then: `from jointset.adapters import JointRegressor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointset.late_names import late_names

if TYPE_CHECKING:
    from jointset.adapters.live_model import LiveModel as LiveModel
    from jointset.adapters.long_forecast import LongForecast as LongForecast
    from jointset.adapters.regressor import JointRegressor as JointRegressor
    from jointset.adapters.sktime_forecaster import JointForecaster as JointForecaster

MODULES = {
    "live_model": "LiveModel",
    "long_forecast": "LongForecast",
    "regressor": "JointRegressor",
    "sktime_forecaster": "JointForecaster",
}
__all__ = ["JointForecaster", "JointRegressor", "LiveModel", "LongForecast"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, MODULES)
