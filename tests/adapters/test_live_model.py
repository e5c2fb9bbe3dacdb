"""Rows as dicts, one at a time: the numbers of the predictor, and nothing before there are enough rows."""

import math

import numpy as np
import pandas as pd
import pytest

import jointset
from jointset.adapters import LiveModel
from jointset.errors import InputError


@pytest.fixture(scope="module")
def rows():
    panel = jointset.generate_grssf("A", n=8, length=420).panel
    return [dict(zip(panel.sensors, row, strict=True)) for row in panel.values.tolist()]


def taught(rows, count):
    model = LiveModel("kalman", fit_after=250, calibrate_on=120)
    for row in rows[:count]:
        model.learn_one(row)
    return model


def test_nothing_is_said_before_there_are_enough_rows(rows):
    model = taught(rows, 369)
    assert repr(model) == "LiveModel(kalman; 369 of 370 rows gathered)"
    assert not model.ready and model.predict_one() == {} == model.blame_one(rows[369])
    assert model.score_one(rows[369]) == 0.0
    with pytest.raises(InputError, match="1 more are needed"):
        model.predict_set()


def test_then_it_is_the_predictor(rows):
    model = taught(rows, 390)
    assert repr(model).startswith("LiveModel(kalman; JointPredictor(")
    values = np.array([[*row.values()] for row in rows])
    same = jointset.predictor("kalman", warmup=30).fit(values[:250]).calibrate(values[250:370])
    for row in values[370:390]:
        same.update(row)
    assert list(model.predict_one().values()) == pytest.approx(same.predict().center.tolist(), rel=1e-12)
    outcome = same.copy().update(values[390])
    assert model.score_one(rows[390]) == pytest.approx(outcome.score / outcome.radius)
    assert (model.score_one(rows[390]) <= 1.0) == bool(model.predict_set().contains(values[390]))


def test_asking_changes_nothing_and_gaps_are_gaps(rows):
    model = taught(rows, 380)
    before = model.predict_one()
    blame = model.blame_one({**rows[380], "s003": 50.0})
    assert max(blame, key=blame.get) == "s003" and model.predict_one() == before
    gappy = {**rows[380], "s001": None}
    gappy.pop("s002")
    assert math.isfinite(model.score_one(gappy)) and math.isnan(model.score_one({"s000": math.nan}))
    model.learn_one(gappy)
    with pytest.raises(InputError, match="unknown sensor 'other'"):
        model.learn_one({"other": 1.0})


def test_a_wrong_name_is_refused_at_once():
    with pytest.raises(InputError, match="did you mean 'kalman'"):
        LiveModel("kalmann")


def test_rows_that_cannot_be_used_are_left_behind_by_later_ones(rows):
    model = LiveModel("kalman", fit_after=100, calibrate_on=60)
    stream = [{**row, "s003": 0.0 if t < 170 else row["s003"]} for t, row in enumerate(rows)]
    for row in stream[:159]:
        model.learn_one(row)
    for row in stream[159:230]:
        with pytest.raises(InputError, match="constant sensors"):
            model.learn_one(row)
    with pytest.raises(InputError, match="learn_one says why"):
        model.predict_set()
    model.learn_one(stream[230])
    assert model.ready


def test_early_rows_are_read_as_later_ones(rows):
    model = LiveModel("kalman", fit_after=100, calibrate_on=60)
    model.learn_one({"a": pd.NA, "b": None})
    for bad, said in (("x", "is 'x', no number"), (math.inf, "infinite")):
        with pytest.raises(InputError, match=said):
            model.learn_one({"a": bad})
    assert len(model._rows) == 1
