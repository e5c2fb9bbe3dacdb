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

import math
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
    etas, regrets, squares, largest = [], [], [], []
    for r, R, V, B in zip(*(part.tolist() for part in (regret, *state[1:])), strict=True):  # few experts: numbers
        V, B = V + r * r, max(B, abs(r))
        bound = _power_of_two(B) if rates == "doubling" else 2.0 * B
        eta = _learning_rate(V, bound, rates, len(regret))
        step = eta * r if eta < math.inf else 0.0  # without any regret the rate is infinite, and nothing to correct
        gain = r - step * r
        if rates == "doubling":
            gain = (gain + (bound if step > 0.5 else 0.0)) / 2
        etas.append(eta)
        regrets.append(R + gain)
        squares.append(V)
        largest.append(B)
    return BOAState(np.array(_weights(regrets, etas, rates)), *map(np.array, (regrets, squares, largest)))


def mix(weights: Array, forecasts: Array) -> float:
    """Weighted mean of forecasts (K,), exact when all agree or one has all the weight; weights need not sum to 1."""
    shares, each = weights.tolist(), forecasts.tolist()
    middle: float = each[shares.index(max(shares))]
    if not math.isfinite(middle):
        return middle
    away = sum(share * (one - middle) for share, one in zip(shares, each, strict=True) if share > 0.0)
    return middle + away / sum(shares)


def pinball_regret(mixture: float, forecasts: Array, target: float, tau: float) -> Array:
    """Regrets (K,) of the mixture on the pinball loss at level tau, linearised at the mixture (gradient trick).

    The loss has slope 1{target < mixture} - tau there.

    >>> pinball_regret(1.0, np.array([0.0, 2.0]), target=3.0, tau=0.75)
    array([-0.75,  0.75])
    """
    return ((target < mixture) - tau) * (mixture - forecasts)


def _learning_rate(squares: float, bound: float, rates: str, experts: int) -> float:
    """eta of one expert, infinite where it had no regret."""
    if squares == 0.0:
        return math.inf
    if rates == "variance":
        return 1.0 / math.sqrt(2.2 * squares)
    entropy = math.log(max(experts, 2))  # one expert alone has weight 1 at any rate but 0
    return min(1.0 / bound, math.sqrt(entropy / squares))


def _weights(regrets: list[float], etas: list[float], rates: str) -> list[float]:
    """Weights (K,), positive and of sum 1; an expert without any regret keeps its equal share."""
    even, moved = 1.0 / len(etas), [k for k, eta in enumerate(etas) if eta < math.inf]
    weights = [even] * len(etas)
    exponents = [etas[k] * regrets[k] + (math.log(etas[k]) if rates != "range" else 0.0) for k in moved]
    shares = [math.exp(one - max(exponents)) for one in exponents]
    for k, share in zip(moved, shares, strict=True):
        weights[k] = share * (len(moved) * even / sum(shares))
    return weights


def _power_of_two(largest: float) -> float:
    """Smallest power of 2 at or above a number, exactly; 0 stays 0."""
    fraction, exponent = math.frexp(largest)  # largest = fraction 2^exponent, 1/2 <= fraction < 1
    return largest if fraction in (0.5, 0.0) else math.ldexp(1.0, exponent)
