"""Bernstein online aggregation (BOA): weights of experts from their regrets, with a learning rate for each.

Wintenberger (2017), "Optimal learning with Bernstein online aggregation". With r_j the regret of the mixture to expert
j at one step, V_j the sum of r_j^2, B_j the largest |r_j| so far and K experts, the weights are
w_j ~ eta_j exp(eta_j R_j) and R_j grows by r_j - eta_j r_j^2. Published releases of the R package opera differ in eta:

| `rates` | release | eta_j | also |
|---|---|---|---|
| "doubling" | 1.2.0 | min(1 / E_j, sqrt(log K / V_j)), E_j the power of 2 at or above B_j | R_j grows by half of r_j - eta_j r_j^2 + E_j 1{eta_j r_j > 1/2} |
| "range" | 1.1.1 | min(1 / (2 B_j), sqrt(log K / V_j)) | w_j ~ exp(eta_j R_j) |
| "variance" | newest | 1 / sqrt(2.2 V_j) | |
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import require
from jointset.storage import storable

RATES = ("doubling", "range", "variance")


@storable
class BOAState(NamedTuple):
    """Weights for the next step, corrected regrets R, and V and B of the regrets as above, each (K,)."""

    weights: Array
    regrets: Array
    squares: Array
    largest: Array


def require_rates(rates: str) -> None:
    """Refuse an unknown name."""
    require(rates in RATES, f"rates must be one of {', '.join(RATES)}, got {rates!r}")


def start_boa(experts: int) -> BOAState:
    """State before the first step: every expert alike."""
    zero = np.zeros(experts)
    return BOAState(np.full(experts, 1.0 / experts), zero, zero, zero)


def update_boa(state: BOAState, regret: Array, rates: str = "doubling") -> BOAState:
    """State after one step with regrets (K,): loss of the mixture less the loss of each expert.

    >>> update_boa(start_boa(2), np.array([0.5, -0.5])).weights.round(3)
    array([0.777, 0.223])
    """
    squares = state.squares + regret**2
    largest = np.maximum(state.largest, np.abs(regret))
    bound = _power_of_two(largest) if rates == "doubling" else 2.0 * largest
    eta = _learning_rates(squares, bound, rates)
    moved = np.isfinite(eta)  # an expert without any regret has an infinite rate, and nothing to correct
    step = np.where(moved, eta, 0.0) * regret
    gain = regret - step * regret
    if rates == "doubling":
        gain = (gain + bound * (step > 0.5)) / 2
    regrets = state.regrets + gain
    return BOAState(_weights(regrets, eta, moved, rates), regrets, squares, largest)


def mix(weights: Array, forecasts: Array) -> float:
    """Weighted mean of forecasts (K,), exact when all agree or one has all the weight; weights need not sum to 1."""
    middle = forecasts[weights.argmax()]
    if not np.isfinite(middle):
        return float(middle)
    some = weights > 0.0
    return float(middle + weights[some] @ (forecasts[some] - middle) / weights.sum())


def pinball_regret(mixture: float, forecasts: Array, target: float, tau: float) -> Array:
    """Regrets (K,) of the mixture on the pinball loss at level tau, linearised at the mixture (gradient trick).

    The loss has slope 1{target < mixture} - tau there.

    >>> pinball_regret(1.0, np.array([0.0, 2.0]), target=3.0, tau=0.75)
    array([-0.75,  0.75])
    """
    return ((target < mixture) - tau) * (mixture - forecasts)


def _learning_rates(squares: Array, bound: Array, rates: str) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        if rates == "variance":
            return 1.0 / np.sqrt(2.2 * squares)
        entropy = np.log(max(len(bound), 2))  # one expert alone has weight 1 at any rate but 0
        return np.minimum(1.0 / bound, np.sqrt(entropy / squares))


def _weights(regrets: Array, eta: Array, moved: Array, rates: str) -> Array:
    """Weights (K,), positive and of sum 1; an expert without any regret keeps its equal share."""
    weights = np.full(len(eta), 1.0 / len(eta))
    if moved.any():
        exponent = eta[moved] * regrets[moved]
        if rates != "range":
            exponent += np.log(eta[moved])
        weight = np.exp(exponent - exponent.max())
        weights[moved] = weight * (moved.sum() / len(eta) / weight.sum())
    return weights


def _power_of_two(largest: Array) -> Array:
    """Smallest power of 2 at or above each entry, exactly; 0 stays 0."""
    fraction, exponent = np.frexp(largest)  # largest = fraction 2^exponent, 1/2 <= fraction < 1
    return np.where((fraction == 0.5) | (fraction == 0.0), largest, np.ldexp(1.0, exponent))
