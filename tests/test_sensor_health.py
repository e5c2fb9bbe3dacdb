"""Sensors that fall silent or stand still: counted as a plain loop counts them, judged by what training has seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jointset import generate_grssf, load
from jointset.inputs.fleet import Fleet
from jointset.inputs.sensor_health import (
    LEAST,
    SPELLS,
    falling_ill,
    observe,
    observe_rows,
    start_health,
    unknown_usual,
    usual_of,
)
from jointset.methods import predictor_for
from jointset.panel import Panel
from jointset.streaming import Stream


def spells(column: np.ndarray) -> tuple[int, int]:
    """Longest run of one value among the readings, and of gaps, counted one by one."""
    same = gap = longest_same = longest_gap = 0
    last = None
    for x in column:
        if np.isnan(x):
            gap += 1
        else:
            same, gap = same + 1 if x == last else 1, 0
            last = x
        longest_same, longest_gap = max(longest_same, same), max(longest_gap, gap)
    return longest_same, longest_gap


@pytest.fixture
def rows() -> np.ndarray:
    """Few values, many repeats, many gaps."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (400, 6)).astype(float)
    values[rng.random(values.shape) < 0.4] = np.nan
    return values


def test_training_rows_give_the_longest_spells(rows: np.ndarray) -> None:
    usual = usual_of(Panel(rows, list("abcdef"), 60 * np.arange(400)))
    expected = [spells(column) for column in rows.T]
    assert list(zip(usual.longest_same.tolist(), usual.longest_gap.tolist(), strict=True)) == expected
    np.testing.assert_allclose(usual.mean, np.nanmean(rows, axis=0))
    assert usual.cadence == 60


def test_live_spells_are_those_of_training_row_by_row(rows: np.ndarray) -> None:
    health, same, gap = start_health(6), [], []
    for row in rows:
        health = observe(health, row)
        same.append(health.same)
        gap.append(health.gap)
    usual = usual_of(Panel(rows, list("abcdef")))
    np.testing.assert_array_equal(np.max(same, axis=0), usual.longest_same)
    np.testing.assert_array_equal(np.max(gap, axis=0), usual.longest_gap)


def test_a_sensor_is_stuck_or_silent_past_its_own_limit_only() -> None:
    usual = unknown_usual(2)._replace(longest_same=np.array([1, 30]), longest_gap=np.array([30, 1]))
    health = start_health(2)
    first_stuck, first_silent = {}, {}
    for row in range(1, 200):
        health = observe(health, np.array([7.0, 7.0]))
        for i in np.flatnonzero(health.stuck(usual)):
            first_stuck.setdefault(int(i), row)
    for row in range(1, 200):
        health = observe(health, np.full(2, np.nan))
        for i in np.flatnonzero(health.silent(usual)):
            first_silent.setdefault(int(i), row)
    assert first_stuck == {0: LEAST + 1, 1: SPELLS * 30 + 1}
    assert first_silent == {0: SPELLS * 30 + 1, 1: LEAST + 1}
    assert health.empty == 199 and not health.stuck(usual).any()  # what is silent is not stuck as well


def test_a_spell_is_told_once_also_where_an_outage_of_all_lies_in_it() -> None:
    usual, names = unknown_usual(3), ("mute", "frozen", "well")
    rng, events, health = np.random.default_rng(0), [], start_health(3)
    for t in range(200):
        out = 60 <= t < 110  # as long as to make every sensor silent
        row = np.full(3, np.nan) if out else np.array([np.nan, 7.0, rng.normal()])
        before, health = health, observe(health, row)
        if not out:
            events += falling_ill(before, health, usual, names, t)
    assert [event.kind for event in events] == ["spells of silent sensors", "spells of stuck sensors"]


@pytest.mark.parametrize("seed", range(6))
def test_many_rows_at_once_are_as_many_one_by_one(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, size=(40, 7)).astype(float)
    values[rng.random(values.shape) < 0.4] = np.nan
    values[:, 0] = np.nan
    values[:, 1] = 1.0
    values[30:33] = np.nan
    health = start_health(7)
    for start, stop in ((0, 13), (13, 13), (13, 33), (33, 40)):
        before = health
        for row in values[start:stop]:
            before = observe(before, row)
        health = observe_rows(health, values[start:stop])
        for one, other in zip(health, before, strict=True):
            np.testing.assert_array_equal(one, other)


def test_trust_names_silent_and_stuck_sensors_and_a_model_remembers(tmp_path):
    panel = generate_grssf("A", n=8, length=900).panel
    predictor = predictor_for("kalman").fit(panel[:500]).calibrate(panel[500:800])
    assert predictor.trust().silent == predictor.trust().stuck == ()
    values = panel.values[800:].copy()
    values[:, 2], values[:, 5] = np.nan, 1.25
    stepped = predictor.copy()
    for y in values[:15]:
        stepped.update(y)
    stepped.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.trust().silent == ()
    loaded.run(panel[815:860].with_values(values[15:60]))
    predictor.run(panel[800:860].with_values(values[:60]))
    for one in (loaded, predictor):
        trust = one.trust()
        assert trust.silent == (panel.sensors[2],) and trust.stuck == (panel.sensors[5],)
        assert f"silent: {panel.sensors[2]!r}" in trust.verdict and f"stuck: {panel.sensors[5]!r}" in trust.verdict
        assert one.trust(sensors=False).verdict in trust.verdict and "silent" not in one.trust(sensors=False).verdict
    predictor.update(panel.values[880])
    assert predictor.trust().silent == predictor.trust().stuck == ()


def test_an_outage_of_all_sensors_makes_none_of_them_silent():
    panel = generate_grssf("A", n=8, length=900).panel
    predictor = predictor_for("kalman").fit(panel[:500]).calibrate(panel[500:800])
    predictor.run(panel[800:860].with_values(np.full((60, 8), np.nan)), regions=False)
    assert predictor.trust().silent == ()


def test_a_stream_goes_on_with_what_the_model_knows_of_its_sensors():
    panel = generate_grssf("A", n=8, length=900).panel
    predictor = predictor_for("kalman").fit(panel[:500]).calibrate(panel[500:800])
    values = panel.values[800:840].copy()
    values[:, 2] = np.nan
    predictor.run(panel[800:840].with_values(values), regions=False)
    told = []
    stream = Stream(predictor, trust=True, notice=told.append)
    row = dict(zip(panel.sensors, panel.values[840].tolist(), strict=True))
    del row[panel.sensors[2]]
    (answer,) = stream.answers([json.dumps(row)])
    assert told == [f"silent since before the first row: {panel.sensors[2]!r}"]
    assert answer["trust"]["silent"] == [panel.sensors[2]]
    quiet = Stream(predictor, fleet=Fleet(drop=(panel.sensors[2],)), notice=told.append)  # left out on purpose
    assert len(told) == 1 and quiet.closing() == []
