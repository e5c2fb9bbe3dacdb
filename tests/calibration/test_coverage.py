"""Coverage: exact for Split, bounded for ACI on any sequence, restored after drift by the adaptive rules."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jointset.calibration import ACI, ECI, PID, SAOCP, SFOGD, AgACI, Contina, DtACI, ResCP, Split, Window
from jointset.calibration.window import refuted


@pytest.mark.parametrize(("m", "alpha"), [(99, 0.1), (57, 0.1), (200, 0.05), (9, 0.1)])
def test_split_coverage_is_beta_binomial(m, alpha):
    """Of n new exchangeable scores BetaBinomial(n, k, m + 1 - k) fall inside, whatever the distribution."""
    rng, repeats, n = np.random.default_rng(m), 4000, 40
    rule = Split(alpha)
    scores = rng.standard_cauchy((repeats, m + n)) ** 2
    radii = np.array([rule.radius(rule.start(row[:m])) for row in scores])
    inside = (scores[:, m:] <= radii[:, None]).sum(1)
    k = math.ceil(round((m + 1) * (1 - alpha), 9))
    law = stats.betabinom(n, k, m + 1 - k)
    grid = np.arange(n + 1)
    empirical = (inside[:, None] <= grid).mean(0)
    assert np.abs(empirical - law.cdf(grid)).max() < math.sqrt(math.log(2 / 1e-6) / (2 * repeats))  # DKW band
    assert abs(inside.mean() - law.mean()) < 5 * law.std() / math.sqrt(repeats)


def adversary(kind, radius, t, rng):
    """Score chosen after the radius is seen."""
    just_outside = radius + 1e-9 * abs(radius) + 1e-9 if math.isfinite(radius) else 1.0
    if kind == "always out":
        return just_outside
    if kind == "always in":
        return 0.0
    if kind == "blocks":
        return just_outside if t // 300 % 2 == 0 else 0.0
    return just_outside if rng.random() < 0.5 else 0.0


@pytest.mark.parametrize("kind", ["always out", "always in", "blocks", "coin"])
@pytest.mark.parametrize("gamma", [0.005, 0.05, 0.5])
def test_aci_keeps_its_promise_against_an_adversary(kind, gamma):
    """|mean miss - alpha| <= (max(alpha, 1 - alpha) + gamma) / (T gamma) at every T (Gibbs and Candes, prop. 4.1)."""
    rng, alpha = np.random.default_rng(0), 0.1
    rule = ACI(alpha, gamma, clip=None)
    state = rule.start(rng.chisquare(3, 200))
    misses = 0
    for t in range(1500):
        radius = rule.radius(state)
        score = adversary(kind, radius, t, rng)
        misses += score > radius
        state = rule.update(state, score)
        assert abs(misses / (t + 1) - alpha) <= (max(alpha, 1 - alpha) + gamma) / ((t + 1) * gamma) + 1e-12


@settings(max_examples=60)
@given(
    st.lists(st.floats(0, 100) | st.just(math.inf), min_size=1, max_size=200),
    st.lists(st.floats(0, 100), min_size=1, max_size=30),  # no scores: the whole space at any level
    st.floats(0.01, 2.0),
    st.floats(0.05, 0.95),
)
def test_aci_bound_on_any_fixed_sequence(scores, calibration, gamma, alpha):
    rule = ACI(alpha, gamma, clip=None)
    radii, _ = rule.run(rule.start(np.array(calibration)), np.array(scores))
    misses = np.cumsum(np.array(scores) > radii)
    T = np.arange(1, len(scores) + 1)
    assert (np.abs(misses / T - alpha) <= (max(alpha, 1 - alpha) + gamma) / (T * gamma) + 1e-9).all()


def test_clipped_aci_counts_the_steps_where_clipping_bit():
    rule = ACI(gamma=0.05)
    radii, state = rule.run(rule.start(np.arange(100.0)), np.full(100, 1e9))
    assert np.isfinite(radii).all()
    assert radii[-1] == 99.0
    assert rule.infinite_share(state) == 97 / 100  # 0.1, 0.055, 0.01 and then the floor


def test_frozen_pool_and_recent_scores_see_a_change_of_scale():
    """With the last 400 test scores in the pool the radius can pass the largest calibration score."""
    rng = np.random.default_rng(0)
    calibration, test = rng.chisquare(3, 300), 50 * rng.chisquare(3, 2000)
    frozen = ACI().run(ACI().start(calibration), test)[0]
    mixed_rule = ACI(lookback=400)
    mixed = mixed_rule.run(mixed_rule.start(calibration), test)[0]
    assert frozen.max() <= calibration.max()
    assert (test <= frozen)[500:].mean() < 0.5
    assert (test <= mixed)[500:].mean() == pytest.approx(0.9, abs=0.02)


ADAPTIVE = {"aci": ACI(), "agaci": AgACI(), "dtaci": DtACI(), "pid": PID(), "theta": PID(scorecaster="theta")}
ADAPTIVE |= {"sfogd": SFOGD(), "saocp": SAOCP(), "eci": ECI(), "eci-integral": ECI(form="integral"), "window": Window()}
ADAPTIVE |= {"contina": Contina(), "rescp": ResCP()}


@pytest.mark.parametrize("rule", ADAPTIVE.values(), ids=ADAPTIVE.keys())
def test_adaptive_rules_recover_when_the_scores_double(rule):
    rng = np.random.default_rng(7)
    calibration = np.abs(rng.standard_t(3, 2000))
    test = np.abs(rng.standard_t(3, 6000)) * np.repeat([1.0, 2.0], 3000)
    radii, state = rule.run(rule.start(calibration), test)
    inside = test <= radii
    assert inside[:3000].mean() == pytest.approx(0.9, abs=0.02)
    assert inside[4000:].mean() == pytest.approx(0.9, abs=0.02)
    assert rule.infinite_share(state) < 0.2
    fixed = Split().run(Split().start(calibration), test)[0]
    assert (test <= fixed)[4000:].mean() < 0.75


def test_the_window_is_long_in_calm_and_short_after_a_change():
    rng, rule = np.random.default_rng(9), Window()
    state = rule.run(rule.start(rng.chisquare(5, 2000)), rng.chisquare(5, 1000))[1]
    assert len(state.pool) > 1000
    state = rule.run(state, 4 * rng.chisquare(5, 24))[1]
    assert len(state.pool) < 100


@pytest.mark.parametrize(("older", "newest"), [(20, 20), (200, 20)])
def test_scores_without_a_change_are_refuted_as_rarely_as_the_threshold_says(older, newest):
    scores = np.random.default_rng(older).standard_cauchy((3000, older + newest))
    share = np.mean([refuted(row[:older], row[older:], 2.0) for row in scores])
    assert abs(share - 2 * stats.norm.sf(2.0)) < 0.012


def test_agaci_follows_the_quicker_expert_after_a_change():
    rng = np.random.default_rng(8)
    rule = AgACI(gammas=(0.0, 0.005))
    state = rule.start(rng.exponential(size=2000))
    assert rule.weights(state).tolist() == [0.5, 0.5]
    state = rule.run(state, 1.5 * rng.exponential(size=4000))[1]
    assert rule.weights(state)[1] > 0.9


def test_agaci_replaces_infinite_experts_by_the_ceiling():
    rule = AgACI(gammas=(0.5,), ceiling=1000.0)
    state = rule.start(np.arange(50.0))
    state = rule.update(state, 60.0)  # level 0.1 - 0.45: the expert asks for the whole space
    assert rule.radius(state) == 1000.0
    assert rule.infinite_share(rule.update(state, 1.0)) == 0.5
    default = AgACI(gammas=(0.5,))
    assert default.radius(default.update(default.start(np.append(np.arange(50.0), math.inf)), 60.0)) == 98.0


def test_split_with_too_few_scores_is_the_whole_space():
    rule = Split()
    radii, state = rule.run(rule.start(np.arange(8.0)), np.ones(4))
    assert (radii == math.inf).all()
    assert rule.infinite_share(state) == 1.0
    assert rule.radius(rule.start(np.arange(9.0))) == 8.0
