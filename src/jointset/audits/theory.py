"""Theory calculators: each a small function with the equation it implements, by the name the paper gives it.

Linear filter: `steady_state`, `sigma_1`, `rho_tr`, `rho_m0`, `rms_identity`, `rho_snr`, `no_go_prefactor`. Learned
filter: `jacobians`, `jacobian_rms_rate`, `jacobian_constants`, `jacobian_perturbation_bound`. Coverage:
`forgetting_bound`, `quantile_concentration`, `chebyshev_interval`, `bernstein_interval`, `plug_in_bound`,
`plug_in_coverage`, `log_volume_gap` and their parts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jointset.audits.records import SMALL, Record, curve, rate_words, steps_to_forget
from jointset.audits.subject import Subject
from jointset.audits.theory_coverage import (
    autocovariance_envelope,
    bernstein_interval,
    chebyshev_interval,
    forgetting_bound,
    hit_variance,
    log_volume_bound,
    log_volume_gap,
    plug_in_bound,
    quantile_concentration,
    ridge_stability,
    warm_start_bias,
)
from jointset.audits.theory_jacobian import (
    JacobianConstants,
    jacobian_constants,
    jacobian_forgetting_bound,
    jacobian_perturbation_bound,
    jacobian_rms_rate,
    jacobians,
)
from jointset.audits.theory_linear import RmsIdentity, no_go_prefactor, rho_m0, rho_tr, rms_identity
from jointset.contracts import Filter
from jointset.filters import GraphLGSSM
from jointset.filters.riccati import SteadyState, rho_snr, sigma_1, steady_state
from jointset.predicting.reuse import plug_in_coverage

HORIZON = 50  # steps of rho_tr, rho_M0 and of the Jacobian product, as in the paper

__all__ = [
    "JacobianConstants",
    "RmsIdentity",
    "SteadyState",
    "autocovariance_envelope",
    "bernstein_interval",
    "chebyshev_interval",
    "forgetting_bound",
    "hit_variance",
    "jacobian_constants",
    "jacobian_forgetting_bound",
    "jacobian_perturbation_bound",
    "jacobian_rms_rate",
    "jacobians",
    "log_volume_bound",
    "log_volume_gap",
    "no_go_prefactor",
    "plug_in_bound",
    "plug_in_coverage",
    "quantile_concentration",
    "rho_m0",
    "rho_snr",
    "rho_tr",
    "ridge_stability",
    "rms_identity",
    "sigma_1",
    "steady_state",
    "warm_start_bias",
]


def theory_words(sigma: float, trace: float, weighted: float) -> str:
    """What the closed forms say."""
    steps = math.ceil(steps_to_forget(sigma))
    told = f"the slowest mode keeps {100 * sigma:.0f} % a step (sigma_1 {sigma:.3f}), 1 % is left after {steps} steps"
    return f"{told}; over 50 steps a typical start forgets at {weighted:.3f} (rho_M0), an isotropic one at {trace:.3f}"


def theory(subject: Subject) -> Record:
    """Closed forms of the linear filter; Jacobian-product rate of a learned one."""
    filter_ = subject.state_space
    return _linear(subject, subject.linear) if subject.is_linear else _learned(subject, filter_)


def _linear(subject: Subject, filter_: GraphLGSSM) -> Record:
    values = subject.coupled_values
    complete = values[~np.isnan(values).any(axis=1)]
    rows = complete if len(complete) >= HORIZON else values  # a sensor that is always missing leaves no complete row
    states = filter_.run(rows, filter_.start())[0].mean[len(rows) // 2 :]  # a cold start is off by these
    M0 = states.T @ states / max(1, len(states))
    modes, basis = filter_.steady.closed_loop, filter_.spectrum[1]
    sigma, trace = sigma_1(modes), rho_tr(modes, HORIZON)
    weighted = rho_m0(modes, HORIZON, M0, basis)
    steps = np.arange(1, HORIZON + 1)
    eigenvalues = np.linalg.eigvalsh(M0)
    return {
        "value": sigma,
        "sigma_1": sigma,
        "rho_tr": trace,
        "rho_M0": weighted,
        "rho_snr": rho_snr(filter_.rho, filter_.steady.prior, filter_.sigma_r**2),
        "gap_rho_M0_rho_tr": abs(weighted - trace),
        "M0_anisotropy": float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0 else None,
        "horizon": HORIZON,
        "no_go_prefactor": no_go_prefactor(sigma, weighted, HORIZON),
        "curve": {
            **curve(steps, [rho_m0(modes, int(t), M0, basis) for t in steps], "rho_M0 over the horizon"),
            "xlabel": "step",
        },
        "verdict": theory_words(sigma, trace, weighted),
    }


def _learned(subject: Subject, filter_: Filter[Any]) -> Record:
    rates = jacobian_rms_rate(filter_, subject.coupled_values[:HORIZON], seed=subject.seed)
    steps = np.arange(1, len(rates) + 1)
    left = np.flatnonzero(rates**steps <= SMALL)
    forgotten = float(steps[left[0]]) if len(left) else np.ceil(steps_to_forget(float(rates[-1])))
    return {
        "value": float(rates[-1]),
        "rho_M0": float(rates[-1]),
        "rho_M0_max": float(rates.max()),
        "horizon": len(rates),
        "curve": {
            **curve(steps, rates, "Jacobian-product rate over the horizon"),
            "xlabel": "step",
        },
        "verdict": rate_words("rho_M0", float(rates[-1]), "a small error in the state, linearised,", forgotten),
    }
