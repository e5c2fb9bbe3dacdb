"""A model whose sensors change: the law of the rest stays, new ones start wide, what cannot be done is said."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import Panel, generate_grssf, load
from jointset.cli import app
from jointset.errors import InputError
from jointset.methods import predictor_for

PANEL = generate_grssf("B", n=10, seed=4, length=2600).panel
NAMES = PANEL.sensors
LEFT = [i for i in range(10) if i not in (2, 6)]
METHODS = ("kalman", "static", "ewma+aci", "ewma:box+aci", "gnf-node", "var")


@pytest.fixture(scope="module")
def predictors():
    made = {}

    def make(name):
        if name not in made:
            training = {"steps": 5} if name == "gnf-node" else None
            made[name] = predictor_for(name, training=training).fit(PANEL[:1000]).calibrate(PANEL[1000:1600])
        return made[name].copy()

    return make


@pytest.mark.parametrize("name", METHODS)
def test_without_a_sensor_the_law_is_that_of_the_rest(name, predictors):
    """Means, variances and coverage are those of the old model that never reads the sensors; stepping is the run."""
    before = predictors(name)
    after = before.with_sensors(drop=[NAMES[2], NAMES[6]])
    assert after.sensors == tuple(NAMES[i] for i in LEFT) and before.sensors == NAMES
    rows = PANEL[1600:2600] if name in ("kalman", "static") else PANEL[1600:1700]
    values = rows.values.copy()
    values[:, [2, 6]] = np.nan
    law, other = before.predict().law, after.predict().law
    np.testing.assert_allclose(other.variance, law.variance[LEFT])
    stepped = after.copy()
    old, new = before.run(rows.with_values(values)), after.run(rows.select(LEFT))
    np.testing.assert_allclose(new.mean, old.mean[:, LEFT], atol=1e-9)
    for t, y in enumerate(rows.values[:5, LEFT]):
        if rows.timestamps is not None:
            stepped.expect(int(rows.timestamps[t]))
        assert stepped.update(y).score == pytest.approx(new.score[t])
    if len(rows) == 1000:  # as a complete row of eight, or as one of ten that lacks two
        assert np.mean(new.inside != old.inside) < 0.01
        assert 0.86 < new.joint < 0.94


def test_other_names_change_nothing_else(predictors):
    before = predictors("ewma+aci")
    after = before.with_sensors(rename={NAMES[0]: "upstream"})
    assert after.sensors == ("upstream", *NAMES[1:])
    np.testing.assert_array_equal(after.predict().bounds, before.predict().bounds)
    assert after.update({"upstream": 1.0}).score == before.update({NAMES[0]: 1.0}).score


@pytest.mark.parametrize("name", ["kalman", "gnf-node"])
def test_a_new_sensor_joins_where_weights_are_shared(name, predictors):
    before = predictors(name)
    after = before.with_sensors(add={"new": {NAMES[1]: 1.0, NAMES[3]: 1.0}})
    law, old = after.predict().law, before.predict().law
    assert after.sensors == (*NAMES, "new")
    if name == "kalman":
        np.testing.assert_allclose(law.mean[:10], old.mean)
        np.testing.assert_allclose(law.variance[:10], old.variance)
        assert np.sqrt(law.variance[10]) > 2.0 * np.sqrt(law.variance[:10]).max()  # it starts wide
    near = before.shift[[1, 3]].mean()
    assert after.shift[10] == pytest.approx(near, rel=1e-6)
    readings = np.c_[PANEL.values[1600:], PANEL.values[1600:, 1]]
    run = after.run(readings)
    sd = (run.upper - run.lower)[-1]
    assert sd[10] < 1.5 * np.median(sd[:10])  # and settles
    assert 0.8 < run.joint < 0.97
    assert len(after.neighbourhoods(readings[0])) >= 10
    assert len(after.graph.ends) == len(before.graph.ends) + 4


def test_readings_that_stand_still_give_a_new_sensor_no_scale(predictors):
    near, rows = {NAMES[1]: 1.0}, PANEL.values[1500:1600]
    joined = [
        predictors("kalman").with_sensors(add={"new": near}, rows=Panel(np.c_[rows, own], [*NAMES, "new"]))
        for own in (np.full(100, 7.0), 7.0 + 2.0 * np.tile([-1.0, 1.0], 50))
    ]
    assert joined[0].scale[10] == pytest.approx(predictors("kalman").scale[1], rel=1e-6)
    assert (joined[1].shift[10], joined[1].scale[10]) == pytest.approx((7.0, 2.0))


def test_a_name_that_a_sensor_leaves_may_be_taken(predictors):
    before = predictors("kalman")
    moved = before.with_sensors(drop=[NAMES[0]], rename={NAMES[1]: NAMES[0]})
    assert moved.sensors == (NAMES[0], *NAMES[2:]) and NAMES[0] not in moved.left_out
    np.testing.assert_allclose(moved.predict().law.variance, before.predict().law.variance[1:])
    replaced = before.with_sensors(drop=[NAMES[0]], add={NAMES[0]: {NAMES[4]: 1.0}})
    assert replaced.sensors == (*NAMES[1:], NAMES[0])
    near = replaced.graph.adjacency(10)[-1]
    assert near.nonzero()[0].tolist() == [3]  # NAMES[4], a place further left
    last = PANEL[1000:1600].select([*range(1, 10), 0])
    read = before.with_sensors(drop=[NAMES[0]], add=[NAMES[0]], rows=last)
    assert read.shift[-1] == pytest.approx(PANEL.values[1000:1600, 0].mean())


def test_the_clock_of_the_next_row_stays_where_it_was(predictors):
    hours = PANEL.values * np.where(np.arange(2600) % 24 == 5, 3.0, 1.0)[:, None]
    hourly = Panel(hours, NAMES, timestamps=3600 * np.arange(2600), adjacency=PANEL.adjacency)
    model = predictor_for("kalman+clock-split").fit(hourly[:800]).calibrate(hourly[800:1800])
    model.run(hourly[1800:2021])  # the next row is one of the wild hour
    after = model.with_sensors(drop=[NAMES[3]])
    usual = after.radius
    after.expect(int(hourly.timestamps[2021]))
    assert after.radius == usual


def test_one_leaves_as_another_joins_and_rows_calibrate(predictors, tmp_path):
    before = predictors("kalman")
    values = np.c_[PANEL.values[1600:2200, LEFT], 50.0 + 4.0 * PANEL.values[1600:2200, 1]]
    rows = Panel(values, [*(NAMES[i] for i in LEFT), "new"], timestamps=PANEL.timestamps[1600:2200])
    after = before.with_sensors([NAMES[2], NAMES[6]], add={"new": {NAMES[1]: 1.0}}, rows=rows)
    assert after.sensors == rows.sensors
    assert after.shift[-1] == pytest.approx(values[:, -1].mean()) and after.n_calibration == 600 - 49
    after.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    last = np.r_[PANEL.values[2200, LEFT], 51.0]
    assert loaded.update(last).score == after.update(last).score
    assert loaded.left_out == (NAMES[2], NAMES[6])
    with pytest.raises(InputError, match="in the same step"):
        loaded.with_sensors(add=["another"])
    assert loaded.with_sensors(drop=[NAMES[0]]).update(last[1:]).observed == 8


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("static", {"add": ["new"]}, "fit it again on rows that have it"),
        ("factor", {"drop": [NAMES[0]]}, "fit it again on those there are now"),
        ("copula", {"drop": [NAMES[0]]}, "counts as missing"),
        ("multidim-spci-empirical+aci", {"drop": [NAMES[0]]}, "made for all its sensors together"),
        ("kalman", {"drop": ["nobody"]}, "no sensor 'nobody'"),
        ("kalman", {"drop": NAMES}, "keep at least one"),
        ("kalman", {"rename": {NAMES[0]: NAMES[1]}}, "two sensors would be called"),
        ("kalman", {"add": [NAMES[1]]}, "two sensors would be called"),
        ("kalman", {"add": {"new": {"nobody": 1.0}}}, "an edge to 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_said(name, change, message, predictors):
    with pytest.raises(InputError, match=message):
        predictors(name).with_sensors(**change)


def test_fills_health_and_places_go_with_their_sensors(predictors):
    before = predictors("kalman").learn_to_fill(PANEL[1500:1600])
    values = PANEL.values[1600:1640].copy()
    values[:, 5] = np.nan
    before.run(PANEL[1600:1640].with_values(values))
    after = before.with_sensors(drop=[NAMES[0]])
    assert after.ailing() == before.ailing() == {"silent": [NAMES[5]], "stuck": []}
    y = PANEL.values[1640, 1:].copy()
    y[3] = np.nan
    assert np.isfinite(after.impute(y).upper).all()
    np.testing.assert_array_equal(after.fill_quantiles.sensors, before.fill_quantiles.sensors[1:])


def test_the_command_lists_and_changes(predictors, tmp_path):
    def jointset(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    model, edges = tmp_path / "model", tmp_path / "edges.csv"
    predictor, values = predictors("kalman"), PANEL.values[1600:1640].copy()
    values[:, 5] = np.nan
    predictor.run(PANEL[1600:1640].with_values(values))
    predictor.save(model)
    listed = json.loads(jointset("sensors", model, "--json").output)
    assert listed[5]["health"] == "silent for 40 rows" and listed[0]["health"] == "well"
    assert NAMES[5] in jointset("sensors", model).output
    edges.write_text(f"source,target,weight\nnew,{NAMES[1]},1.0\nnew,elsewhere,1.0\n")
    changes = ["--drop", NAMES[5], "--rename", f"{NAMES[0]}=first", "--add", "new", "--graph", edges]
    done = jointset("sensors", model, *changes, "--out", tmp_path / "other")
    assert done.exit_code == 0, done.output
    other = load(tmp_path / "other")
    assert other.sensors == ("first", *NAMES[1:5], *NAMES[6:], "new")
    assert other.graph.adjacency(10)[9].sum() == 1.0
    for wrong, said in (
        (["--drop", NAMES[5]], "--out"),
        (["--rename", "a", "--out", tmp_path / "bad"], "OLD=NEW"),
        (["--drop", "nobody", "--out", tmp_path / "bad"], "no sensor"),
        (["--graph", edges, "--drop", NAMES[1], "--out", tmp_path / "bad"], "--add"),
    ):
        refused = jointset("sensors", model, *wrong)
        assert refused.exit_code == 2 and said in refused.output
    assert not (tmp_path / "bad").exists()


def test_sets_of_the_next_steps_go_on_where_rows_calibrate_them_and_else_are_said_to_be_gone(tmp_path):
    train, rows = PANEL[:600], PANEL[1600:2100]
    model = predictor_for("kalman+aci").fit(train).calibrate(PANEL[1000:1400], horizon=3)
    drop, left = [NAMES[2]], rows.select([i for i in range(10) if i != 2])
    after = model.with_sensors(drop=drop, rows=left)
    fresh = model.with_sensors(drop=drop).calibrate(left, horizon=3)
    np.testing.assert_array_equal(after.predict(horizon=3).together.bounds, fresh.predict(horizon=3).together.bounds)
    few = model.with_sensors(drop=drop, rows=left[:70])  # enough for one step alone
    assert few.horizon is None and few.n_calibration == 21

    model.save(tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", left.values, delimiter=",", header=",".join(left.sensors), comments="")
    start = ["sensors", str(tmp_path / "model"), "--drop", NAMES[2], "--out"]
    gone = CliRunner().invoke(app, [*start, str(tmp_path / "gone")])
    assert gone.exit_code == 0 and "no sets for 3 steps ahead" in gone.output
    kept = CliRunner().invoke(app, [*start, str(tmp_path / "kept"), "--rows", str(tmp_path / "rows.csv")])
    assert kept.exit_code == 0 and "steps ahead" not in kept.output
    assert load(tmp_path / "kept").predict(horizon=3).horizon == 3
