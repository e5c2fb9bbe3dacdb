"""Filters: frozen models that emit the law of the next reading."""

from jointset.filters.kalman import GraphLGSSM, KalmanState

__all__ = ["GraphLGSSM", "KalmanState"]
