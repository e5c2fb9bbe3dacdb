"""CONTINA's rule against its recursion written out, and ResCP against quantiles under weights written out."""

import numpy as np
import pytest

from jointset.calibration import ACI, Contina, ResCP, Split
from jointset.calibration.rescp import LEAK, _reservoir
from jointset.errors import InputError


def test_contina_is_the_recursion_of_its_authors():
    """Level by the normalised gradient, quantile of the last m scores, written out with whole arrays."""
    rng = np.random.default_rng(0)
    known, scores = rng.chisquare(3, 80), rng.chisquare(3, 400) * np.repeat([1.0, 2.0], 200)
    level, v, window, wanted = 0.1, 0.0, known.copy(), []
    for t, score in enumerate(scores, start=1):
        wanted.append(np.quantile(window, 1.0 - level))
        gradient = 0.1 - float(score > wanted[-1])
        v = 0.99 * v + 0.01 * gradient**2
        level = float(np.clip(level + 0.02 * gradient / (np.sqrt(v / (1 - 0.99**t)) + 1e-8), 0.01, 0.99))
        window = np.append(window[1:], score)
    rule = Contina(lr=0.02)
    np.testing.assert_allclose(rule.run(rule.start(known), scores)[0], wanted, rtol=1e-12)


def test_contina_with_plain_steps_is_aci_on_a_rolling_window():
    rng = np.random.default_rng(1)
    known, scores = rng.chisquare(3, 120), rng.chisquare(3, 500)
    plain, aci = Contina(adaptive=False, lr=0.01), ACI(0.1, 0.01, (0.01, 0.99), "rolling", 120, "linear")
    np.testing.assert_allclose(plain.run(plain.start(known), scores)[0], aci.run(aci.start(known), scores)[0])


def test_the_radius_of_rescp_is_the_quantile_under_the_likeness_of_states():
    rng, rule = np.random.default_rng(2), ResCP(temperature=0.2, lookback=60)
    state = rule.run(rule.start(rng.chisquare(3, 100)), rng.chisquare(3, 45))[1]
    h = state.present / np.linalg.norm(state.present)
    weights = np.exp(state.states @ h / 0.2)
    inside = [weights[state.scores <= one].sum() / weights.sum() for one in np.sort(state.scores)]
    assert rule.radius(state) == np.sort(state.scores)[np.searchsorted(inside, 0.9)]


def test_rescp_pairs_each_score_with_the_state_before_it():
    rng, rule = np.random.default_rng(3), ResCP(temperature=0.2, lookback=30)
    known, scores = rng.chisquare(3, 50), rng.chisquare(3, 40)
    state = rule.run(rule.start(known), scores)[1]
    (W, a, b), h, pairs = _reservoir(0), np.zeros(len(state.present)), {}
    for score in np.concatenate((known, scores)):
        pairs[score] = h
        x = np.clip((np.log(score) - state.centre) / state.spread, -4, 4)
        h = (1 - LEAK) * h + LEAK * np.tanh(W @ h + a * x + b)
    np.testing.assert_allclose(state.present, h, rtol=1e-12)
    assert set(state.scores) == set([*known, *scores][-30:])
    for score, direction in zip(state.scores, state.states, strict=True):
        np.testing.assert_allclose(direction, pairs[score] / np.linalg.norm(pairs[score]), rtol=1e-9)


def test_with_all_scores_alike_rescp_is_the_quantile_of_the_last_ones():
    rng, rule = np.random.default_rng(4), ResCP(temperature=1e9, lookback=50)
    known, scores = rng.chisquare(3, 50), rng.chisquare(3, 30)
    last = np.sort(np.concatenate((known, scores))[-50:])
    assert rule.radius(rule.run(rule.start(known), scores)[1]) == last[44]  # 45 of 50 lie at or below it


def test_few_scores_alike_give_rescp_the_largest_of_them():
    rule = ResCP(temperature=1e9)
    assert rule.radius(rule.start(np.array([3.0, 1.0, 5.0, 2.0, 4.0]))) == 5.0  # 4 of 5 are less than 90 %


def test_rescp_covers_both_kinds_of_moment_where_split_covers_one():
    """Sizes that alternate every 25 steps: the reservoir sees which one it is."""
    rng, rule = np.random.default_rng(5), ResCP()
    large = np.tile(np.repeat([False, True], 25), 60)
    scores = rng.chisquare(9, 3000) * np.where(large, 9.0, 1.0)
    inside = scores[1000:] <= rule.run(rule.start(scores[:1000]), scores[1000:])[0]
    fixed = scores[1000:] <= Split().run(Split().start(scores[:1000]), scores[1000:])[0]
    assert rule.start(scores[:1000]).temperature < 1.0
    assert min(inside[large[1000:]].mean(), inside[~large[1000:]].mean()) > 0.84
    assert fixed[large[1000:]].mean() < 0.82
    assert rule.start(rng.chisquare(9, 1000)).temperature >= 0.3  # exchangeable scores: nothing to tell moments by


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Contina(lr=-1.0), "lr must be 0 or more"),
        (lambda: Contina().start(np.empty(0)), "contina needs calibration scores"),
        (lambda: ResCP(temperature=0.0), "temperature must be > 0"),
        (lambda: ResCP(lookback=0), "lookback must be 1 score or more"),
        (lambda: ResCP().start(np.empty(0)), "rescp needs calibration scores"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
