"""The Python door: a predictor by name, readings by label, another level at predict time, texts that say what it is."""

import inspect
import typing

import numpy as np
import pandas as pd
import pytest

import jointset
from jointset import JointPredictor, Panel, Split, generate_grssf
from jointset.errors import InputError
from jointset.methods import predictor_for


@pytest.fixture(scope="module")
def panel():
    return generate_grssf("A", n=8, length=900).panel


@pytest.fixture(scope="module")
def kalman(panel):
    return jointset.predictor("kalman").fit(panel[:500]).calibrate(panel[500:800])


# ---------------------------------------------------------------------- by name


def test_a_name_gives_the_predictor_of_the_table():
    made = jointset.predictor("ewma:box+aci", alpha=0.05, warmup=20, standardize=False)
    same = predictor_for("ewma:box+aci", alpha=0.05, warmup=20, standardize=False)
    assert repr(made.filter) == repr(same.filter)
    assert (made.score, made.calibration, made.warmup, made.standardize) == (same.score, same.calibration, 20, False)


def test_settings_of_training_reach_what_is_trained_and_nothing_else():
    assert jointset.predictor("default", seed=3, steps=7).filter.steps == 7
    assert jointset.predictor("spci", seed=3).filter.rule.seed == 3
    with pytest.raises(InputError, match="kalman is not trained: leave 'steps' out"):
        jointset.predictor("kalman", steps=7)
    with pytest.raises(InputError, match="default has no setting 'rate'"):
        jointset.predictor("default", rate=7)
    with pytest.raises(InputError, match="did you mean 'kalman'"):
        jointset.predictor("kalmann")
    with pytest.raises(InputError, match=r"use jointset.predictor\('kalman'\)"):
        JointPredictor("kalman")


# ---------------------------------------------------------------------- labels in and out


def test_a_frame_a_dict_and_an_array_fit_alike(panel):
    frame = panel.with_graph(None).to_pandas()
    columns = {name: frame[name].to_numpy() for name in frame}
    found = [
        jointset.predictor("kalman").fit(data[:500]).calibrate(data[500:800]).predict()
        for data in (frame, frame.to_numpy(), panel.with_graph(None))
    ]
    early = {name: column[:500] for name, column in columns.items()}
    late = {name: columns[name][500:800] for name in reversed(columns)}  # by label, in any order
    found.append(jointset.predictor("kalman").fit(early).calibrate(late).predict())
    for region in found[1:]:
        np.testing.assert_allclose(region.center, found[0].center, rtol=1e-12)
    assert list(found[-1].to_pandas().index) == list(panel.sensors)
    assert isinstance(found[0].to_pandas(), pd.DataFrame)


def test_a_dict_that_is_no_table_is_refused():
    for columns in ({"a": 1.0, "b": 2.0}, {"a": [1.0, 2.0], "b": [1.0]}):
        with pytest.raises(InputError, match="a dict is taken as columns of equal length, one a sensor"):
            jointset.predictor("kalman").fit(columns)


# ---------------------------------------------------------------------- another level


@pytest.mark.parametrize("name", ["kalman", "static:box", "factor", "group"])
def test_another_level_is_that_of_a_predictor_made_for_it(panel, name):
    train, calibration = panel[:500], panel[500:800]
    usual = jointset.predictor(name).fit(train).calibrate(calibration)
    other = jointset.predictor(name, alpha=0.3).fit(train).calibrate(calibration)
    np.testing.assert_array_equal(usual.predict(alpha=0.3).half_width, other.predict().half_width)
    np.testing.assert_array_equal(usual.predict(alpha=0.1).half_width, usual.predict().half_width)
    gappy = np.where(np.arange(8) % 2, panel.values[800], np.nan)
    assert usual.predict(alpha=0.3).contains(gappy) == other.predict().contains(gappy)
    assert usual.alpha == 0.1 and usual.predict(alpha=0.05).width > usual.predict().width


def test_a_level_that_cannot_be_had_is_refused(kalman, panel):
    with pytest.raises(InputError, match=r"251 calibration scores of the model are too few for alpha=0.001"):
        kalman.predict(alpha=0.001)
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        kalman.predict(alpha=1.0)
    for name, rule in (("kalman+aci", "ACI"), ("spci-empirical", "the method itself")):
        moving = jointset.predictor(name).fit(panel[:500]).calibrate(panel[500:800])
        with pytest.raises(InputError, match=f"{rule} keeps to alpha=0.1.* make a predictor with alpha=0.2"):
            moving.predict(alpha=0.2)


# ---------------------------------------------------------------------- what it says of itself


def test_a_predictor_says_what_is_fitted_on_what(kalman, panel, tmp_path):
    fresh = jointset.predictor("kalman")
    assert repr(fresh) == "JointPredictor(GraphLGSSM, ellipsoids, Split at 90 %; fitted on nothing yet)"
    assert "call fit(panel)" in fresh._repr_html_()
    assert repr(fresh.fit(panel[:500])).endswith("fitted on 500 rows of 8 sensors, calibrated on nothing yet)")
    text = repr(kalman)
    assert "fitted on 500 rows of 8 sensors, calibrated on 251 scores, last row seen 1970-01-03T18:35:00Z" in text
    kalman.save(tmp_path / "model")
    assert repr(jointset.load(tmp_path / "model")) == text
    own = jointset.predictor("spci-empirical", alpha=0.2)
    assert (
        repr(own)
        == "JointPredictor(spci-empirical, sets of its own shape, its own rule at 80 %; fitted on nothing yet)"
    )


def test_sets_and_runs_are_one_line_and_names_are_escaped(kalman, panel):
    run = kalman.copy().run(panel[800:])
    region = kalman.predict()
    assert repr(region).startswith("Ellipsoid(sensors 8 (s000, s001, s002, s003, ...), width ")
    assert repr(run.regions).startswith("Ellipsoid(steps 100, sensors 8 ")
    assert repr(run).startswith("Run(steps 100, sensors 8 (") and f"joint {run.joint:.4g}" in repr(run)
    odd = Panel(np.zeros((2, 1)), ("<b>",))
    assert "&lt;b&gt;" in odd._repr_html_() and "<b>)" not in odd._repr_html_()
    for thing in (region, run.regions, run, kalman, panel):
        assert "\n" not in repr(thing) and thing._repr_html_().startswith("<table>")


def test_every_kind_of_set_has_a_short_text(panel):
    for name in ("static:box", "group", "copula", "multidim-spci-empirical+aci", "spci-empirical", "group+aci"):
        region = jointset.predictor(name).fit(panel[:500]).calibrate(panel[500:800]).predict()
        assert "width" in repr(region) and len(repr(region)) < 150


def test_signatures_say_what_they_take():
    for method in (JointPredictor.fit, JointPredictor.calibrate, JointPredictor.run):
        assert inspect.signature(method).parameters["panel"].annotation == "Readings"
    for method in (JointPredictor.update, JointPredictor.contributions, JointPredictor.given_others):
        assert inspect.signature(method).parameters["y"].annotation == "Reading"
    hints = typing.get_type_hints(jointset.predictor)
    assert hints["return"] is JointPredictor and hints["alpha"] is float


def test_a_copy_of_the_rule_does_not_move(kalman):
    before = kalman.calibration_state
    kalman.predict(alpha=0.2)
    assert kalman.calibration == Split() and kalman.calibration_state is before
