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
