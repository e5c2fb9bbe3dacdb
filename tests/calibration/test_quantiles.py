"""Ranks, quantiles and the pool against their definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointset.calibration import minimum_scores
from jointset.calibration.pool import slide, start_pool
from jointset.calibration.quantiles import calibration_scores, rank, score_quantile
from jointset.errors import InputError

scores_lists = st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=40)


@given(st.integers(0, 200_000), st.integers(1, 9_999))
def test_rank_is_the_exact_ceiling_for_decimal_alphas(m, tenthousandths):
    exact = math.ceil((m + 1) * (1 - Fraction(tenthousandths, 10_000)))
    assert rank(m, tenthousandths / 10_000) == exact


@given(scores_lists, st.integers(1, 99))
def test_conformal_radius_is_the_smallest_score_that_enough_scores_do_not_exceed(scores, percent):
    radius = score_quantile(np.sort(scores), percent / 100)
    needed = math.ceil((len(scores) + 1) * (1 - Fraction(percent, 100)))
    enough = [s for s in scores if sum(other <= s for other in scores) >= needed]
    assert radius == min(enough, default=math.inf)


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.floats(0.01, 0.99), st.sampled_from(["linear", "higher"])
)
def test_published_quantiles_are_numpys(scores, alpha, rule):
    expected = np.quantile(scores, 1.0 - alpha, method=rule)
    assert score_quantile(np.sort(scores), alpha, rule) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("rule", ["conformal", "linear", "higher"])
def test_levels_outside_the_unit_interval_are_the_whole_space_and_the_empty_set(rule):
    scores = np.arange(5.0)
    assert score_quantile(scores, 0.0, rule) == score_quantile(scores, -0.3, rule) == math.inf
    assert score_quantile(scores, 1.0, rule) == score_quantile(scores, 1.3, rule) == -math.inf


@pytest.mark.parametrize("rule", ["conformal", "linear", "higher"])
def test_infinite_scores_never_give_nan(rule):
    scores = np.array([1.0, 2.0, math.inf, math.inf])
    assert not any(math.isnan(score_quantile(scores, alpha, rule)) for alpha in np.linspace(-0.1, 1.1, 97))


@given(st.integers(1, 999))
def test_minimum_scores_is_the_first_finite_radius(thousandths):
    alpha = thousandths / 1000
    m = minimum_scores(alpha)
    assert rank(m, alpha) <= m
    assert m == 0 or rank(m - 1, alpha) > m - 1
    assert m == math.ceil(1 / Fraction(thousandths, 1000)) - 1


@given(scores_lists, scores_lists, st.integers(1, 10), st.sampled_from(["frozen", "rolling"]))
def test_pool_holds_what_its_name_says(calibration, test, lookback, kind):
    pool = start_pool(np.array(calibration), kind, lookback)
    for score in test:
        pool = slide(pool, score, lookback)
    kept = calibration + test[-lookback:] if kind == "frozen" else (calibration + test)[-lookback:]
    assert pool.scores.tolist() == sorted(kept)


def test_nan_calibration_scores_are_counted_in_the_message():
    with pytest.raises(InputError, match=r"2 of 4 calibration scores are NaN: drop"):
        calibration_scores(np.array([1.0, math.nan, 2.0, math.nan]))


def test_calibration_scores_are_a_vector():
    with pytest.raises(InputError, match=r"shape \(3, 2\)"):
        calibration_scores(np.ones((3, 2)))
