"""Rules worked out by hand over a few steps, and the defaults that papers and recorded rows rest on."""

import dataclasses
import math

import numpy as np
import pytest

from jointset.calibration import ACI, ECI, PID, RULES, AgACI, DtACI, Split
from jointset.calibration.agaci import _finite
from jointset.calibration.cost_agaci import CostAgACI
from jointset.calibration.fixed import Fixed

POOL = np.arange(1.0, 10.0)
DEFAULTS = {
    Split: {"alpha": 0.1},
    ACI: {"alpha": 0.1, "gamma": 0.005, "pool": "frozen", "lookback": 0, "quantile": "conformal", "momentum": 0.0},
    AgACI: {"alpha": 0.1, "gammas": (0.001, 0.005, 0.025), "ceiling": None, "rates": "doubling", "pool": "frozen"},
    DtACI: {"gammas": (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128), "sigma": 0.001, "eta": 2.72}
    | {"alpha": 0.1, "eta_lookback": None, "pool": "frozen", "lookback": 0, "tolerance": 1e-3},
    PID: {"alpha": 0.1, "lr": 0.1, "K_I": 10.0, "C_sat": 5.0, "burnin": 100, "scaled": True, "scorecaster": None},
    CostAgACI: {"alpha": 0.1, "gammas": (0.001, 0.005, 0.01, 0.02, 0.05), "lookback": 400},
}


@pytest.mark.parametrize("rule", DEFAULTS, ids=lambda rule: rule.__name__)
def test_defaults_are_the_published_ones(rule):
    held = dataclasses.asdict(rule())
    assert {name: held[name] for name in DEFAULTS[rule]} == DEFAULTS[rule]


def test_momentum_averages_misses_with_the_newest_weighing_most():
    rule = ACI(alpha=0.1, gamma=0.02, momentum=0.5)
    state = rule.start(POOL)
    for score, errors, weight in ((99.0, 1.0, 1.0), (0.0, 0.5, 1.5), (99.0, 1.25, 1.75)):
        before = state.level
        state = rule.update(state, score)
        assert (state.errors, state.weight) == (errors, weight)
        assert state.level == pytest.approx(before + 0.02 * (0.1 - errors / weight), abs=1e-15)


def test_dtaci_spreads_a_share_of_the_weight_after_the_exponential_step():
    rule = DtACI(alpha=0.5, gammas=(0.0, 0.2), sigma=0.2, eta=2.0, clip=None)
    state = rule.update(rule.start(POOL), 99.0)  # beyond the pool: both experts miss and lose alike
    np.testing.assert_allclose(state.weights, [0.5, 0.5])
    np.testing.assert_allclose(state.levels, [0.5, 0.4])
    state = rule.update(state, 5.5)  # 5 scores below it: beta = 1 - 5 / 10
    gap = 0.5 - np.array([0.5, 0.4])
    loss = 0.5 * gap - np.minimum(0.0, gap)
    own = np.exp(-2.0 * loss) / np.exp(-2.0 * loss).sum()
    np.testing.assert_allclose(state.weights, 0.8 * own + 0.2 / 2, atol=1e-9)
    many = rule.run(rule.start(POOL), np.tile([99.0, 0.0], 300))[1]
    assert many.weights.sum() == pytest.approx(1.0) and many.weights.min() >= 0.2 / 2


def test_infinite_radii_of_experts_are_the_ceiling_and_nothing():
    assert _finite([-math.inf, math.inf, 2.0], 5.0).tolist() == [0.0, 5.0, 2.0]


def test_weights_on_costs_stay_finite_however_long_the_run():
    rule = CostAgACI(alpha=0.5, gammas=(0.0, 0.25))
    radii, state = rule.run(rule.start(POOL), np.tile([1e3, 0.5], 3000))
    assert np.isfinite(radii).all() and state.log_weights.max() == 0.0
    assert state.log_weights.min() < -800.0  # beyond the range of exp without the largest taken out


def test_a_fixed_radius_is_never_limited():
    assert Fixed().infinite_share(()) == 0.0


@pytest.mark.parametrize("rule", [*RULES.values(), CostAgACI, Fixed], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_every_rule_refuses_a_miss_rate_outside_the_unit_interval(rule, alpha):
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        rule(alpha=alpha)


@pytest.mark.parametrize("rule", [ACI, AgACI, DtACI], ids=lambda rule: rule.__name__)
def test_every_rule_with_a_pool_refuses_an_unknown_one(rule):
    with pytest.raises(ValueError, match="pool must be one of"):
        rule(pool="sliding")
    with pytest.raises(ValueError, match="lookback must be 0 or more"):
        rule(lookback=-1)


def test_a_ceiling_below_one_is_a_ceiling():
    assert AgACI(ceiling=0.5).start(POOL).ceiling == 0.5
    with pytest.raises(ValueError, match="ceiling must be a positive finite radius"):
        AgACI(ceiling=0.0)


def test_one_expert_of_the_printed_agaci_is_aci():
    rng = np.random.default_rng(5)
    known, scores = rng.chisquare(4, 80), rng.chisquare(4, 300)
    one, aci = CostAgACI(0.1, gammas=(0.02,)), ACI(0.1, gamma=0.02, lookback=400)
    np.testing.assert_allclose(one.run(one.start(known), scores)[0], aci.run(aci.start(known), scores)[0], rtol=1e-12)


def test_eci_that_accumulates_keeps_every_term():
    """r_{t+1} - r_t = h_t (miss_t - alpha + I_t) at every step; the first is that of the form that shifts."""
    scores = np.random.default_rng(6).chisquare(3, 40)
    radii, shifted = (rule.run(rule.start(np.empty(0)), scores)[0] for rule in (ECI(0.1, accumulate=True), ECI(0.1)))
    assert radii[1] == pytest.approx(shifted[1]) and radii[5] != pytest.approx(shifted[5])
    spans = [1.0, *(float(np.ptp(scores[:t])) for t in range(1, 39))]
    logistic = 1.0 / (1.0 + np.exp(-(scores - radii)[:39]))
    terms = (scores - radii)[:39] * logistic * (1.0 - logistic)
    np.testing.assert_allclose(np.diff(radii), 0.1 * np.array(spans) * ((scores > radii)[:39] - 0.1 + terms), rtol=1e-9)
