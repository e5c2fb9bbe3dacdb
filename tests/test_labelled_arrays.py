"""Long data frames and xarray: the same panel whatever it comes in, and back again."""

import sys

import numpy as np
import pandas as pd
import pytest

import jointset
from jointset import Panel
from jointset.errors import InputError

xr = pytest.importorskip("xarray", reason="xarray is an extra")


@pytest.fixture(scope="module")
def panel():
    values = np.random.default_rng(0).normal(size=(60, 3))
    values[4, 1] = np.nan
    places = [[50.0, 8.0], [51.0, 9.0], [52.0, 10.0]]
    return Panel(values, ("a", "b", "c"), timestamps=3600 * np.arange(60), coordinates=places)


def test_long_rows_in_any_order_and_under_any_name(panel):
    long = panel.to_pandas().rename_axis("when").reset_index().melt("when", var_name="station", value_name="ozone")
    found = Panel.from_long(long.sample(frac=1, random_state=0), time="when", sensor="station", value="ozone")
    assert found.select(panel.sensors) == Panel(panel.values, panel.sensors, panel.timestamps)
    with pytest.raises(InputError, match="no column 'where': it has 'when', 'station', 'ozone'"):
        Panel.from_long(long, time="when", sensor="where", value="ozone")


def test_an_array_comes_back_as_it_was(panel):
    array = panel.to_xarray()
    assert Panel.from_xarray(array) == panel == Panel.from_xarray(array.transpose())
    assert Panel.from_xarray(array.to_dataset()) == panel
    assert array.sel(sensor="b", time="1970-01-01T05:00").item() == panel.values[5, 1]
    bare = xr.DataArray(panel.values, dims=("hour", "station"))
    assert Panel.from_xarray(bare, time="hour", sensor="station").sensors == ("0", "1", "2")
    with pytest.raises(InputError, match="an array over 'time' and 'sensor' is needed, this one has 'hour', 'station'"):
        Panel.from_xarray(bare)


def test_a_data_set_of_several_variables_must_name_one(panel):
    both = xr.Dataset({"speed": panel.to_xarray(), "flow": 2.0 * panel.to_xarray()})
    with pytest.raises(InputError, match="the data set has the variables 'speed', 'flow': name one of them"):
        Panel.from_xarray(both)
    with pytest.raises(InputError, match="no variable 'sped': did you mean 'speed'"):
        Panel.from_xarray(both, variable="sped")
    np.testing.assert_array_equal(Panel.from_xarray(both, variable="flow").values, 2.0 * panel.values)


def test_an_array_is_fitted_by_its_labels_and_a_run_is_a_data_set(panel):
    array = panel.to_xarray()
    predictor = jointset.predictor("kalman", warmup=1).fit(array[:30]).calibrate(array[30:50, ::-1])
    same = jointset.predictor("kalman", warmup=1).fit(panel[:30]).calibrate(panel[30:50])
    assert predictor.radius == same.radius
    run = predictor.run(array[50:])
    found = run.to_xarray()
    assert found["lower"].dims == ("time", "sensor") and found["inside"].dtype == bool
    assert found["upper"].sel(sensor="c").values.tolist() == run.upper[:, 2].tolist()
    assert found["score"].to_series().index.equals(pd.DatetimeIndex(panel.to_pandas().index[50:].tz_localize(None)))


def test_without_xarray_it_says_what_to_install(panel, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InputError, match=r"pip install 'jointset\[xarray\]'"):
        panel.to_xarray()


def test_times_of_an_array_are_checked_as_those_of_a_file():
    array = jointset.Panel(np.ones((3, 2)), ("a", "b"), timestamps=[0, 300, 600]).to_xarray()
    for times, said in ((["2026-01-01", "2026-01-02", "NaT"], "NaT"), ([0, 1500, 3000], "finer than a second")):
        stamps = np.array(times, dtype="datetime64[ms]").astype("datetime64[ns]")
        with pytest.raises(InputError, match=said):
            jointset.Panel.from_xarray(array.assign_coords(time=stamps))


@pytest.mark.parametrize("kind", ["complex", "U4"])
def test_an_array_of_no_numbers_is_refused(kind):
    array = jointset.Panel(np.ones((3, 2)), ("a", "b")).to_xarray().astype(kind)
    with pytest.raises(InputError, match="numbers"):
        jointset.Panel.from_xarray(array if kind == "complex" else array.where(False, "x"))
