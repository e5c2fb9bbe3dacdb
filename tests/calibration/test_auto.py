"""Auto: quick after a jump, calm without one, right in the long run against any sequence, never empty or infinite."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jointset.calibration import ACI, Auto, ByClock, Split
from jointset.calibration.auto import CALM, FEEDBACK, HIGHEST, JUMP, LEARNING, LOWEST, RATES, SHARED, TURN, calm
from jointset.calibration.quantiles import DEPTH
from jointset.datasets.grssf import generate_grssf
from jointset.errors import InputError
from jointset.methods import predictor_for, three_blocks

LAWS = {
    "one sensor": lambda rng, n: rng.chisquare(1, n),
    "five": lambda rng, n: rng.chisquare(5, n),
    "thirty": lambda rng, n: rng.chisquare(30, n),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_on_exchangeable_scores_it_costs_at_most_a_hundredth_of_the_width(law):
    """Against the one radius that covers as many of the same scores, which Split would need."""
    costs = []
    for seed in range(5):
        rng, rule = np.random.default_rng(seed), Auto()
        scores = law(rng, 5000)
        radii, _ = rule.run(rule.start(law(rng, 1500)), scores)
        inside = int((scores <= radii).sum())
        assert inside / 5000 == pytest.approx(0.9, abs=0.005)
        costs.append(np.sqrt(radii).mean() / np.sqrt(np.sort(scores)[inside - 1]) - 1)
    assert np.mean(costs) < 0.01


def test_chance_is_let_be_and_what_is_beyond_it_counts_in_full():
    """The bound on the miss rate needs calm(E) >= E - CALM / 2."""
    excess = np.linspace(-80.0, 80.0, 641)
    heard = np.array([calm(one, CALM) for one in excess.tolist()])
    assert (np.abs(heard) <= np.abs(excess)).all() and (np.diff(heard) >= 0.0).all()
    assert (heard >= excess - CALM / 2 - 1e-12).all()
    assert calm(1.0, CALM) < 0.1 and calm(40.0, CALM) > 39.0


def test_who_widens_the_set_decides_what_is_a_miss_and_not_what_size_is_followed():
    rule = Auto()
    state = rule.start(np.random.default_rng(0).chisquare(5, 300))
    score = 1.5 * rule.radius(state)
    alone, lifted = rule.update(state, score), rule.update(state, score, 2.0)
    assert alone[:5] == lifted[:5]
    assert alone.excess == pytest.approx(lifted.excess + 1.0)


@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_a_jump_is_followed_within_a_few_steps(factor):
    """ACI, whose radius ends at the largest calibration score, never gets there; downwards it is slow."""
    rng, rule = np.random.default_rng(1), Auto()
    calibration, scores = rng.chisquare(30, 1000), rng.chisquare(30, 600) * np.repeat([1.0, factor], 300)
    radii, state = rule.run(rule.start(calibration), scores)
    late = slice(340, 600)
    assert (scores <= radii)[300:500].mean() >= 0.8
    assert (scores <= radii)[late].mean() == pytest.approx(0.9, abs=0.04)
    oracle = factor * Split().radius(Split().start(calibration))
    assert np.sqrt(radii[late]).mean() == pytest.approx(math.sqrt(oracle), rel=0.05)
    assert rule.infinite_share(state) == 0.0
    aci = ACI().run(ACI().start(calibration), scores)[0]
    assert abs(np.log(aci[late] / oracle)).mean() > 5 * abs(np.log(radii[late] / oracle)).mean()


def test_a_network_whose_noise_doubles():
    """Track E of GRSSF: the noise of the states doubles in the middle of the test block."""
    train, calibration, test = three_blocks(generate_grssf("E", n=30, seed=11, length=8000).panel, 0.8, 0.1)
    run = predictor_for("kalman+auto").fit(train).calibrate(calibration).run(test)
    assert run.inside.mean() >= 0.88
    assert run.inside[400:600].mean() >= 0.8
    assert np.isfinite(run.radius).all()
    oracle = np.repeat([np.quantile(run.score[:400], 0.9), np.quantile(run.score[400:], 0.9)], 400)
    assert np.log(run.radius / oracle).mean() / 2 < 0.05  # half of it is a difference of mean log-volumes


def adversary(kind, radius, t, rng):
    """Score chosen after the radius is seen, between 1e-3 and 1e9."""
    outside, inside = min(1.001 * radius, 1e9), max(0.5 * radius, 1e-3)
    if kind == "always out":
        return outside
    if kind == "always in":
        return inside
    if kind == "blocks":
        return outside if t // 300 % 2 == 0 else inside
    if kind == "coin":
        return outside if rng.random() < 0.5 else inside
    return 1e9 if rng.random() < 0.15 else 1e-3


@pytest.mark.parametrize("kind", ["always out", "always in", "blocks", "coin", "spikes"])
def test_the_miss_rate_is_right_against_an_adversary(kind):
    """The excess of misses stays within bounds that do not grow with time: 20,000 steps say what 100,000 would."""
    rng, rule, steps = np.random.default_rng(0), Auto(), 20_000
    state = rule.start(rng.chisquare(3, 500))
    misses, radii = 0, []
    for t in range(steps):
        radii.append(rule.radius(state))
        score = adversary(kind, radii[-1], t, rng)
        misses += score > radii[-1]
        state = rule.update(state, score)
    assert LOWEST * TURN - 1 <= misses - 0.1 * steps <= HIGHEST * TURN + 1
    assert 0.0 < min(radii) <= max(radii) < math.inf


def test_zeros_and_infinities_neither_empty_nor_blow_up_the_set():
    rule = Auto()
    for calibration in (np.zeros(50), np.full(50, np.inf), np.ones(3), np.array([0.0, 1.0, np.inf] * 20)):
        radii, state = rule.run(rule.start(calibration), np.repeat([0.0, np.inf, 1.0], 200))
        assert (radii > 0.0).all()
        assert np.isfinite(radii).all()
        assert math.isfinite(rule.radius(state))


@pytest.mark.parametrize("still", [0.0, 1e-28], ids=["nothing", "rounding"])
@pytest.mark.parametrize("clock", [False, True])
def test_a_network_that_stands_still_for_a_while_leaves_sizes_where_they_were(still, clock):
    """Outages in which the last reading is exactly right: trackers of log scores must not go there and back."""
    rng, rule = np.random.default_rng(0), ByClock(Auto()) if clock else Auto()
    scores, times = rng.chisquare(12, 6000), 3600 * np.arange(6000)
    for outage in (slice(500, 900), slice(1500, 1560), slice(3000, 3400), slice(4000, 4200)):
        scores[outage] = still * scores[outage]
    start = rule.start(scores[:2500], times[:2500]) if clock else rule.start(scores[:2500])
    after = (times[2500:],) if clock else ()
    radii, _ = rule.run(start, scores[2500:], *after)
    inside, told = scores[2500:] <= radii, scores[2500:] > 1e-20
    assert radii.max() < scores.max() and inside[told].mean() == pytest.approx(0.9, abs=0.01)
    assert inside[~told].all() and inside[900:950].mean() >= 0.8  # the rows after an outage
    assert np.ptp(radii[500:900]) < (5.0 if clock else 1e-12)  # nothing moves in it but the clock


def test_without_calibration_scores_it_says_so():
    with pytest.raises(InputError, match="auto needs calibration scores: there are none"):
        Auto().start(np.array([]))


def test_scores_in_other_units_give_radii_in_those_units():
    rng, rule = np.random.default_rng(2), Auto()
    calibration, scores = rng.chisquare(4, 400), rng.chisquare(4, 400)
    radii = rule.run(rule.start(calibration), scores)[0]
    np.testing.assert_allclose(rule.run(rule.start(1e6 * calibration), 1e6 * scores)[0], 1e6 * radii, rtol=1e-9)


@pytest.mark.parametrize("jump", [1.0, 4.0])
def test_sets_of_several_components_are_steered_by_their_size(jump):
    """In calm as large as those of ACI; four times larger readings are followed at once, not by sets without end."""
    train, calibration, test = three_blocks(generate_grssf("A", n=12, seed=1, length=4000).panel)
    grown = np.where(np.arange(len(test)) < 200, 1.0, jump)[:, None] * test.values
    test = replace(test, values=grown)
    run, aci = (predictor_for(f"factor+{wrap}").fit(train).calibrate(calibration).run(test) for wrap in ("auto", "aci"))
    assert run.inside.mean() == pytest.approx(0.9, abs=0.03)
    scored = np.log(run.score[220:] / run.radius[220:])
    assert np.quantile(scored, 0.9) == pytest.approx(0.0, abs=0.15)
    if jump == 1.0:
        assert abs(run.log_volume.mean() - aci.log_volume.mean()) < 0.03
    else:
        assert run.infinite_share < 0.5
        assert run.log_volume[220:].max() - aci.log_volume[:200].mean() < math.log(jump) + 0.6


@pytest.mark.parametrize("score", [2.0, 14.0, 30.0])
def test_weights_move_by_the_pinball_losses_of_the_log_radii(score):
    rule = Auto(alpha=0.1)
    state = rule.start(np.random.default_rng(0).chisquare(8, 300))
    error = (math.log(score) - np.add(state.sizes, state.quantiles)) / state.spread
    weights = np.array(state.weights) * np.exp(-LEARNING * np.maximum(0.9 * error, -0.1 * error))
    expected = (1.0 - SHARED) * weights / weights.sum() + SHARED / len(weights)
    np.testing.assert_allclose(rule.update(state, score).weights, expected)


def test_the_calibration_block_sets_sizes_quantiles_gains_and_weights_in_order_of_time():
    """Each tracker alone, in the words of the module; the block drifts, so that the quick ones have the weight."""
    scores = np.random.default_rng(3).chisquare(8, 199) * np.exp(np.linspace(0.0, 3.0, 199))
    x, at = np.log(scores), lambda values, p: np.sort(values)[math.ceil(200 * p) - 1]
    spread, losses, tracked = at(x, 0.95) - at(x, 0.45), [], []
    for rate in RATES:
        sizes = [at(x, 0.5)]
        for one in x:
            sizes.append(sizes[-1] + rate * np.clip(one - sizes[-1], -JUMP * spread, JUMP * spread))
        left = x - sizes[:-1]
        error = (left - at(left, 0.9)) / spread
        losses.append(np.maximum(0.9 * error, -0.1 * error))
        tracked.append((sizes[-1], at(left, 0.9), FEEDBACK * (at(left, 0.95) - at(left, 0.85)) / 0.1))
    weights = np.full(6, 1 / 6)
    for loss in np.transpose(losses):
        weights *= np.exp(-LEARNING * loss)
        weights = (1.0 - SHARED) * weights / weights.sum() + SHARED / 6
    state = Auto().start(scores)
    np.testing.assert_allclose(np.transpose(state[:3]), tracked)
    np.testing.assert_allclose(state.weights, weights)
    assert weights[-1] < weights[:3].min() and state[4:] == pytest.approx((spread, 0.0, 0.1, 0, 0, at(x, 0.95) - DEPTH))
