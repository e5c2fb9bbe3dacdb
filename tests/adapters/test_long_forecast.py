"""Long data frames in and out: the numbers of the predictor under the names that the Nixtla libraries use."""

import numpy as np
import pandas as pd
import pytest

import jointset
from jointset.adapters import LongForecast
from jointset.errors import InputError


@pytest.fixture(scope="module")
def long():
    values = jointset.generate_grssf("A", n=8, length=700).panel.values[:, :3]
    times = pd.date_range("2024-01-01", periods=700, freq="h")
    frame = pd.DataFrame(values, columns=["u", "v", "w"], index=times).rename_axis("ds").reset_index()
    return frame.melt("ds", var_name="unique_id", value_name="y")


def on(long, times):
    """The first rows at other times."""
    place = dict(zip(sorted(set(long.ds)), times, strict=False))
    kept = long[long.ds.isin(place)]
    return kept.assign(ds=kept.ds.map(place))


def test_forecasts_are_those_of_the_predictor(long):
    early = long[long.ds < "2024-01-29"]
    model = LongForecast("kalman", level=80).fit(early.sample(frac=1, random_state=1))
    assert repr(model).startswith("LongForecast(kalman at 80 %; JointPredictor(")
    found = model.predict()
    assert list(found) == ["unique_id", "ds", "jointset-kalman", "jointset-kalman-lo-80", "jointset-kalman-hi-80"]
    assert sorted(found.unique_id) == ["u", "v", "w"] and set(found.ds) == {pd.Timestamp("2024-01-29")}
    region = model.predictor.predict()
    np.testing.assert_array_equal(found["jointset-kalman-hi-80"], region.bounds[1])
    assert model.predictor.alpha == pytest.approx(0.2)


def test_later_rows_move_it_on(long):
    model = LongForecast("kalman").fit(long[long.ds < "2024-01-29"])
    told = model.update(long[long.ds >= "2024-01-29"])
    assert len(told) == 3 * 28 and told.inside.mean() > 0.6
    assert model.predict().ds.iloc[0] == long.ds.max() + pd.Timedelta("1h")
    one = told[told.unique_id == "v"]
    np.testing.assert_array_equal(one["y"], long[(long.unique_id == "v") & (long.ds >= "2024-01-29")]["y"])


def test_times_keep_their_zone_and_rows_without_a_reading_are_neither_in_nor_out(long):
    zoned = long.assign(ds=long.ds.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    last = zoned.ds.max()
    model = LongForecast("kalman").fit(zoned[zoned.ds < last])
    assert model.predict().ds.iloc[0] == last
    told = model.update(zoned[zoned.ds == last].assign(y=np.nan))
    assert (told.ds == last).all() and told.inside.isna().all()


def test_several_steps_ahead(long):
    model = LongForecast("kalman").fit(long, h=3)
    found = model.predict(3)
    assert len(found) == 9 and found.ds.nunique() == 3
    width = (found["jointset-kalman-hi-90"] - found["jointset-kalman-lo-90"]).to_numpy().reshape(3, 3)
    assert (width[:, 2] > width[:, 0]).all()  # series by series, the further the wider


def test_what_is_wrong_is_said(long):
    with pytest.raises(InputError, match="the forecast is not fitted"):
        LongForecast("kalman").predict()
    with pytest.raises(InputError, match="no column 'unique_id': it has 'ds', 'sensor', 'y'"):
        LongForecast("kalman").fit(long.rename(columns={"unique_id": "sensor"}))
    with pytest.raises(InputError, match="level must lie between 0 and 100"):
        LongForecast("kalman", level=0.0)


def test_fewer_steps_than_it_was_fitted_for(long):
    model = LongForecast("kalman").fit(long, h=3)
    whole, two = model.predict(3), model.predict(2)
    first = whole[whole.groupby("unique_id").cumcount() < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(two, first)
    for h in (0, 4):
        with pytest.raises(InputError, match=f"fitted for 1 to 3 steps, not {h}"):
            model.predict(h)


@pytest.mark.parametrize("freq", ["MS", "ME", "B", "W-WED", "QS-OCT"])
def test_the_next_times_follow_the_calendar(long, freq):
    times = pd.date_range("2001-03-01", periods=403, freq=freq)
    model = LongForecast("kalman").fit(on(long, times[:400]), h=3)
    assert sorted(set(model.predict(3).ds)) == [*times[400:]]


def test_local_days_begin_at_midnight_when_clocks_change(long):
    times = pd.date_range("2024-01-01", "2025-04-01", freq="D", tz="Europe/Berlin")
    model = LongForecast("kalman").fit(on(long, times[:-3]), h=3)
    assert sorted(set(model.predict(3).ds)) == [*times[-3:]]  # the night of 30 March has 23 hours


def test_numbers_stay_numbers(long):
    counted = on(long, range(500)).replace({"unique_id": {"u": 7, "v": 10, "w": 3}}).astype({"unique_id": int})
    model = LongForecast("kalman").fit(counted[counted.ds < 490], h=2)
    for found in (model.predict(2), model.update(counted[counted.ds >= 490])):
        assert found.ds.dtype.kind == "i" and found.unique_id.dtype == int
        assert set(found.unique_id) == {7, 10, 3} and found.ds.min() == 490
    classes = LongForecast("kalman").fit(long.astype({"unique_id": "category"})).predict().unique_id
    assert isinstance(classes.dtype, pd.CategoricalDtype) and sorted(classes) == ["u", "v", "w"]


def test_a_series_without_new_rows_is_missing(long):
    model = LongForecast("kalman").fit(long[long.ds < "2024-01-29"])
    later = long[long.ds >= "2024-01-29"]
    told = model.update(later[later.unique_id != "v"])
    assert told[told.unique_id == "v"].y.isna().all() and told.inside.notna().all()
    with pytest.raises(InputError, match="rows are of other series"):
        model.update(later.assign(unique_id="other").drop_duplicates("ds"))


def test_a_level_is_the_miss_rate_it_says(long):
    assert [LongForecast("kalman", level=level).fit(long).predictor.alpha for level in (90, 95)] == [0.1, 0.05]
