"""Rules by the clock: each hour gets its due, nothing is made up where hours are alike, steps are the run."""

import json
import math

import numpy as np
import pytest
from scipy.stats import chi2

from jointset import Panel
from jointset.calibration import ACI, PID, Auto, ByClock, DtACI, Split, calibration
from jointset.calibration.clock_course import course_of
from jointset.calibration.fixed import Fixed
from jointset.datasets import generate_grssf
from jointset.errors import InputError
from jointset.methods import load_predictor, predictor_for
from jointset.storage import pack, unpack
from jointset.streaming import Stream

HOUR, DAY = 3600, 86_400
RULES = [Split(), ACI(), DtACI(), PID(), Auto()]


def by_the_hour(days, seed=0, rough=1.0, from_hour=6, to_hour=9):
    """Times and scores of hourly rows; those of three hours are larger."""
    times = HOUR * np.arange(24 * days)
    hour = times % DAY // HOUR
    larger = np.where((hour >= from_hour) & (hour < to_hour), rough, 1.0)
    return times, np.random.default_rng(seed).chisquare(12, len(times)) * larger


def halves(times, scores):
    middle = len(times) // 2
    return (scores[:middle], times[:middle]), (scores[middle:], times[middle:])


def lowest_hour(times, inside):
    hour = times % DAY // HOUR
    return min(float(inside[hour == one].mean()) for one in np.unique(hour))


def same(a, b):
    """Bit-equality of two states."""
    return json.dumps(pack(a, {})) == json.dumps(pack(b, {}))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_steps_are_the_run(rule):
    """Also where rows are empty, and where one comes at another time than it would by the usual interval."""
    known, (scores, times) = halves(*by_the_hour(40, rough=3.0))
    times = np.where(np.arange(len(times)) > 200, times + 5 * HOUR + 17, times)
    scores[[3, 4, 100]] = math.nan
    clocked = ByClock(rule)
    start = clocked.start(*known)
    radii, after = clocked.run(start, scores, times)
    state = start
    for t, score in enumerate(scores.tolist()):
        state = clocked.expect(state, int(times[t]))
        assert clocked.radius(state) == radii[t]
        state = clocked.update(state, score)
    assert (state.next, state.excess) == (after.next, after.excess)
    assert clocked.radius(state) == clocked.radius(after)
    untold = clocked.run(start, scores[:200])  # by the usual interval
    np.testing.assert_array_equal(untold[0], radii[:200])


def test_a_state_goes_through_a_file():
    known, (scores, times) = halves(*by_the_hour(60, rough=3.0))
    rule = ByClock(ACI())
    state = rule.run(rule.start(*known), scores, times)[1]
    arrays = {}
    loaded = unpack(pack(state, arrays), arrays)
    assert same(loaded, state) and rule.radius(loaded) == rule.radius(state)


def test_every_hour_gets_its_due():
    """Where three hours are rougher, all are covered, and the other hours have smaller sets for it."""
    known, (scores, times) = halves(*by_the_hour(160, rough=3.0))
    plain, clocked = ACI(), ByClock(ACI())
    before = plain.run(plain.start(known[0]), scores)[0]
    after = clocked.run(clocked.start(*known), scores, times)[0]
    assert lowest_hour(times, scores <= before) < 0.5 < 0.83 < lowest_hour(times, scores <= after)
    assert abs((scores <= after).mean() - 0.9) < 0.01
    assert np.log(after).mean() < np.log(before).mean() - 0.1


def test_weekdays_count_where_weeks_are_many():
    times = HOUR * np.arange(24 * 7 * 20)
    weekend = (times // DAY + 3) % 7 >= 5
    scores = np.random.default_rng(1).chisquare(12, len(times)) * np.where(weekend, 3.0, 1.0)
    found = course_of(scores, times, 0.1)
    gain = np.mean(found.week[5:]) - np.mean(found.week[:5])
    assert gain == pytest.approx(np.log(3.0), abs=0.15)
    assert course_of(scores[: 24 * 20], times[: 24 * 20], 0.1).week == ()


@pytest.mark.parametrize("seed", range(3))
def test_where_hours_are_alike_nothing_is_made_up(seed):
    """Hardly any course is read off exchangeable scores, and the clock costs less than 1 % of width."""
    known, (scores, times) = halves(*by_the_hour(200, seed=seed))
    assert np.abs(course_of(*known, 0.1).day).max() < 0.1
    clocked, split = ByClock(Auto()), Split()
    radii = clocked.run(clocked.start(*known), scores, times)[0]
    best = np.sort(scores)[math.ceil(0.9 * len(scores)) - 1]
    assert np.sqrt(radii).mean() < 1.012 * math.sqrt(best)
    assert split.radius(split.start(known[0])) == ByClock(split).radius(ByClock(split).start(known[0]))


def test_a_single_sensor_without_a_course_pays_at_most_a_hundredth_of_the_width():
    """Beside the one radius that covers as much of the law of the scores: chance of the hours must not be followed."""
    costs, times, rule = [], HOUR * np.arange(5000), ByClock(Auto())
    for seed in range(3):
        rng = np.random.default_rng(seed)
        start = rule.start(rng.chisquare(1, 1500), times[:1500])
        radii = rule.run(start, rng.chisquare(1, 3500), times[1500:])[0]
        costs.append(np.sqrt(radii).mean() / math.sqrt(chi2.ppf(chi2.cdf(radii, 1).mean(), 1)) - 1)
    assert np.mean(costs) < 0.01


def test_an_hour_that_changes_its_ways_is_followed():
    known, _ = halves(*by_the_hour(120))
    times, scores = by_the_hour(120, seed=5, rough=3.0)
    times = times + known[1][-1] + HOUR
    plain, clocked = Auto(), ByClock(Auto())
    before = scores <= plain.run(plain.start(known[0]), scores)[0]
    after = scores <= clocked.run(clocked.start(*known), scores, times)[0]
    assert lowest_hour(times, before) < 0.65 < 0.75 < lowest_hour(times, after)


def test_no_sequence_is_missed_more_often_than_alpha_in_the_long_run():
    """Scores just above the radius whenever that is below a bound, and a jump by the clock every day."""
    rule, rng = ByClock(Auto()), np.random.default_rng(0)
    state = rule.start(rng.chisquare(12, 1000), HOUR * np.arange(1000))
    misses, steps = 0, 10_000
    for _ in range(steps):
        radius = rule.radius(state)
        score = 1.001 * radius if radius < 60.0 else 5.0
        assert 0.0 < radius < math.inf
        misses += score > radius
        state = rule.update(state, score)
    assert misses / steps < 0.11


# ---------------------------------------------------------------------- names and refusals


def test_the_clock_goes_around_any_rule_by_name():
    assert calibration("clock-aci", alpha=0.2, gamma=0.01) == ByClock(ACI(0.2, gamma=0.01))
    assert calibration("clock-aci-tail") == ByClock(ACI(tail=True))
    assert calibration("auto", alpha=0.2) == calibration("clock-auto", alpha=0.2) == ByClock(Auto(0.2))
    assert calibration("clock") == ByClock(Auto()) and calibration("auto-alone") == Auto()
    for name in ("clock-", "clock-clock-aci", "clocks", "clock-nothing"):
        with pytest.raises(InputError, match=r"unknown calibration .*clock-RULE"):
            calibration(name)
    for rule in (ByClock(ACI()), Fixed()):
        with pytest.raises(InputError, match="around a rule that has none"):
            ByClock(rule)


# ---------------------------------------------------------------------- predictors


@pytest.fixture(scope="module")
def blocks():
    """A network with hourly rows whose noise is three times as large in the afternoon."""
    made = generate_grssf("A", n=8, seed=3, length=3600).panel
    times = HOUR * np.arange(len(made))
    noise = np.random.default_rng(0).normal(size=made.values.shape)
    values = made.values + np.where(times % DAY >= DAY / 2, 6.0, 0.0)[:, None] * noise
    panel = Panel(values, made.sensors, timestamps=times, adjacency=made.adjacency)
    return panel[:1200], panel[1200:2400], panel[2400:]


@pytest.mark.parametrize("name", ["static", "static:box", "group"])
def test_every_kind_of_set_is_covered_in_both_halves_of_the_day(name, blocks):
    train, calibrating, test = blocks
    plain = predictor_for(f"{name}+aci").fit(train).calibrate(calibrating).run(test)
    clocked = predictor_for(f"{name}+clock-aci").fit(train).calibrate(calibrating).run(test)
    afternoon = test.timestamps % DAY >= DAY / 2
    assert plain.inside[afternoon].mean() < 0.82
    for half in (afternoon, ~afternoon):
        assert clocked.inside[half].mean() == pytest.approx(0.9, abs=0.025)
    assert clocked.log_volume.mean() < plain.log_volume.mean()


def test_without_time_stamps_the_rule_is_alone_and_says_so(blocks):
    bare = [Panel(block.values, block.sensors, adjacency=block.adjacency) for block in blocks]
    plain = predictor_for("static+aci").fit(bare[0]).calibrate(bare[1])
    with pytest.warns(UserWarning, match="no time stamps, so no clock: the rule is ACI alone"):
        clocked = predictor_for("static+clock-aci").fit(bare[0]).calibrate(bare[1])
    np.testing.assert_array_equal(clocked.run(bare[2]).radius, plain.run(bare[2]).radius)


def test_a_loaded_model_can_be_put_by_the_clock(blocks, tmp_path):
    """It knows the times of its calibration scores; what follows is at the time that follows."""
    train, calibrating, test = blocks
    plain = predictor_for("static+aci").fit(train).calibrate(calibrating)
    plain.save(tmp_path / "model")
    later = load_predictor(tmp_path / "model").rewrapped(ByClock(ACI()))
    clocked = predictor_for("static+clock-aci").fit(train).calibrate(calibrating)
    assert later.radius == clocked.radius
    assert "ACI by the clock at 90 %" in repr(later)
    np.testing.assert_array_equal(later.run(test).radius, clocked.run(test).radius)


def test_a_live_row_is_taken_at_its_own_time(blocks):
    """After a pause of half a day the set is that of the new hour."""
    train, calibrating, test = blocks
    predictor = predictor_for("static+clock-split").fit(train).calibrate(calibrating)
    late = test.timestamps + DAY // 2
    run = predictor.copy().run(Panel(test.values[:8], test.sensors, timestamps=late[:8], adjacency=test.adjacency))
    lines = [
        json.dumps({"time": int(when), **dict(zip(test.sensors, row.tolist(), strict=True))})
        for when, row in zip(late[:8], test.values[:8], strict=True)
    ]
    answers = list(Stream(predictor.copy()).answers(lines))
    assert [answer["radius"] for answer in answers] == run.radius.tolist()
    assert run.radius[0] != predictor.radius


def test_the_spread_of_a_course_is_that_of_the_log_scores_around_their_quantile():
    """From the middle of what is held to the middle of what is missed: half of a uniform law, at 90 %."""
    scores = np.exp(np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, 2001)))
    assert course_of(scores, np.arange(2001), 0.1).spread == pytest.approx(0.5, abs=0.01)
