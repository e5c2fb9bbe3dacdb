"""Filters whose weights serve every sensor alike take in new ones: the graph grows, the state of the rest stays.

The Kalman filter has two numbers for all sensors, the node-wise learned filter one set of weights. A new sensor starts
from what is known of any: in the first with a variance far above the usual one, in the second in the state in
which the filter was trained to begin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jointset.contracts import Array, Filter
from jointset.errors import InputError
from jointset.filters.gnf import GNF, GNFState
from jointset.filters.kalman import GraphLGSSM, KalmanState
from jointset.graph import normalized_shift

WIDE = 9.0  # variance of the hidden state of a new sensor, in variances at rest


def grown(filter_: Filter[Any], state: object, adjacency: Array) -> tuple[Filter[Any], object]:
    """The filter on a graph (M, M) whose first N sensors are those it has, and its state with the new ones in it."""
    if isinstance(filter_, GraphLGSSM) and isinstance(state, KalmanState):
        return _grown_kalman(filter_, state, adjacency)
    if isinstance(filter_, GNF) and filter_.node and isinstance(state, GNFState):
        shift = normalized_shift(adjacency) if filter_.graph else None
        larger = replace(filter_, sensors=len(adjacency), shift=shift)
        hidden = np.concatenate([state.hidden, larger.start().hidden[len(state.hidden) :]])
        return larger, GNFState(hidden)
    name = getattr(filter_, "name", "") or type(filter_).__name__
    raise InputError(
        f"{name} learns every sensor by itself and cannot take in a new one: fit it again on rows that have it; "
        "kalman, kalman-tuned and gnf-node, whose weights serve all sensors alike, can"
    )


def _grown_kalman(filter_: GraphLGSSM, state: KalmanState, adjacency: Array) -> tuple[GraphLGSSM, KalmanState]:
    n, m = len(state.mean), len(adjacency)
    wide = WIDE * filter_.sigma_q**2 / (1.0 - filter_.rho**2)
    P = np.diag(np.full(m, wide))
    P[:n, :n] = filter_.law(state).covariance.matrix - filter_.sigma_r**2 * np.eye(n)
    mean = np.concatenate([state.mean, np.zeros(m - n)])
    return replace(filter_, adjacency=adjacency), KalmanState(mean, P)
