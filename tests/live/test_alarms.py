import json
import math

import numpy as np
import pytest

from jointset.errors import InputError
from jointset.live.alarms import RELEARN, Alarms, Config, state_from_json, state_to_json
from jointset.live.evidence import add_evidence, evidence_course, limit_of, log_bet, rank_among, reference_of
from jointset.live.happenings import GREEN, RED, Happening
from jointset.live.incidents import CALM

N, DAY = 8, 288
SENSORS = [f"s{i}" for i in range(N)]
RING = np.roll(np.eye(N), 1, axis=1) + np.roll(np.eye(N), -1, axis=1)
EVEN = np.full(N, 1.0 / N)


@pytest.fixture(scope="module")
def engine():
    return Alarms(Config(), SENSORS, RING, 300)


@pytest.fixture(scope="module")
def start(engine):
    return engine.start(np.random.default_rng(1).random(3000))


def row(score=0.5, shares=EVEN, silent=(), stuck=(), light=GREEN):
    return Happening(
        0.0, score, 0.9, None if math.isnan(score) else score <= 0.9, math.nan, shares, silent, stuck, light
    )


def feed(engine, state, rows, at=0):
    """The state after rows 300 seconds apart, and all that was told."""
    told = []
    for t, one in enumerate(rows, at):
        state, changes = engine.step(state, one._replace(time=300.0 * t))
        told += changes
    return state, told


def usual(count, seed=0):
    return [row(score) for score in np.random.default_rng(seed).random(count)]


def blamed(*names):
    shares = np.zeros(N)
    shares[[SENSORS.index(name) for name in names]] = 1.0 / len(names)
    return shares


def events(told):
    return [(one.kind, one.event) for one in told]


# ---------------------------------------------------------------------- evidence


def test_bets_have_the_mean_one_under_chance_and_ranks_are_valid_p_values():
    assert np.mean([math.exp(log_bet(k / 1001)) for k in range(1, 1002)]) <= 1.0
    reference = np.sort(np.random.default_rng(0).random(999))
    ranks = np.array([rank_among(reference, x) for x in np.random.default_rng(1).random(4000)])
    assert (ranks <= 0.1).mean() <= 0.1 + 4 * math.sqrt(0.09 / 4000) + 0.03


def test_evidence_is_the_sum_over_all_moments_a_change_may_have_begun():
    bets = [log_bet(p) for p in (0.3, 0.02, 0.9, 0.01)]
    log_r = -50.0
    for bet in bets:
        log_r = add_evidence(log_r, bet)
    assert math.exp(log_r) == pytest.approx(sum(math.exp(sum(bets[k:])) for k in range(4)))


def alarms_a_month(make, months=12):
    """Mean number of times that evidence passes its limit in a month of rows, begun anew each time."""
    found = 0
    for seed in range(months):
        scores = make(np.random.default_rng(seed), 3400 + 8640)
        reference = reference_of(scores[:3400])
        limit = limit_of(evidence_course(scores[:3400], reference), 288.0)
        log_r = -50.0
        for score in scores[3400:].tolist():
            log_r = add_evidence(log_r, log_bet(rank_among(reference, score)))
            if log_r >= limit:
                found, log_r = found + 1, -50.0
    return found / months


def independent(rng, length):
    return rng.chisquare(20, length)


def by_hour(rng, length):
    """Scores that follow each other, and are twice as large in four hours of the day."""
    x = rng.standard_normal(length)
    for t in range(1, length):
        x[t] = 0.8 * x[t - 1] + 0.6 * x[t]
    return np.exp(x) * np.where(np.arange(length) % 288 < 48, 2.0, 1.0)


@pytest.mark.parametrize("make", [independent, by_hour])
def test_false_alarms_come_once_a_month_at_most(make):
    assert alarms_a_month(make) <= 1.0


def test_the_nominal_limit_alone_would_not_do_for_scores_that_follow_each_other():
    scores = by_hour(np.random.default_rng(0), 3400)
    course = evidence_course(scores, reference_of(scores))
    assert course.max() > math.log(8640) + 2.0
    assert limit_of(course, 288.0) > course.max()


def test_ties_and_missing_scores_have_a_place():
    reference = reference_of(np.array([2.0, math.nan, 1.0, 2.0]))
    assert reference.tolist() == [1.0, 2.0, 2.0]
    assert rank_among(reference, 2.0) == rank_among(reference, 1.5)


# ---------------------------------------------------------------------- raising and clearing


def test_a_month_as_usual_is_quiet_and_so_is_a_single_miss(engine, start):
    state, told = feed(engine, start, usual(2000))
    assert told == []
    assert feed(engine, state, [row(99.0), *usual(50)])[1] == []


def test_a_lasting_change_is_raised_once_and_ends_after_it(engine, start):
    state, told = feed(engine, start, [*usual(100), *[row(5.0, blamed("s2", "s3"))] * 60])
    assert events(told) == [("sustained", "raised")]
    first = told[0]
    assert first.time <= 300 * 106 and first.since == first.time
    assert first.who == ("s2", "s3") and {"s2", "s3"} <= {*first.neighbourhood} and first.severity == "warning"
    assert "'s2'" in first.words and state.open[0].id == first.id
    state, told = feed(engine, state, usual(100, seed=5), at=160)
    assert events(told) == [("sustained", "cleared")] and state.open == ()
    assert told[0].time >= 300 * (160 + CALM - 1) and told[0].since == first.since


def test_evidence_that_comes_and_goes_does_not_flap(engine, start):
    rows = ([row(5.0)] * 6 + usual(6, seed=2)) * 10
    told = feed(engine, start, rows)[1]
    assert events(told) == [("sustained", "raised")]


def test_a_whole_network_off_its_course_is_critical_and_named_as_a_whole(start):
    engine = Alarms(Config(), SENSORS, np.ones((N, N)), 300)
    (told,) = feed(engine, start, [row(5.0)] * 20)[1]
    assert told.severity == "critical" and "around" not in told.words


def test_one_sensor_to_blame_is_one_alarm_of_that_sensor(engine, start):
    far = [row(1.0 if t % 4 == 0 else 0.5, blamed("s5")) for t in range(40)]
    state, told = feed(engine, start, far)
    assert events(told) == [("sensor", "raised")] and told[0].who == ("s5",)
    assert events(feed(engine, state, usual(100), at=40)[1]) == [("sensor", "cleared")]


def test_a_sensor_within_a_change_raises_no_second_alarm(engine, start):
    told = feed(engine, start, [row(5.0, blamed("s5"))] * 60)[1]
    assert len([one for one in told if one.event == "raised"]) == 1


# ---------------------------------------------------------------------- silent and stuck sensors, coverage


def test_sensors_that_fall_silent_together_are_one_alarm_and_each_later_one_its_own(engine, start):
    one, two = row(silent=("s1",)), row(silent=("s1", "s2"))
    state, told = feed(engine, start, [one, two, *[two] * 20])
    assert events(told) == [("silent", "raised"), ("silent", "updated")]
    assert told[-1].who == ("s1", "s2")
    state, told = feed(engine, state, [row(silent=("s1", "s2", "s6"))] * 3, at=30)
    assert [(one.event, one.who) for one in told] == [("raised", ("s6",))]
    told = feed(engine, state, [row(silent=("s6",))] * 20, at=40)[1]
    assert [(one.event, one.who) for one in told] == [("cleared", ("s1", "s2"))]


def test_an_outage_of_the_network_is_one_alarm_whatever_fell_silent_before(engine, start):
    state, told = feed(engine, start, [row(silent=("s1",))] * 10)
    empty = row(math.nan, np.zeros(N), silent=tuple(SENSORS))
    state, told = feed(engine, state, [empty] * 300, at=10)
    assert events(told) == [("silent", "raised")] and told[0].severity == "critical" and told[0].who == tuple(SENSORS)
    state, told = feed(engine, state, [row(silent=("s1",))] * 40, at=310)
    assert [(one.event, one.severity) for one in told] == [("cleared", "critical")]
    assert [one.who for one in state.open] == [("s1",)]


def test_most_sensors_silent_is_one_alarm(engine, start):
    told = feed(engine, start, [row(silent=tuple(SENSORS[:6]))] * 30)[1]
    assert [(one.event, one.severity, len(one.who)) for one in told] == [("raised", "critical", 6)]


def test_a_stuck_sensor_is_told_and_cleared_with_hysteresis(engine, start):
    state, told = feed(engine, start, [row(stuck=("s4",)), row(), row(stuck=("s4",)), *[row()] * 30])
    assert events(told) == [("stuck", "raised"), ("stuck", "cleared")] and state.open == ()


def test_coverage_is_an_alarm_while_red_and_until_green(engine, start):
    rows = [row(light=RED)] * 2 + [row()] + [row(light=RED)] * 3 + [row(light="amber")] * 50
    state, told = feed(engine, start, rows)
    assert events(told) == [("coverage", "raised")] and told[0].time == 300 * 5
    assert events(feed(engine, state, [row()] * 20, at=60)[1]) == [("coverage", "cleared")]


# ---------------------------------------------------------------------- restart and people


def test_a_restart_at_any_row_tells_nothing_and_changes_no_bit(engine, start):
    rng = np.random.default_rng(3)
    rows = [
        *usual(30),
        *[row(5.0 * x, blamed("s1", "s2"), ("s7",), ("s3",), RED) for x in rng.random(30) + 0.5],
        *[row(math.nan, np.zeros(N))] * 25,
        *usual(60, seed=9),
    ]
    state, told = feed(engine, start, rows)
    again, told_again = start, []
    for t, one in enumerate(rows):
        again = state_from_json(state_to_json(again))
        again, changes = feed(Alarms(Config(), SENSORS, RING, 300), again, [one], at=t)
        told_again += changes
    assert told == told_again and len(told) >= 8
    assert state_to_json(state) == state_to_json(again)
    json.loads(state_to_json(state), parse_constant=pytest.fail)


def test_an_acknowledged_change_becomes_the_usual_and_the_next_one_is_found(engine, start):
    rng = np.random.default_rng(4)
    state, told = feed(engine, start, [row(3.0 + x) for x in rng.random(20)])
    assert events(told) == [("sustained", "raised")]
    state, changes = engine.act(state, told[0].id, "acknowledge", 6000.0)
    assert events(changes) == [("sustained", "acknowledged")] and state.open[0].acknowledged
    state, told = feed(engine, state, [row(3.0 + x) for x in rng.random(RELEARN + 100)], at=20)
    assert events(told) == [("sustained", "cleared")] and state.open == ()
    assert events(feed(engine, state, [row(9.0)] * 20, at=900)[1]) == [("sustained", "raised")]


def test_without_a_word_a_change_stays_one_alarm(engine, start):
    rng = np.random.default_rng(4)
    state, told = feed(engine, start, [row(3.0 + x) for x in rng.random(600)])
    assert events(told) == [("sustained", "raised")] and len(state.open) == 1


def test_a_silenced_alarm_is_muted_until_its_time(engine, start):
    state, told = feed(engine, start, [row(silent=("s1",))])
    state, changes = engine.act(state, told[0].id, "silence", 300.0, until=900.0)
    assert events(changes) == [("silent", "silenced")] and not changes[0].muted
    early = feed(engine, state, [row(silent=("s1", "s2"))], at=1)[1]
    late = feed(engine, state, [row(silent=("s1", "s2"))], at=4)[1]
    assert [one.muted for one in early + late] == [True, False]


def test_a_change_of_the_scores_that_comes_again_within_a_day_is_the_same_alarm(engine, start):
    state, told = feed(engine, start, [row(2.0, blamed("s2", "s3"))] * 20)
    state, told = feed(engine, state, usual(DAY // 2), at=20)
    assert events(told) == [("sustained", "cleared")]
    state = state_from_json(json.dumps(json.loads(state_to_json(state))))  # also after a restart
    state, told = feed(engine, state, [row(2.0, blamed("s3", "s4"))] * 20, at=20 + DAY // 2)
    assert events(told) == [("sustained", "reopened")] and len(state.open) == 1
    assert (told[0].id, told[0].since) == ("sustained-1", 300.0 * 3) and set(told[0].who) == {"s3", "s4"}
    state, _ = feed(engine, state, usual(DAY + 60, seed=1), at=200)
    assert events(feed(engine, state, [row(2.0)] * 20, at=600)[1]) == [("sustained", "raised")]


def test_another_place_is_another_alarm_and_the_whole_network_is_every_place(engine, start):
    state, _ = feed(engine, start, [row(2.0, blamed("s2", "s3"))] * 20)
    state, _ = feed(engine, state, usual(60), at=20)
    elsewhere = [row(2.0, blamed("s6", "s7"))] * 20
    _, told = feed(engine, state, elsewhere, at=80)
    assert events(told) == [("sustained", "raised")] and told[0].id == "sustained-2"
    everywhere, told = feed(engine, state, [row(2.0)] * 20, at=80)
    assert events(told)[0] == ("sustained", "reopened") and told[0].neighbourhood == ()
    assert "around" not in told[0].words
    everywhere, _ = feed(engine, everywhere, usual(60, seed=2), at=100)
    assert events(feed(engine, everywhere, elsewhere, at=160)[1]) == [("sustained", "reopened")]


def test_a_change_of_the_scores_that_comes_again_before_coverage_is_back_is_the_same_alarm(engine, start):
    state, _ = feed(engine, start, [row(2.0)] * 20)
    state, told = feed(engine, state, [one._replace(trust=RED) for one in usual(2 * DAY)], at=20)
    assert events(told) == [("coverage", "raised"), ("sustained", "cleared")]
    assert events(feed(engine, state, [row(2.0)] * 20, at=700)[1])[0] == ("sustained", "reopened")


def test_a_change_that_was_ended_by_hand_does_not_come_again(engine, start):
    state, _ = feed(engine, start, [row(2.0)] * 20)
    state, _ = feed(engine, state, usual(60), at=20)
    state, _ = feed(engine, state, [row(2.0)] * 20, at=80)
    state, _ = engine.act(state, "sustained-1", "clear", 300.0 * 100)
    assert events(feed(engine, state, [row(2.0)] * 20, at=100)[1]) == [("sustained", "raised")]


def test_an_alarm_cleared_by_hand_needs_new_evidence(engine, start):
    state, told = feed(engine, start, [row(5.0)] * 30)
    state, changes = engine.act(state, told[0].id, "clear", 9000.0)
    assert events(changes) == [("sustained", "cleared")] and state.open == ()
    assert feed(engine, state, usual(50), at=31)[1] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sustained-9", "acknowledge", 0.0), "no open alarm 'sustained-9': open are 'silent-1'"),
        (("silent-1", "acknowlege", 0.0), "did you mean 'acknowledge'"),
        (("silent-1", "silence", 100.0, 50.0), "give until"),
    ],
)
def test_an_action_that_makes_no_sense_is_refused_in_one_line(engine, start, arguments, words):
    state = feed(engine, start, [row(silent=("s1",))])[0]
    with pytest.raises(InputError, match=words):
        engine.act(state, *arguments)
