"""Radii for steps ahead: ranks that count overlapping windows less, levels that follow late outcomes."""

from itertools import pairwise

import numpy as np
import pytest

from jointset.calibration import Split
from jointset.calibration.late import LateACI, windows_needed


@pytest.mark.parametrize("m", [9, 100, 101, 1234])
def test_a_window_of_one_step_has_the_split_radius(m):
    scores = np.random.default_rng(m).random(m)
    rule, split = LateACI(0.1, 0.0), Split(0.1)
    assert rule.radius(rule.start(scores), 0.1, 1) == split.radius(split.start(scores))


def test_fewer_independent_windows_give_a_larger_radius():
    rule, scores = LateACI(0.1, 0.0), np.arange(1000.0)
    radii = [rule.radius(rule.start(scores), 0.1, late) for late in (1, 6, 12)]
    assert radii == sorted(radii) and radii[0] == 900.0 and radii[2] == 910.0


@pytest.mark.parametrize("late", [1, 3, 12])
def test_the_fewest_windows_have_a_finite_radius_and_one_less_has_none(late):
    rule, m = LateACI(0.1, 0.0), windows_needed(0.1, late)
    assert np.isfinite(rule.radius(rule.start(np.arange(float(m))), 0.1, late))
    assert rule.radius(rule.start(np.arange(m - 1.0)), 0.1, late) == np.inf


def test_radii_grow_without_end_as_the_level_falls():
    rule = LateACI(0.1, 0.005)
    pool = rule.start(np.random.default_rng(0).random(300) + 1.0)
    radii = [rule.radius(pool, level, 12) for level in (0.5, 0.1, 0.05, 0.02, 0.0, -0.1, -0.5)]
    assert all(a < b for a, b in pairwise(radii)) and radii[-1] < np.inf


def test_misses_of_announced_sets_add_up_whatever_the_scores():
    """Scores that grow for ever, and outcomes 12 steps late: the share of misses still comes to alpha."""
    rule, late, T = LateACI(0.1, 0.01), 12, 6000
    rng = np.random.default_rng(1)
    scores = rng.random(T) * np.exp(np.arange(T) / 1500.0)
    pool, level, radii = rule.start(rng.random(400)), rule.alpha, np.empty(T)
    for t in range(T):
        radii[t] = rule.radius(pool, level, late)
        if t >= late:
            missed = bool(scores[t - late] > radii[t - late])
            level, pool = rule.moved(level, missed), rule.grown(pool, float(scores[t - late]))
    misses = (scores > radii)[: T - late]
    assert abs(misses.mean() - 0.1) <= (abs(level - 0.1) + 1e-9) / (T - late) / rule.gamma
    assert abs(misses.mean() - 0.1) < 0.01
