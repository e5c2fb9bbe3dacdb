"""GRSSF, the graph random state-space family: synthetic sensor networks whose truth is known.

H_{t+1} = F H_t + xi_t, Y_t = H_t + eta_t with F = rho A~ / lambda_max(A~) on a stochastic block model of four
communities. Tracks: A Gaussian and stationary; B innovations correlated inside communities; C Student-t5 innovations;
D the graph drifts to another realisation over the test block; E the innovation sd doubles at the middle of the test
block. The test block is the last tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointset.algebra.recursion import first_order
from jointset.contracts import Array
from jointset.errors import require
from jointset.filters.riccati import rho_snr, rho_weighted, sigma_1, steady_state
from jointset.graph import modes, normalized_shift
from jointset.panel import Panel
from jointset.predicting.passes import Counting, silent

TRACKS = ("A", "B", "C", "D", "E")
SIZES = (30, 60, 120, 240)
RHO = 0.8
COMMUNITIES = 4
TOLD = 100  # rows of a drift after which one is told
BURN_IN = 200  # 0.8^200 < 1e-19: the state starts stationary


@dataclass(frozen=True)
class Truth:
    """What generated the data. Rates and the steady state are those of the isotropic filter (sigma 1, 1)."""

    track: str
    communities: Array  # (N,) community of each sensor
    transition: Array  # F before any drift (N, N)
    transition_end: Array  # F at the last step; differs on track D
    process_covariance: Array  # Q (N, N) before any change
    observation_covariance: Array  # R (N, N)
    process_scale: Array  # (T,) factor on the innovation sd; differs from 1 on track E
    prior: Array  # steady-state prior variances of the modes (N,)
    closed_loop: Array  # closed-loop coefficients of the modes (N,)
    sigma_1: float
    rho_tr: float  # trace rate over 50 steps
    rho_snr: float


@dataclass(frozen=True)
class Grssf:
    """A generated network: the panel a user sees and the truth behind it."""

    panel: Panel
    truth: Truth


def generate_grssf(
    track: str = "A", n: int = 30, seed: int = 0, length: int = 8_000, *, counting: Counting = silent
) -> Grssf:
    """Draw one network of n sensors and `length` readings.

    Only rows whose graph drifts are drawn one by one: of these `counting` is told how many there are.

    >>> network = generate_grssf("A", n=30, seed=0, length=100)
    >>> network.panel.values.shape, round(network.truth.sigma_1, 5)
    ((100, 30), 0.33756)
    """
    track = track.upper()
    require(track in TRACKS, f"unknown GRSSF track {track!r}: choose one of {', '.join(TRACKS)}")
    require(n >= 2 * COMMUNITIES, f"GRSSF needs at least {2 * COMMUNITIES} sensors, got {n}")
    require(length >= 20, f"GRSSF needs at least 20 steps, got {length}")
    require(seed >= 0, f"the seed must be a whole number >= 0, got {seed}")
    graphs, shapes, states, readings = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4))

    communities = np.repeat(np.arange(COMMUNITIES), [len(part) for part in np.array_split(np.arange(n), COMMUNITIES)])
    adjacency, later = block_model(communities, graphs), block_model(communities, graphs)
    Q = block_covariance(communities, shapes) if track == "B" else np.eye(n)
    scale = np.ones(length)
    if track == "E":
        scale[round(0.95 * length) :] = 2.0

    noise = innovations(track, Q, length, states) * np.concatenate([np.ones(BURN_IN), scale])[:, None]
    drift_from = round(0.9 * length) if track == "D" else length
    F, F_end = transition(adjacency), transition(later) if track == "D" else transition(adjacency)
    H = _simulate(adjacency, later, noise, BURN_IN + drift_from, counting)[BURN_IN:]
    values = H + readings.standard_normal((length, n))

    names = tuple(f"s{i:03d}" for i in range(n))
    panel = Panel(values=values, sensors=names, timestamps=300 * np.arange(length), adjacency=adjacency)
    f, _ = modes(F)
    rest = steady_state(f, 1.0, 1.0)
    truth = Truth(
        track=track,
        communities=communities,
        transition=F,
        transition_end=F_end,
        process_covariance=Q,
        observation_covariance=np.eye(n),
        process_scale=scale,
        prior=rest.prior,
        closed_loop=rest.closed_loop,
        sigma_1=sigma_1(rest.closed_loop),
        rho_tr=rho_weighted(rest.closed_loop, 50),
        rho_snr=rho_snr(RHO, rest.prior, 1.0),
    )
    return Grssf(panel, truth)


def transition(adjacency: Array) -> Array:
    """F = rho A~ / lambda_max(A~); lambda_max is 1 for every symmetric normalised shift with self loops."""
    return RHO * normalized_shift(adjacency)


def block_model(communities: Array, rng: np.random.Generator, inside: float = 0.6, across: float = 0.1) -> Array:
    """Symmetric 0/1 adjacency (N, N) of a stochastic block model."""
    n = len(communities)
    probability = np.where(communities[:, None] == communities, inside, across)
    upper = np.triu(rng.random((n, n)) < probability, k=1)
    return (upper | upper.T).astype(float)


def block_covariance(communities: Array, rng: np.random.Generator, spread: float = 0.4) -> Array:
    """Unit-diagonal covariance, block-diagonal over communities, off-diagonals N(0, spread^2) projected to PSD.

    The projection clips eigenvalues at 1e-3 and scales the diagonal back to one.
    """
    n = len(communities)
    draw = np.triu(rng.normal(0.0, spread, (n, n)), k=1)
    raw = np.where(communities[:, None] == communities, draw + draw.T, 0.0) + np.eye(n)
    eigenvalues, basis = np.linalg.eigh(raw)
    psd = (basis * np.maximum(eigenvalues, 1e-3)) @ basis.T
    sd = np.sqrt(psd.diagonal())
    return np.where(communities[:, None] == communities, psd / np.outer(sd, sd), 0.0)


def innovations(track: str, Q: Array, length: int, rng: np.random.Generator) -> Array:
    """State noise (BURN_IN + length, N) of covariance Q."""
    shape = (BURN_IN + length, len(Q))
    if track == "C":
        return rng.standard_t(5, shape) * np.sqrt(3.0 / 5.0)  # t5 has variance 5/3
    if track == "B":
        return rng.standard_normal(shape) @ np.linalg.cholesky(Q).T
    return rng.standard_normal(shape)


def _simulate(adjacency: Array, later: Array, noise: Array, drift_from: int, counting: Counting) -> Array:
    """States H_t (T, N): scalar recursions in the modes of F, then one step at a time once the graph drifts."""
    f, basis = modes(transition(adjacency))
    driven = noise[:drift_from] @ basis
    calm = first_order(f, driven.T).T @ basis.T
    states = [calm]
    h, more = calm[-1], counting(len(noise) - drift_from)
    for share, xi in zip(np.linspace(0.0, 1.0, len(noise) - drift_from), noise[drift_from:], strict=True):
        h = transition((1.0 - share) * adjacency + share * later) @ h + xi
        states.append(h[None])
        if len(states) % TOLD == 1:
            more(TOLD)
    return np.concatenate(states)
