"""Theory calculators: each a small function with the equation it implements, by the name the paper gives it.

Linear filter: `steady_state`, `sigma_1`, `rho_tr`, `rho_m0`, `rms_identity`, `rho_snr`, `no_go_prefactor`. Learned
filter: `jacobians`, `jacobian_rms_rate`, `jacobian_constants`, `jacobian_perturbation_bound`. Coverage:
`forgetting_bound`, `quantile_concentration`, `chebyshev_interval`, `bernstein_interval`, `plug_in_bound`,
`plug_in_coverage`, `log_volume_gap` and their parts.
"""

from __future__ import annotations

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
from jointset.filters.riccati import SteadyState, rho_snr, sigma_1, steady_state
from jointset.predicting.reuse import plug_in_coverage

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
