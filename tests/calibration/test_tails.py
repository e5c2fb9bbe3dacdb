"""Radii past every calibration score: continuous with the pool, without end, and told."""

import math

import numpy as np
import pytest

from jointset.calibration import ACI, AgACI, DtACI, Split, calibration
from jointset.calibration.tails import tail_edge, tail_index, tail_level, tail_quantile, tail_radius
from jointset.methods import parse

POOL = np.sort(np.random.default_rng(0).chisquare(10, 800))


def test_the_tail_meets_the_pool_and_never_ends():
    edge = tail_edge(len(POOL))
    levels = np.linspace(edge, -0.5, 400)
    radii = np.array([tail_radius(POOL, level) for level in levels])
    assert radii[0] == tail_radius(POOL, edge + 1e-9)
    assert tail_radius(POOL, edge - 1e-9) == pytest.approx(radii[0], rel=1e-6)
    assert (np.diff(radii) > 0).all()
    assert POOL[-1] < radii[-1] < math.inf
    assert tail_radius(POOL, -1e9) < math.inf


def test_the_index_is_that_of_a_pareto_law():
    scores = np.sort(np.random.default_rng(1).pareto(4.0, 20_000) + 1.0)
    assert tail_index(scores) == pytest.approx(0.25, abs=0.02)
    few = scores[:: len(scores) // 400]
    assert tail_quantile(few, 0.001) == pytest.approx(1000**0.25, rel=0.25)


def test_level_is_the_inverse_of_radius():
    for level in (0.004, 0.0, -0.2):
        assert tail_level(POOL, tail_radius(POOL, level)) == pytest.approx(level, abs=1e-9)


@pytest.mark.parametrize("rule", [ACI(), AgACI(), DtACI()], ids=["aci", "agaci", "dtaci"])
def test_adaptive_rules_follow_scores_past_every_calibration_score(rule):
    """Scores become four times as large: the plain rules end at the largest calibration score, or at its double."""
    rng = np.random.default_rng(2)
    calibrating, scores = rng.chisquare(10, 800), 4 * rng.chisquare(10, 1500)
    grown = type(rule)(tail=True)
    radii, state = grown.run(grown.start(calibrating), scores)
    plain = rule.run(rule.start(calibrating), scores)[0]
    assert (scores <= plain)[500:].mean() < 0.85
    assert (scores <= radii)[500:].mean() == pytest.approx(0.9, abs=0.03)
    assert np.isfinite(radii).all()
    assert grown.infinite_share(state) > 0.5


def test_too_few_scores_for_split():
    rule, few = Split(0.01, tail=True), np.random.default_rng(3).chisquare(10, 30)
    state = rule.run(rule.start(few), np.ones(4))[1]
    assert few.max() < rule.radius(state) < math.inf
    assert rule.infinite_share(state) == 1.0
    assert Split(0.01).radius(Split(0.01).start(few)) == math.inf


def test_without_being_asked_nothing_changes():
    """Rows of the paper keep their radii: a tail is asked for by name, `+aci-tail`, or by `tail=True`."""
    assert not any(calibration(name).tail for name in ("split", "aci", "agaci", "dtaci"))
    assert calibration(parse("ewma+aci-tail").wrap).tail
    rng = np.random.default_rng(4)
    calibrating, scores = rng.chisquare(10, 800), rng.chisquare(10, 300)
    calm = [rule.run(rule.start(calibrating), scores)[0] for rule in (ACI(), ACI(tail=True))]
    np.testing.assert_array_equal(*calm)


def test_no_level_holds_a_score_without_end():
    assert tail_level(np.arange(1.0, 200.0), math.inf) == tail_level(np.zeros(99), 1.0) == -math.inf
