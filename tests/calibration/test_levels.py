"""DtACI's levels, PID's starting point, ACI one score at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointset.calibration import ACI, PID, DtACI, Split
from jointset.calibration.pool import start_pool
from jointset.calibration.quantiles import score_quantile
from jointset.calibration.sequence import stepping

scores_lists = st.lists(st.floats(0, 100) | st.just(math.inf), max_size=30)


@given(scores_lists, st.floats(0, 110) | st.just(math.inf))
def test_beta_is_the_largest_level_that_holds_the_score(calibration, score):
    pool = start_pool(np.array(calibration), "frozen", 0)
    beta = DtACI(clip=None)._beta(pool, score)
    assert score <= score_quantile(pool.scores, beta - 1e-9)
    if beta < 0.999:  # at a level of 1 the set is empty for every score
        assert score > score_quantile(pool.scores, beta + 1e-9)


def test_a_score_above_a_clipped_pool_is_a_miss_at_every_level():
    rule = DtACI()
    state = rule.start(np.arange(100.0))
    radii, state = rule.run(state, np.full(2000, 1e6))
    assert radii.max() <= 99.0
    assert rule.infinite_share(state) > 0.9


@given(st.lists(st.floats(0, 100), min_size=2, max_size=30), st.floats(0, 110))
def test_bisection_comes_within_its_tolerance_of_the_largest_level(calibration, score):
    rule = DtACI(quantile="linear", tolerance=1e-3)
    pool = start_pool(np.array(calibration), "frozen", 0)
    beta = rule._beta(pool, score)
    assert beta < 1e-3 or score <= score_quantile(pool.scores, beta - 1e-3, "linear") * (1 + 1e-12)
    assert beta > 1 - 1e-3 or score > score_quantile(pool.scores, beta + 1e-3, "linear") * (1 - 1e-12)


def test_dtaci_prefers_quick_experts_under_drift_and_slow_ones_at_rest():
    rng = np.random.default_rng(0)
    rule, slow = DtACI(), np.arange(8) < 4
    state = rule.start(rng.exponential(size=1000))
    rest = rule.run(state, rng.exponential(size=3000))[1]
    drift = rule.run(state, rng.exponential(size=3000) * (1.5 + np.sin(np.arange(3000) / 30)))[1]
    assert rest.weights[slow].sum() > 0.5 > drift.weights[slow].sum()


@pytest.mark.parametrize("scorecaster", [None, "theta"])
def test_pid_starts_at_the_split_radius(scorecaster):
    scores = np.random.default_rng(1).chisquare(3, 300)
    rule = PID(scorecaster=scorecaster)
    assert rule.radius(rule.start(scores)) == pytest.approx(Split().radius(Split().start(scores)), rel=1e-12)


def test_pid_with_too_few_scores_starts_at_the_largest():
    assert PID().radius(PID().start(np.array([3.0, math.inf, 1.0]))) == 3.0
    assert PID().radius(PID().start(np.array([math.inf]))) == 0.0


def test_saturated_integrator_is_counted():
    rule = PID(C_sat=0.01)
    radii, state = rule.run(rule.start(np.arange(20.0)), np.full(50, 1e6))
    assert np.isinf(radii).any()
    assert rule.infinite_share(state) == np.isinf(radii).mean()


@pytest.mark.parametrize("clip", [None, (1e-4, 1 - 1e-4), (0.05, 0.2)])
def test_aci_strides_as_it_steps(clip):
    rng = np.random.default_rng(1)
    rule, scores = ACI(0.1, gamma=0.04, clip=clip), rng.random(600) * np.repeat([1.0, 3.0, 0.1], 200)
    scores[50:60] = np.nan
    state = rule.start(rng.random(100))
    step, after = stepping(rule, state)
    for score in scores.tolist():
        assert step(score) == rule.radius(state)
        state = rule.update(state, score)
    assert after()[2:] == state[2:] and after().level == pytest.approx(state.level, abs=1e-12) and state.limited > 0
