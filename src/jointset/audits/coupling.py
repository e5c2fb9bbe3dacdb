"""Coupled trajectories: copies of one frozen filter, started in different states and fed the same readings.

What a copy still shows of its start is what the filter has not forgotten. States are perturbed in their first field:
the predicted mean of the linear filter, the hidden state of a learned one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jointset.abilities import SideBySide
from jointset.algebra.bures import as_dense, distances_from
from jointset.algebra.covariance import Covariance
from jointset.contracts import Array, Filter
from jointset.errors import require
from jointset.filters.held_out import normal_law, normal_run
from jointset.laws import AnyLaw, DenseLaw, LowRankLaw
from jointset.support.how_far import tell


class Fit(NamedTuple):
    """Geometric rate fitted to a decay: rate, and the steps (first, last) and points it rests on; NaN without any."""

    rate: float
    first: int
    last: int
    points: int


THREADS = min(4, os.cpu_count() or 1)  # pairs worked on side by side
NO_FIT = Fit(float("nan"), -1, -1, 0)


def perturbed(state: Any, delta: Array) -> Any:
    """The state with delta (as many numbers as its first field has) added to its first field."""
    first = hidden(state)
    return state._replace(**{state._fields[0]: first + np.reshape(delta, first.shape)})


def hidden(state: object) -> Array:
    """What is perturbed in a state: its first field, refused where that is no array of numbers."""
    first = state[0] if isinstance(state, tuple) and hasattr(state, "_fields") and len(state) else None
    require(
        isinstance(first, np.ndarray) and first.dtype.kind == "f" and first.size > 0,
        "this filter keeps no hidden state to perturb: audit the Kalman or the learned filter",
    )
    assert isinstance(first, np.ndarray)
    return first


def starts(filter: Filter[Any], pairs: int, scale: float, rng: np.random.Generator) -> list[Any]:
    """The zero state and `pairs` states drawn from N(0, scale^2 I) (paper: scale 1)."""
    require(pairs >= 1, f"at least one pair is needed, got {pairs}")
    state = filter.start()
    zero = perturbed(state, -hidden(state))
    draws = rng.standard_normal((pairs, hidden(state).size))
    return [zero, *(perturbed(zero, scale * draw) for draw in draws)]


def inputs(values: Array, steps: int) -> Array:
    """The last `steps` rows of readings (T, N); refused where there are fewer than 30."""
    values = np.asarray(values, dtype=float)[-steps:]
    require(len(values) >= 30, f"coupled trajectories need at least 30 rows of readings, got {len(values)}")
    return values


def trajectories(filter: Filter[Any], states: Sequence[object], values: Array) -> Iterator[AnyLaw]:
    """Laws (K, N) that K copies emit before each row of values (T, N), from K states: as `filter.run` for each."""
    values = np.asarray(values, dtype=float)
    if isinstance(filter, SideBySide):
        return filter.trajectories(states, values)
    if np.isnan(values).any():
        return _stepped(filter, list(states), values)
    return _run(filter, states, values)


def _run(filter: Filter[Any], states: Sequence[object], values: Array) -> Iterator[AnyLaw]:
    runs = [normal_run(filter, values, state)[0] for state in states]
    for t in range(len(values)):
        yield _together([laws[t] for laws in runs])


def _stepped(filter: Filter[Any], states: list[Any], values: Array) -> Iterator[AnyLaw]:
    for y in values:
        yield _together([normal_law(filter, state) for state in states])
        states = [filter.step(state, y) for state in states]


def _together(laws: Sequence[AnyLaw]) -> AnyLaw:
    """One batch (K, N) from K laws (N,)."""
    mean = np.stack([law.mean for law in laws])
    if all(isinstance(law, LowRankLaw) for law in laws):
        diagonal, factor = (np.stack([getattr(law, name) for law in laws]) for name in ("diagonal", "factor"))
        return LowRankLaw(mean, diagonal, factor)
    covariances = [as_dense(law).covariance for law in laws]
    if all(covariance is covariances[0] for covariance in covariances):
        return DenseLaw(mean, covariances[0])
    return DenseLaw(mean, Covariance(np.stack([covariance.matrix for covariance in covariances])))


def coupled(
    filter: Filter[Any], states: Sequence[object], values: Array, floor: float = 0.0, threads: int = 1
) -> Array:
    """Bures-Wasserstein distances (K, T) of copies 1 .. K to copy 0, before each row of values (T, N).

    Exact at every step. Once all copies are below `floor`, the rest of the steps is left at zero. Threads as in
    `distances_from`: together with `one_thread`.
    """
    distances = np.zeros((len(states) - 1, len(values)))
    for t, laws in enumerate(trajectories(filter, states, values)):
        distances[:, t] = distances_from(laws[0], laws[1:], threads)
        tell(t + 1, len(values))
        if distances[:, t].max() < floor:
            break
    return distances


def decay_rate(distance: Array, chosen: Array) -> Fit:
    """Least squares of log10 distance (T,) on the chosen steps (bool or positions): 10^slope; NaN below three."""
    steps = np.flatnonzero(chosen) if np.asarray(chosen).dtype == bool else np.asarray(chosen)
    if len(steps) < 3:
        return NO_FIT
    slope = np.polyfit(steps, np.log10(distance[steps]), 1)[0]
    return Fit(float(10.0**slope), int(steps[0]), int(steps[-1]), len(steps))


def fit_window(distance: Array, floor: float, top: float) -> Array:
    """Steps (bool) with a distance in [floor, top * first distance], up to where the floor is first met."""
    met = np.flatnonzero(distance < floor)
    inside = (distance >= floor) & (distance <= top * distance[0])
    inside[met[0] if len(met) else len(distance) :] = False
    return inside
