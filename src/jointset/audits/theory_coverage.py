"""Theory of coverage under dependence: forgetting, quantile concentration, coverage intervals, plug-in and volume.

Constants that the paper leaves open are those of the inequality named in each docstring. All bounds are upper bounds
under the assumptions of their theorem; none certifies those assumptions.
"""

from __future__ import annotations

import math

import numpy as np

from jointset.contracts import Array
from jointset.errors import require, require_alpha


def forgetting_bound(t: int, rho: float, lipschitz: float, distance: float, density: float) -> float:
    """Local CDF forgetting (root score): |P(score_t <= u) - G(u)| <= 2 sqrt(2 g L d0) rho^((t - 1) / 2), at most 1.

    rho contracts states a step, L (`lipschitz`) is the root-score stability, d0 (`distance`) the mean distance of the
    initial state to stationarity, g (`density`) the largest stationary density of the root score near the radius. With
    d0 = (E |D_0|^2)^(1/2) and rho = rho_M0 it is the bound of the initialisation-weighted RMS theorem.

    >>> round(forgetting_bound(11, 0.25, 0.5, 1.0, 1.0), 6)
    0.001953
    """
    _rate(rho)
    return min(2.0 * math.sqrt(2.0 * density * lipschitz * distance) * rho ** ((t - 1) / 2), 1.0)


def warm_start_bias(m: int, warmup: int, rho: float, prefactor: float) -> float:
    """Bias of m scores kept from step t0 (`warmup`) on: K rho^((t0 - 1) / 2) / (m (1 - sqrt rho)).

    K (`prefactor`) is that of `forgetting_bound`, its value at t = 1 before the cut at 1.

    >>> round(warm_start_bias(1000, 1, 0.25, 1.0), 6)
    0.002
    """
    _rate(rho)
    return prefactor * rho ** ((warmup - 1) / 2) / (m * (1.0 - math.sqrt(rho)))


def autocovariance_envelope(
    k: int, rho: float, lipschitz: float, density: float, spread: float, distance: float, factor: float = 1.0
) -> float:
    """Jacobian contraction implies summable Gamma_k: 2 sqrt(2 g L C) (sqrt D + sqrt(C d0)) rho^((k - 1) / 2).

    States contract as C rho^l (`factor`, `rho`); D (`spread`) is the mean distance of two stationary states, d0
    (`distance`) that of the initial state to a stationary one.

    >>> round(autocovariance_envelope(3, 0.25, 0.5, 1.0, 1.0, 1.0), 6)
    1.0
    """
    _rate(rho)
    scale = 2.0 * math.sqrt(2.0 * density * lipschitz * factor)
    return scale * (math.sqrt(spread) + math.sqrt(factor * distance)) * rho ** ((k - 1) / 2)


def hit_variance(m: int, autocovariances: Array, variance: float = 0.25) -> float:
    """Variance of the share of m hits: [v + 2 sum_{k < m} (1 - k / m) |Gamma_k|] / m, Gamma_k at lags 1, 2, ...

    v = 1/4 is the worst case of the theorem; a measured one, alpha (1 - alpha), is sharper.

    >>> hit_variance(100, np.array([0.05]), 0.09)
    0.00189
    """
    gamma = np.abs(np.asarray(autocovariances, dtype=float))[: m - 1]
    lags = np.arange(1, len(gamma) + 1)
    return float(variance + 2.0 * np.sum((1.0 - lags / m) * gamma)) / m


def quantile_concentration(
    epsilon: float, m: int, autocovariances: Array, density: float, bias: float = 0.0, variance: float = 0.25
) -> float:
    """Warm-start dependent-quantile concentration: P(|radius - s*| > epsilon) on the root scale, at most 1.

    2 / (m (g epsilon - b)^2) [v + 2 sum_k (1 - k / m) Gamma_k], g (`density`) the smallest density near s*, b the
    warm-start bias (`warm_start_bias`). Where g epsilon <= b the theorem says nothing: 1.

    >>> round(quantile_concentration(0.2, 1000, np.zeros(0), 1.0), 4)
    0.0125
    """
    margin = density * epsilon - bias
    return min(2.0 * hit_variance(m, autocovariances, variance) / margin**2, 1.0) if margin > 0 else 1.0


def chebyshev_interval(
    alpha: float,
    m: int,
    autocovariances: Array,
    delta: float = 0.1,
    *,
    bias: float = 0.0,
    variance: float = 0.25,
) -> tuple[float, float]:
    """Chebyshev form of learned-filter validity: coverage within 1 - alpha -+ e, with probability 1 - delta.

    e = bias + sqrt(2 V / delta) + 1 / m, V = [v + 2 sum_k (1 - k / m) Gamma_k] / m (`hit_variance`), each tail with
    delta / 2. It needs the autocovariances of the hits only; `bias` is rho^t0 in the theorem.

    >>> [round(x, 3) for x in chebyshev_interval(0.1, 10_000, np.zeros(0))]
    [0.878, 0.922]
    """
    _confidence(delta)
    e = bias + math.sqrt(2.0 * hit_variance(m, autocovariances, variance) / delta) + 1.0 / m
    return _around(alpha, e, True)


def bernstein_interval(
    alpha: float,
    effective_size: float,
    delta: float = 0.1,
    *,
    test_size: float = math.inf,
    bias: float = 0.0,
    clip: bool = True,
) -> tuple[float, float]:
    """Bernstein form of learned-filter validity: coverage within 1 - alpha -+ e, with probability 1 - delta.

    e = bias + b L / 3 + sqrt((b L / 3)^2 + 2 V L), L = log(2 / delta): Bernstein's inequality for as many independent
    hits as the scores are worth, m_eff = m / tau_int. For long-run coverage V = alpha (1 - alpha) / m_eff and
    b = 1 / m_eff; for the share of hits among test readings worth n_eff (`test_size`) V = alpha (1 - alpha)
    (1 / m_eff + 1 / n_eff) and b is the larger of 1 / m_eff and 1 / n_eff. `bias` is rho^t0 + 1 / m in the theorem.

    >>> [round(x, 3) for x in bernstein_interval(0.1, 3427 / 11.0)]
    [0.855, 0.945]
    """
    require_alpha(alpha)
    _confidence(delta)
    require(effective_size > 0 and test_size > 0, "effective sizes must be positive")
    L = math.log(2.0 / delta)
    V = alpha * (1.0 - alpha) * (1.0 / effective_size + 1.0 / test_size)
    linear = L / (3.0 * min(effective_size, test_size))
    return _around(alpha, bias + linear + math.sqrt(linear**2 + 2.0 * V * L), clip)


def plug_in_bound(m: int, stability: float, density: float, failure: float = 0.0) -> float:
    """Same-block plug-in stability: |coverage - (1 - alpha)| <= 1 / (m + 1) + delta_m + 2 f epsilon_m.

    epsilon_m (`stability`) bounds how far one replaced row moves a score, with probability 1 - delta_m (`failure`);
    f (`density`) bounds the density of a new score near the radius.

    >>> round(plug_in_bound(999, 0.01, 0.5), 6)
    0.011
    """
    return 1.0 / (m + 1) + failure + 2.0 * density * stability


def ridge_stability(largest: float, ridge: float, m: int) -> float:
    """Ridge empirical covariance: a replaced row moves a score by at most epsilon_m = 2 B^4 / (lambda^2 m).

    B (`largest`) is the largest norm of a residual, lambda (`ridge`) what is added to the diagonal.

    >>> ridge_stability(2.0, 1.0, 1000)
    0.032
    """
    return 2.0 * largest**4 / (ridge**2 * m)


def log_volume_gap(radius: float, log_det: float, oracle_log_det: float, n: int, alpha: float = 0.1) -> float:
    """Log-volume a sensor of a set over that of the Gaussian oracle, exact.

    log(s / s*) + (log det S - log det S*) / 2N, s^2 (`radius`) the squared radius of the set, s*^2 the 1 - alpha
    quantile of chi^2_N: the oracle's set is the smallest of conditional coverage 1 - alpha.

    >>> round(log_volume_gap(4.605170185988091, 0.0, 0.2, 2), 12)
    -0.05
    """
    from scipy.stats import chi2  # here, so that importing jointset stays fast

    require_alpha(alpha)
    return 0.5 * math.log(radius / float(chi2.ppf(1.0 - alpha, n))) + (log_det - oracle_log_det) / (2.0 * n)


def log_volume_bound(
    excess_nll: float, radius_error: float, n: int, smallest: float, largest: float, alpha: float = 0.1
) -> float:
    """Near-oracle log-volume: gap <= C1 sqrt(excess NLL) + C2 a, a (`radius_error`) the error of the root radius.

    C1 = sqrt(C / 2N) + 2 sqrt 2 / (s* g), C2 = 2 / s*, with s* the chi_N quantile, g the chi_N density there,
    C = (log x)^2 / (x - log x - 1) at x = smallest / largest, the bounds of the eigenvalues of both covariances.

    >>> round(log_volume_bound(0.01, 0.0, 20, 0.5, 2.0), 3)
    0.254
    """
    from scipy.stats import chi  # here, so that importing jointset stays fast

    require_alpha(alpha)
    require(0 < smallest <= largest, "eigenvalue bounds must be positive, the smallest first")
    x = smallest / largest
    spread = math.log(x) ** 2 / (x - math.log(x) - 1.0) if x < 1.0 - 1e-6 else 2.0
    top = float(chi.ppf(1.0 - alpha, n))
    first = math.sqrt(spread / (2.0 * n)) + 2.0 * math.sqrt(2.0) / (top * float(chi.pdf(top, n)))
    return first * math.sqrt(excess_nll) + 2.0 / top * radius_error


def _around(alpha: float, e: float, clip: bool) -> tuple[float, float]:
    low, high = 1.0 - alpha - e, 1.0 - alpha + e
    return (max(low, 0.0), min(high, 1.0)) if clip else (low, high)


def _rate(rho: float) -> None:
    require(0.0 <= rho < 1.0, f"a contraction rate lies in [0, 1), got {rho}")


def _confidence(delta: float) -> None:
    require(0.0 < delta < 1.0, f"delta, one minus the confidence, lies strictly between 0 and 1, got {delta}")
