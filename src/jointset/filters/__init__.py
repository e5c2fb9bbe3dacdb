"""Filters: frozen models that emit the law of the next reading."""

from typing import TYPE_CHECKING

from jointset.late_names import late_names

if TYPE_CHECKING:
    from jointset.filters.gnf import GNF, GNFState
    from jointset.filters.kalman import GraphLGSSM, KalmanState
    from jointset.filters.pool import PooledFilter, PooledState

MODULES = {"gnf": "GNF GNFState", "kalman": "GraphLGSSM KalmanState", "pool": "PooledFilter PooledState"}
__all__ = ["GNF", "GNFState", "GraphLGSSM", "KalmanState", "PooledFilter", "PooledState"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, MODULES)
