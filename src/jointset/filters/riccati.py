"""Steady state and contraction of the linear filter whose matrices commute, mode by mode in closed form.

With F symmetric, C = I, Q = q I and R = nu I, everything is diagonal in the eigenbasis of F, and the Riccati equation
of a mode with coefficient f is the quadratic p^2 + (nu (1 - f^2) - q) p - q nu = 0 for the prior variance p.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array


class SteadyState(NamedTuple):
    """Per mode: prior variance p, gain p / (p + nu), closed-loop coefficient f nu / (p + nu)."""

    prior: Array
    gain: Array
    closed_loop: Array


def steady_state(f: Array, q: float, nu: float) -> SteadyState:
    """Closed-form steady state of modes f (N,) with process noise q and observation noise nu (variances).

    >>> round(float(steady_state(np.array([0.8]), 1.0, 1.0).closed_loop[0]), 5)
    0.33756
    """
    f = np.asarray(f, dtype=float)
    b = q - nu * (1.0 - f**2)
    root = np.sqrt(b**2 + 4.0 * q * nu)
    # the two forms are equal; each is free of cancellation on its side of b = 0
    prior = np.where(b >= 0, 0.5 * (b + root), 2.0 * q * nu / np.where(b >= 0, 1.0, root - b))
    return SteadyState(prior, prior / (prior + nu), f * nu / (prior + nu))


def sigma_1(closed_loop: Array) -> float:
    """Largest singular value of the closed-loop transition: the worst-mode contraction rate."""
    return float(np.max(np.abs(closed_loop)))


def rho_weighted(closed_loop: Array, t: int, second_moment: Array | None = None, basis: Array | None = None) -> float:
    """Initialisation-weighted RMS rate (sum_i w_i |a_i|^2t)^(1/2t) after t steps.

    w_i is the share of mode i in the second moment M0 (N, N) of the initial difference, in the eigenbasis U (N, N).
    Without M0 the weights are equal: the trace rate.
    """
    a = np.abs(np.asarray(closed_loop, dtype=float))
    if second_moment is None:
        weights = np.full(len(a), 1.0 / len(a))
    else:
        U = np.eye(len(a)) if basis is None else basis
        share = np.einsum("ji,jk,ki->i", U, second_moment, U)
        weights = share / share.sum()
    top = a.max()  # factor the largest mode out, so that high powers do not underflow
    return float(top * np.sum(weights * (a / top) ** (2 * t)) ** (1.0 / (2 * t)))


def rho_snr(rho: float, prior: Array, nu: float) -> float:
    """Trace surrogate rho / (1 + tr P^- / tr R) of sigma_1; equal to it when all modes are alike."""
    return float(rho / (1.0 + np.mean(prior) / nu))
