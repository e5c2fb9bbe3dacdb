"""Labelled readings: series, mappings and data frames go by their labels, in every kind of predictor."""

import numpy as np
import pandas as pd
import pytest

from jointset import GraphLGSSM, InputError, JointPredictor, Panel, generate_grssf
from jointset.inputs.labels import reading_of
from jointset.methods import predictor_for
from jointset.regions import named

MAKERS = {
    "filter": lambda: JointPredictor(GraphLGSSM()),
    "row": lambda: predictor_for("ewma"),
    "components": lambda: predictor_for("factor"),
    "published": lambda: predictor_for("copula"),
}


@pytest.fixture(scope="module")
def blocks():
    panel = generate_grssf("A", n=8, seed=3, length=1200).panel
    physical = panel.with_values(50.0 + np.arange(8) * panel.values + 3.0 * panel.values).with_graph(None)
    train, _, calibration, test = physical.split()
    return train, calibration, test


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def predictor(make, blocks):
    return make().fit(blocks[0]).calibrate(blocks[1])


def test_a_series_goes_by_its_labels(predictor, blocks):
    row = pd.Series(blocks[2].values[0], index=blocks[2].sensors)
    plain = predictor.copy().update(blocks[2].values[0])
    assert predictor.copy().update(row[::-1]) == plain
    assert predictor.copy().update(dict(row[::-1])) == plain
    assert predictor.copy().update(row[::-1].to_frame().T) == plain
    assert predictor.copy().update(blocks[2][:1]) == plain
    np.testing.assert_array_equal(predictor.contributions(row[::-1]), predictor.contributions(row.to_numpy()))


def test_sensors_without_a_label_are_missing(predictor, blocks):
    row = pd.Series(blocks[2].values[0], index=blocks[2].sensors)
    y = blocks[2].values[0].copy()
    y[[1, 4]] = np.nan
    partial = row.drop([blocks[2].sensors[1], blocks[2].sensors[4]])
    expected = predictor.copy().update(y)
    assert expected.observed == 6
    assert predictor.copy().update(partial) == expected
    assert predictor.copy().update({**partial, blocks[2].sensors[1]: None}) == expected


def test_labels_that_cannot_be_aligned_are_refused(predictor, blocks):
    names, y = blocks[2].sensors, blocks[2].values[0]
    bounds = predictor.predict().bounds
    for bad, message in (
        (pd.Series(y), "unknown sensor '0'.*to_numpy"),
        ({**dict(zip(names, y, strict=True)), "S001": 1.0}, "unknown sensor 'S001'.*'s001'"),
        (pd.Series(y, index=[names[0], *names[:-1]]), "twice.*'s000'"),
        (blocks[2].to_pandas()[:2], r"2 rows.*run\(frame\)"),
        (blocks[2][:3], r"3 rows.*run\("),
        ({names[2]: "high"}, "'s002'.*'high'"),
        (pd.Series(["low"] + [1.0] * 7, index=names), "'s000'.*'low'"),
        ({names[3]: np.inf}, "'s003'.*infinite"),
        ({}, "no label"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            predictor.update(bad)
        assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(predictor.predict().bounds, bounds)


def test_data_frames_are_as_good_as_panels(make, blocks):
    train, calibration, test = blocks
    reference = make().fit(train).calibrate(calibration).run(test)
    frames = [block.to_pandas() for block in blocks]
    turned = list(reversed(train.sensors))
    run = make().fit(frames[0]).calibrate(frames[1][turned]).run(frames[2][turned])
    assert run.sensors == train.sensors
    np.testing.assert_array_equal(run.timestamps, test.timestamps)
    np.testing.assert_array_equal(run.score, reference.score)
    np.testing.assert_array_equal(run.values, test.values)


def test_arrays_are_in_sensor_order(make, blocks):
    reference = make().fit(blocks[0]).calibrate(blocks[1]).run(blocks[2])
    arrays = [block.values for block in blocks]
    predictor = make().fit(arrays[0]).calibrate(arrays[1])
    assert predictor.sensors == tuple("01234567")
    np.testing.assert_array_equal(predictor.run(arrays[2]).score, reference.score)


def test_frames_that_do_not_fit_are_refused(make, blocks):
    predictor = make().fit(blocks[0])
    frame = blocks[1].to_pandas()
    for bad, message in (
        (frame.drop(columns=["s003"]), "'s003'"),
        (frame.assign(x1=1.0), "'x1'"),
        (frame.to_numpy()[:, :5], "8 sensor"),
        ("readings.csv", "Panel.read"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            predictor.calibrate(bad)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"Panel\.read"):
        make().fit("readings.csv")


def test_the_next_region_as_a_data_frame(predictor, blocks):
    region = predictor.predict()
    frame = region.to_pandas()
    assert list(frame.index) == list(blocks[0].sensors) and frame.index.name == "sensor"
    assert list(frame.columns) == ["lower", "mean", "upper"]
    np.testing.assert_array_equal(frame["lower"], region.bounds[0])
    np.testing.assert_array_equal(frame["upper"], region.bounds[1])
    np.testing.assert_array_equal(frame["mean"], region.center)


def test_a_region_asks_for_the_labels_of_a_reading(predictor, blocks):
    region = predictor.predict()
    inside = pd.Series(region.center, index=blocks[0].sensors)
    assert region.contains(inside[::-1]) and region.contains(dict(inside[::-1]))
    with pytest.raises(InputError, match="unknown sensor"):
        region.contains(pd.Series(region.center))
    unnamed = named(region, ())
    for reading in (inside, blocks[2].to_pandas()):
        with pytest.raises(InputError, match="names of its sensors"):
            unnamed.contains(reading)


def test_regions_of_a_run_keep_the_names(predictor, blocks):
    test = blocks[2][:40]
    regions, frame = predictor.run(test).regions, test.to_pandas()
    first = regions[0]
    assert tuple(first.to_pandas().index) == test.sensors == regions[2:5][1].sensors
    assert first.contains(frame.iloc[0, ::-1]) == first.contains(test.values[0])
    inside = regions.contains(test.values)
    for rows in (test, frame.iloc[:, ::-1], frame.astype("Float64").iloc[:, ::-1]):
        np.testing.assert_array_equal(regions.contains(rows), inside)
    np.testing.assert_array_equal(
        regions.contains(frame.drop(columns="s002")),
        regions.contains(frame.assign(s002=np.nan)[[*test.sensors]].to_numpy()),
    )
    with pytest.raises(InputError, match="unknown sensor 'other'"):
        regions.contains(frame.assign(other=1.0))
    for wrong in (0.0, test.values[:, :3], test.values.T):
        with pytest.raises(InputError, match="give 8 values in each row"):
            regions.contains(wrong)


def test_a_run_as_a_data_frame(predictor, blocks):
    values = blocks[2].values.copy()
    values[3] = np.nan
    run = predictor.run(blocks[2].with_values(values))
    frame = run.to_pandas()
    assert list(frame.columns) == ["score", "radius", "inside"] and frame.index.name == "time"
    assert frame.index[1].timestamp() == blocks[2].timestamps[1]
    assert frame["inside"].isna().sum() == 1 and pd.isna(frame["inside"].iloc[3])
    np.testing.assert_array_equal(frame["score"], run.score)
    wide = run.to_pandas(bounds=True)
    np.testing.assert_array_equal(wide["s002.lower"], run.lower[:, 2])
    first = run.regions[0].to_pandas(run.sensors)
    np.testing.assert_allclose(first["upper"], run.upper[0], rtol=1e-12)
    pd.testing.assert_frame_equal(run.regions[0].to_pandas(["s004", "s001"]), first.loc[["s004", "s001"]])
    assert list(run.regions[0].to_pandas("abcdefgh").index) == list("abcdefgh")
    with pytest.raises(InputError, match="2 names for 8 sensors"):
        run.regions[0].to_pandas(["s004", "other"])
    with pytest.raises(InputError, match=r"region\[t\]"):
        run.regions.to_pandas()


def test_without_times_a_run_is_numbered(blocks):
    predictor = JointPredictor(GraphLGSSM()).fit(blocks[0].values).calibrate(blocks[1].values)
    frame = predictor.run(blocks[2].values).to_pandas()
    assert list(frame.index) == list(range(len(blocks[2])))


def test_a_filter_given_by_name_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"jointset.predictor\('kalman-tuned'\)"):
        JointPredictor("kalman-tuned")


@pytest.mark.filterwarnings("ignore:.*shape fitted on the calibration rows")
def test_a_pilot_may_be_a_frame(blocks):
    train, calibration, test = blocks
    reference = predictor_for("ewma").fit(train, calibration).calibrate(calibration).run(test)
    frame = calibration.to_pandas()[list(reversed(train.sensors))]
    run = predictor_for("ewma").fit(train, frame).calibrate(calibration).run(test)
    np.testing.assert_array_equal(run.score, reference.score)


def test_a_panel_in_another_order_is_still_refused(blocks):
    predictor = JointPredictor(GraphLGSSM()).fit(blocks[0])
    turned = Panel(blocks[1].values, tuple(reversed(blocks[1].sensors)))
    with pytest.raises(InputError, match="another order"):
        predictor.calibrate(turned)


def test_a_reading_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="needs numbers"):
        reading_of(["a", "b"], ("x", "y"))


def test_masked_readings_are_missing(predictor, blocks):
    values = blocks[2].values[:20].copy()
    masked = np.ma.masked_where(np.random.default_rng(0).random(values.shape) < 0.3, values)
    gaps = masked.filled(np.nan)
    assert predictor.copy().update(masked[0]) == predictor.copy().update(gaps[0])
    np.testing.assert_array_equal(predictor.copy().run(masked).score, predictor.copy().run(gaps).score)
    region = predictor.predict()
    np.testing.assert_array_equal(region.contains(masked), region.contains(gaps))


@pytest.mark.filterwarnings("error")
def test_a_run_of_no_rows_says_so(predictor, blocks):
    run = predictor.run(blocks[2][:0])
    assert "steps 0" in repr(run) and np.isnan(run.joint) and np.isnan(run.summary()["width"])
