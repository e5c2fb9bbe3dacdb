import json
import math

import numpy as np
import pytest

from jointset import Panel, generate_grssf
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.jumps import (
    FORM,
    LAG,
    STAY,
    Neighbourhoods,
    follow,
    jump,
    jumps_of,
    start_jumps,
    usual_jumps,
)
from jointset.inputs.sensor_health import unknown_usual, words_on_jumps
from jointset.live.alarms import Alarms, Config, state_from_json, state_to_json
from jointset.live.displaced import Jumps
from jointset.live.happenings import GREEN, Happening, happening
from jointset.live.standing import engine_for
from jointset.methods import predictor_for
from jointset.streaming import take_step

N = 12
RING = sum(np.roll(np.eye(N), k, axis=1) for k in (1, 2, -1, -2))  # neighbourhoods of 5
SENSORS = [f"s{i}" for i in range(N)]


@pytest.fixture(scope="module")
def errors():
    """Errors of a month, some missing, larger by day, those near each other alike."""
    rng = np.random.default_rng(0)
    white = rng.standard_normal((30 * 288, N))
    by_day = 1.0 + 0.5 * (np.arange(8640) % 288 < 96)
    rows = (white + 0.1 * (white @ RING)) * by_day[:, None]
    whole = rows[5143:5150].copy()  # where jumps are put in
    rows[rng.random(rows.shape) < 0.05] = np.nan
    rows[3000:3040] = np.nan
    rows[5143:5150] = whole
    return rows


@pytest.fixture(scope="module")
def usual(errors):
    return usual_jumps(errors[:4320], edges_of(RING), 300)


@pytest.fixture(scope="module")
def engine(usual):
    return Alarms(Config(), SENSORS, RING, 300, usual)


def test_looking_only_for_large_jumps_misses_none(errors, usual):
    """Beyond a limit J is the same to the last bit; and most rows need no look at all."""
    around, state, passed, large = Neighbourhoods(edges_of(RING), N), start_jumps(usual), 0, 0
    weights = Jumps(around, usual, 288.0, 30.0).weights
    rows = errors[4320:5320].copy()
    rows[::50, :4] -= 5.0  # jumps that do not stay,
    rows[37::100] = np.repeat(rows[37::100, :1] + 9.0, N, axis=1)  # and others
    rows[25::200, 7] = 80.0
    for one in rows:
        state = follow(around, weights, usual, state, one)
        whole = jumps_of(around, state)
        for least in (1.0, 2.5, 4.0):
            found = jumps_of(around, state, least)
            assert np.array_equal(np.where(found >= least, found, 0.0), np.where(whole >= least, whole, 0.0))
        passed += not found.any()
        large += int((whole >= least).any())
    assert passed > 800 and large > 5


def row(one):
    return Happening(0.0, 0.5, 0.9, True, math.nan, np.full(N, 1 / N), (), (), GREEN, one)


def feed(engine, state, rows, at=0):
    told = []
    for t, one in enumerate(rows, at):
        state, changes = engine.step(state, row(one)._replace(time=300.0 * t))
        told += changes
    return state, told


@pytest.fixture(scope="module")
def standing(engine, errors):
    """After half a day as usual."""
    return feed(engine, engine.start(np.random.default_rng(1).random(2000)), errors[5000:5144])[0]


def changed(errors, course, sensors, start=5144, length=6):
    """Rows with a course added to some sensors."""
    rows = errors[start : start + length].copy()
    rows[: len(course), sensors] += np.array(course)[:, None]
    return rows


def test_stepping_finds_the_same_jumps_as_a_whole_block(errors, usual):
    around, state, most = Neighbourhoods(edges_of(RING), N), start_jumps(usual), []
    weights = around.weights(usual.precision, usual.sets)
    for one in errors[:4320]:
        state = follow(around, weights, usual, state, one)
        most.append(jumps_of(around, state).max(axis=1))
    days = np.array(most).reshape(-1, 288, 2).max(axis=1)
    assert np.allclose(days.T[:, 1:], usual.largest) and usual.rows == 288


def test_false_jumps_are_rarer_than_one_a_month(errors, usual):
    jumps = Jumps(Neighbourhoods(edges_of(RING), N), usual, 288.0, 30.0)
    local, found = jumps.start(), 0
    for one in errors[4320:]:
        after = jumps.step(local, one)
        found += len(after.off) > len(local.off)
        local = after
    assert found <= 1


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_neighbourhood_that_jumps_is_found_once_it_has_stayed_and_named_first(engine, standing, errors, way):
    state, told = feed(engine, standing, changed(errors, [way * 9.0, way * 6.0], [3, 4, 5, 6, 7]))
    (one,) = told
    assert (one.kind, one.event, one.time, one.neighbourhood[0]) == ("sustained", "raised", 300.0 * STAY, "s5")
    assert {*one.who} == {"s3", "s4", "s5", "s6", "s7"} and ("rose" if way > 0 else "dropped") in one.words
    assert feed(engine, state, errors[5150 : 5150 + 60], at=6)[1][0].event == "cleared"


@pytest.mark.parametrize(
    ("course", "sensors"),
    [
        ([-9.0, 9.0], [3, 4, 5, 6, 7]),  # back at once
        ([-9.0, -1.0, 10.0], [3, 4, 5, 6, 7]),  # and after two rows
        ([-9.0, -9.0, -9.0], [5]),  # one sensor
        ([-1.0, -1.5, -2.0, -2.5, -3.0, -3.0], [3, 4, 5, 6, 7]),  # a slow ramp
    ],
)
def test_what_goes_back_is_one_sensor_or_slow_is_no_jump(engine, standing, errors, course, sensors):
    assert feed(engine, standing, changed(errors, course, sensors, length=12))[1] == []


def test_an_alarm_lasts_while_its_neighbourhood_is_off_and_ends_after_the_way_back(engine, standing, errors):
    there = feed(engine, standing, changed(errors, [-9.0, -6.0], [3, 4, 5, 6, 7]))[0]
    back, told = feed(engine, there, changed(errors, [9.0, 6.0], [3, 4, 5, 6, 7], 5160, 16), at=6)
    assert ([one.event for one in told], back.open) == (["cleared"], ())
    assert feed(engine, there, errors[5160:5176], at=6)[0].open != ()


def test_a_jump_of_most_sensors_is_one_critical_alarm(engine, standing, errors):
    (told,) = feed(engine, standing, changed(errors, [-9.0, -6.0], range(10)))[1]
    assert told.severity == "critical" and "all over the network" in told.words and len(told.neighbourhood) >= 9


def test_far_neighbourhoods_have_an_alarm_each(engine, standing, errors):
    rows = changed(errors, [-12.0, -9.0], [10, 11, 0, 1])
    rows[:2, [4, 5, 6, 7, 8]] += np.array([[12.0], [9.0]])
    told = feed(engine, standing, rows)[1]
    assert [one.event for one in told] == ["raised", "raised"]
    assert {*told[0].neighbourhood}.isdisjoint(told[1].neighbourhood)


def test_a_restart_in_the_middle_of_a_jump_changes_no_bit(engine, standing, errors, usual):
    rows = [*changed(errors, [-9.0, -6.0], [3, 4, 5, 6, 7]), *errors[5150:5200]]
    state, told = feed(engine, standing, rows)
    again, told_again = standing, []
    for t, one in enumerate(rows):
        again, changes = feed(
            Alarms(Config(), SENSORS, RING, 300, usual), state_from_json(state_to_json(again)), [one], t
        )
        told_again += changes
    assert told == told_again and len(told) == 2 and state_to_json(state) == state_to_json(again)


def test_the_first_rows_after_an_outage_are_no_jump(engine, standing, errors):
    empty = row(np.full(N, np.nan))._replace(score=math.nan, inside=None)
    state = standing
    for t in range(10):
        state, _ = engine.step(state, empty._replace(time=300.0 * t))
    assert feed(engine, state, changed(errors, [-9.0, -6.0], [3, 4, 5, 6, 7]), at=10)[1] == []


def test_a_cleared_jump_needs_a_new_one(engine, standing, errors):
    state, (told,) = feed(engine, standing, changed(errors, [-9.0, -6.0], [3, 4, 5, 6, 7]))
    state = engine.act(state, told.id, "clear", 1800.0)[0]
    assert feed(engine, state, errors[5150:5160], at=6)[1] == []


def test_without_a_graph_or_with_few_rows_nobody_looks_for_jumps_and_words_say_so(errors, usual):
    assert usual_jumps(errors, None, 300) is None
    assert usual_jumps(errors[:50], edges_of(RING), 300) is None
    assert "--graph FILE" in words_on_jumps(unknown_usual(N), None)
    assert "too few" in words_on_jumps(unknown_usual(N), edges_of(RING))
    assert words_on_jumps(unknown_usual(N)._replace(jumps=usual), edges_of(RING)) == ""


@pytest.mark.filterwarnings("error")
def test_a_sensor_that_was_never_read_is_as_usual_and_warns_of_nothing(errors, usual):
    dead = errors[:4320].copy()
    dead[:, 3] = np.nan
    found = usual_jumps(dead, edges_of(RING), 300)
    assert found.sensors[3] == 1.0 and np.array_equal(np.delete(found.sensors, 3), np.delete(usual.sensors, 3))


@pytest.fixture(scope="module")
def city():
    """Speeds of a ring of roads, fitted on ten days of 48 rows."""
    rng = np.random.default_rng(3)
    values = np.empty((48 * 60, N))
    level = np.zeros(N)
    for t in range(len(values)):
        level = 0.6 * level + 0.2 * (RING @ level) / 4 + rng.standard_normal(N)
        values[t] = 60.0 + 2.0 * level
    panel = Panel(values, SENSORS, timestamps=1800 * np.arange(len(values)), adjacency=RING)
    return predictor_for("ewma").fit(panel[:1400]).calibrate(panel[1400:2600]), panel[2600:]


def test_a_model_knows_its_jumps_and_keeps_them(city, tmp_path):
    predictor = city[0]
    predictor.save(tmp_path / "model")
    usual, again = predictor.usual.jumps, type(predictor).load(tmp_path / "model").usual.jumps
    assert all(np.array_equal(a, b) for a, b in zip(usual, again, strict=True))


def test_a_drop_by_a_fifth_of_a_neighbourhood_is_found_through_a_model(city):
    predictor, live = city
    engine = Alarms(Config(), SENSORS, RING, 1800, predictor.usual.jumps)
    state, told = engine.start(predictor.calibration_scores), []
    for t, values in enumerate(live.values):
        y = values * np.where(np.isin(np.arange(N), [3, 4, 5, 6, 7]) & (t >= 100), 0.8, 1.0)
        step = take_step(predictor, y)
        state, changes = engine.step(state, happening(step, 1800.0 * t, GREEN))
        predictor, told = step.after, told + changes
    first = told[0]
    assert (first.kind, first.event) == ("sustained", "raised")
    assert 1800.0 * 100 <= first.time <= 1800.0 * 105
    assert {*first.neighbourhood} <= {"s2", "s3", "s4", "s5", "s6", "s7", "s8"}
    assert len([one for one in told if one.kind == "sustained" and one.event == "raised"]) == 1


def test_no_jump_is_larger_than_the_sum_of_its_row():
    """So a row whose sums before it are all small needs no look at jumps."""
    rng = np.random.default_rng(0)
    past = rng.standard_t(2, (LAG, 2_000))
    past[rng.random(past.shape) < 0.1] = np.nan
    assert (jump(past) <= np.where(np.isnan(past[3]), 0.0, np.abs(past[3]))).all()


def test_an_even_move_counts_more_than_one_of_the_same_sum():
    around = Neighbourhoods(edges_of(RING), N)
    even, uneven = np.full(N, -2.0), np.where(np.arange(N) % 2, -4.0, 0.0)
    which = np.zeros(1, dtype=int)  # five sensors, of which the fourth smallest move decides
    assert around.even(-even[None], which) == pytest.approx(2.0 * math.sqrt(5.0))
    assert around.even(-uneven[None], which) == 0.0
    assert around.even(np.full((1, N), np.nan), which) == 0.0


def test_the_first_reading_of_a_sensor_after_a_gap_is_no_jump(usual, errors):
    around, gone = Neighbourhoods(edges_of(RING), N), errors[5000:5144].copy()
    gone[-1, 2:9] = np.nan  # s2 to s8 in the row before
    state, weights = start_jumps(usual), around.weights(usual.precision, usual.sets)
    for one in gone:
        state = follow(around, weights, usual, state, one)
    for one in changed(errors, [-9.0, -6.0], [3, 4, 5, 6, 7]):
        state = follow(around, weights, usual, state, one)
        assert jumps_of(around, state)[1].max() < 3.5


def test_what_a_model_of_an_older_form_says_of_jumps_is_left_alone(usual, errors):
    assert usual.form == FORM
    engine = Alarms(Config(), SENSORS, RING, 300, usual._replace(form=1))
    assert engine.jumps is None and engine.start(np.arange(100.0)).local is None


def test_a_state_of_an_older_service_opens_and_looks_for_jumps_anew(engine, standing, errors):
    tree = json.loads(state_to_json(standing))
    tree["local"] = [[*tree["local"][0], [], []], [0.0] * N, []]  # as it was with the form before
    state = feed(engine, state_from_json(json.dumps(tree)), errors[5144:5146])[0]
    assert np.array_equal(state.local.sums.read, feed(engine, standing, errors[5144:5146])[0].local.sums.read)


def test_what_the_whole_network_does_is_taken_off_what_a_neighbourhood_does():
    """A drop of 5 of 30 sensors stands out more where errors have a common part that the others show."""
    rng, n = np.random.default_rng(0), 30
    ring = sum(np.roll(np.eye(n), k, axis=1) for k in (1, 2, -1, -2))
    rows = 0.6 * rng.standard_normal((4320, n)) + rng.standard_normal((4320, 1))
    around, found = Neighbourhoods(edges_of(ring), n), usual_jumps(rows, edges_of(ring), 300)
    moved = np.where(ring[5] + np.eye(n)[5] > 0, -1.0, 0.0)
    plain = around.weights(None)
    weighed, before = (
        around.sums(moved, w)[5] / np.sqrt((around.sums(rows, w)[:, 5] ** 2).mean())
        for w in (around.weights(found.precision), plain)
    )
    assert weighed < 1.5 * before < 0


def test_few_maxima_that_happen_to_lie_close_make_no_low_limit():
    """Eight blocks of an eighth of 600 rows: their spread alone once raised an alarm about nothing."""
    panel = generate_grssf("A", n=12, seed=4, length=2400).panel
    predictor = predictor_for("kalman").fit(panel[:1200]).calibrate(panel[1200:1800])
    engine = engine_for(predictor, None)
    state, told = engine.start(predictor.calibration_scores), []
    for t, y in enumerate(panel.values[1800:2200]):
        step = take_step(predictor, y)
        state, changes = engine.step(state, happening(step, 300.0 * t, GREEN))
        predictor, told = step.after, told + changes
    assert told == []


@pytest.mark.parametrize(
    ("before", "taken"), [([1.0, 1.0, 1.0], 3.0), ([2.0, 0.5, 0.0], 2.5), ([math.nan, 1.0, 1.0], 2.0)]
)
def test_what_stood_out_before_a_jump_is_taken_off(before, taken):
    """All three rows before it count, those that are missing as 0."""
    rest = [6.0, 1.0, 0.0, 2.0]
    plain, found = (jump(np.array([*rows, *rest])[:, None])[0, 0] for rows in ([0.0] * 3, before))
    assert plain - found == pytest.approx(taken / (2.0 * math.sqrt(3.0)))
