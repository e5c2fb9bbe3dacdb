"""Theory of learned filters: how fast the product of the Jacobians of the state map forgets, and the remainder.

h_t = Psi_t(h_{t-1}) is the state of a frozen filter along a fixed path of readings, J_t = D Psi_t at the states it
passes, J_{t:1} = J_t .. J_1. Derivatives are exact, by forward-mode differentiation in double precision. The linear
filter at rest is a special case: J_t is its closed loop. A missing reading enters as the filter enters it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jointset.abilities import Differentiable, Linear
from jointset.contracts import Array, Filter
from jointset.errors import InputError, require
from jointset.support.extras import require_extra

FULL = 1024  # states up to this size are differentiated in all directions, larger ones in random ones
DIRECTIONS = 64
SMALL = 256  # largest state whose Jacobians are multiplied out for operator norms
SEGMENT = (0.25, 0.5, 0.75, 1.0)  # places between two states at which the Jacobian is compared

StateMap = Callable[[Any, Array], Any]


class JacobianConstants(NamedTuple):
    """Of the local-linearisation bound: Jacobian variation on the tube (B2) and the linearised envelope (B3)."""

    epsilon: float  # largest |D Psi_t(h) - J_t| between the two trajectories
    envelope: float  # B_T, the largest |J_{b:a+1}| for 0 <= a <= b <= T


def jacobian_rms_rate(
    filter: Filter[Any],
    values: Array,
    state: Any = None,
    *,
    second_moment: Array | None = None,
    directions: int | None = None,
    seed: int = 0,
) -> Array:
    """Jacobian-weighted RMS rate rho_M0(J_{t:1}, t) = (tr(J_{t:1} M0 J_{t:1}') / tr M0)^(1/2t) for t = 1 .. T.

    Along readings (T, N) in the units of the filter, from `state` (default: its start). M0 (d, d) is the second moment
    of the difference of initial states, default a multiple of I. `directions` random ones drawn from it estimate the
    trace, 64 unless given where d > 1024; otherwise it is exact. For the linear filter it equals `rho_m0`.

    >>> from jointset import GraphLGSSM
    >>> filter_ = GraphLGSSM(rho=0.8, adjacency=np.ones((3, 3)) - np.eye(3))
    >>> float(np.round(jacobian_rms_rate(filter_, np.zeros((2, 3)), second_moment=np.ones((3, 3)))[1], 5))
    0.33756
    """
    step, h = _state_map(filter, state)
    import torch
    from torch.func import jvp, vmap

    size = h.numel()
    roots = _root(second_moment, size, directions, seed)
    Z = torch.as_tensor(roots, dtype=torch.float64)  # (directions, d), rows are differences
    scale = float((Z * Z).sum())
    squares = []
    for y in np.asarray(values, dtype=float):
        h, Z = step(h, y), vmap(lambda v, h=h, y=y: jvp(lambda x: step(x, y), (h,), (v,))[1])(Z)
        squares.append(float((Z * Z).sum()) / scale)
    return np.array(squares) ** (0.5 / np.arange(1, len(squares) + 1))


def jacobians(filter: Filter[Any], values: Array, state: Any = None) -> Array:
    """Jacobians J_t (T, d, d) of the state map along readings (T, N), for states of at most 256 numbers.

    >>> from jointset import GraphLGSSM
    >>> filter_ = GraphLGSSM(adjacency=np.zeros((2, 2)))
    >>> bool(np.allclose(jacobians(filter_, np.zeros((1, 2)))[0], filter_.closed_loop))
    True
    """
    step, h = _state_map(filter, state)
    _small(h.numel())
    found = []
    for y in np.asarray(values, dtype=float):
        found.append(_jacobian(step, h, y))
        h = step(h, y)
    return np.array(found)


def jacobian_constants(filter: Filter[Any], values: Array, state: Any, other: Any) -> JacobianConstants:
    """Measured epsilon and B_T for two initial states on the same readings (T, N).

    The Jacobian is compared with J_t, that along `state`, at four places of the segment to the trajectory of `other`.

    >>> from jointset import GraphLGSSM
    >>> filter_ = GraphLGSSM(adjacency=np.zeros((2, 2)))
    >>> far = filter_.start()._replace(mean=np.ones(2))
    >>> jacobian_constants(filter_, np.zeros((5, 2)), filter_.start(), far)
    JacobianConstants(epsilon=0.0, envelope=1.0)
    """
    step, h = _state_map(filter, state)
    _, g = _state_map(filter, other)
    _small(h.numel())
    epsilon, envelope = 0.0, 1.0
    products = np.empty((0, h.numel(), h.numel()))  # J_{t:a+1} for a = 0 .. t - 1
    for y in np.asarray(values, dtype=float):
        J = _jacobian(step, h, y)
        along = np.array([_jacobian(step, h + s * (g - h), y) for s in SEGMENT])
        epsilon = _largest_norm(along - J, epsilon)
        products = np.concatenate([J @ products, J[None]])
        envelope = _largest_norm(products, envelope)
        h, g = step(h, y), step(g, y)
    return JacobianConstants(epsilon, envelope)


def jacobian_perturbation_bound(rate: float, t: int, epsilon: float, envelope: float, distance: float = 1.0) -> float:
    """Finite-horizon local-linearisation RMS bound: [rate^t + epsilon B^2 t exp(epsilon B t)] d0.

    It bounds (E |h_t - h'_t|^2)^(1/2); rate is rho_M0(J_{t:1}, t), epsilon and B (`envelope`) are those of
    `jacobian_constants`, d0 (`distance`) = (tr M0)^(1/2).

    >>> jacobian_perturbation_bound(0.5, 2, 0.0, 1.0, 4.0)
    1.0
    """
    return (rate**t + _remainder(epsilon, envelope, t)) * distance


def jacobian_forgetting_bound(
    t: int, rates: Array, epsilon: float, envelope: float, lipschitz: float, distance: float, density: float
) -> float:
    """CDF forgetting of a learned filter: 2 sqrt(2 g L d0 [r^(t-1) + epsilon B^2 T exp(epsilon B T)]), at most 1.

    r is the largest of the rates (T,) of `jacobian_rms_rate`; g, L, d0 as in `forgetting_bound`.

    >>> jacobian_forgetting_bound(3, np.array([0.2, 0.5]), 0.0, 1.0, 0.125, 1.0, 1.0)
    0.5
    """
    inner = float(np.max(rates)) ** (t - 1) + _remainder(epsilon, envelope, len(rates))
    return min(2.0 * math.sqrt(2.0 * density * lipschitz * distance * inner), 1.0)


def _remainder(epsilon: float, envelope: float, t: int) -> float:
    return epsilon * envelope**2 * t * math.exp(min(epsilon * envelope * t, 700.0))


def _largest_norm(matrices: Array, known: float) -> float:
    """Largest operator norm of a batch, or `known` where that is larger; the Frobenius norm rules most out."""
    rivals = matrices[np.linalg.norm(matrices, axis=(1, 2)) > known]
    return max([known, *np.linalg.norm(rivals, 2, axis=(1, 2)).tolist()]) if len(rivals) else known


def _small(size: int) -> None:
    require(size <= SMALL, f"a state of {size} numbers is too large for operator norms (most: {SMALL}): select sensors")


def _jacobian(step: StateMap, h: Any, y: Array) -> Array:
    from torch.func import jacfwd

    return np.asarray(jacfwd(lambda x: step(x, y))(h))


def _root(second_moment: Array | None, size: int, directions: int | None, seed: int) -> Array:
    """Rows whose outer products sum to M0, exactly or in expectation, up to a factor."""
    count = directions if directions is not None else (None if size <= FULL else DIRECTIONS)
    if second_moment is None:
        root = None
    else:
        M0 = np.asarray(second_moment, dtype=float)
        require(M0.shape == (size, size), f"M0 needs shape {(size, size)}, that of the state, got {M0.shape}")
        values, basis = np.linalg.eigh(0.5 * (M0 + M0.T))
        root = (basis * np.sqrt(np.maximum(values, 0.0))).T
    if count is None:
        return np.eye(size) if root is None else root
    draws = np.random.default_rng(seed).standard_normal((count, size))
    return draws if root is None else draws @ root


def _state_map(filter: Filter[Any], state: Any) -> tuple[StateMap, Any]:
    """The state map on flat tensors, (h, y) -> h, and the first state."""
    require_extra("torch", "a Jacobian")
    state = filter.start() if state is None else state
    if isinstance(filter, Differentiable):
        return filter.state_map(state)
    if not isinstance(filter, Linear):
        raise InputError(f"no Jacobians for {type(filter).__name__}: its state map is not known")
    require(state.at_rest, "the linear filter must be at rest: start from a state without a gap")
    import torch

    A, B = (torch.from_numpy(np.array(part, dtype=float)) for part in (filter.closed_loop, filter.input_gain))

    def linear(h: Any, y: Array) -> Any:
        require(not np.isnan(y).any(), "the linear filter leaves its rest at a missing reading: choose other rows")
        return A @ h + B @ torch.from_numpy(np.array(y, dtype=float))

    return linear, torch.from_numpy(np.array(state.mean, dtype=float))
