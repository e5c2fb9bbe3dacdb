"""Filters: frozen models that emit the law of the next reading."""

from jointset.filters.gnf import GNF, GNFState
from jointset.filters.kalman import GraphLGSSM, KalmanState
from jointset.filters.pool import PooledFilter, PooledState

__all__ = ["GNF", "GNFState", "GraphLGSSM", "KalmanState", "PooledFilter", "PooledState"]
