"""Panels from tables and arrays that carry labels: long data frames, and xarray in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, require_known, some
from jointset.panel import Panel
from jointset.support.extras import optional

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from jointset.runs import Run

PLACES = (("lat", "latitude"), ("lon", "longitude"))  # names that coordinates of sensors go by


def panel_from_long(frame: pd.DataFrame, time: str, sensor: str, value: str) -> Panel:
    """The panel of a table with one reading a row, its columns named; rows in any order."""
    here = [str(name) for name in frame.columns]
    lacking = [name for name in (time, sensor, value) if name not in here]
    require(not lacking, f"the data frame has no column {some(lacking)}: it has {some(here)}")
    columns = {time: "time", sensor: "sensor", value: "value"}
    rows = frame[[*columns]].rename(columns=columns).reset_index(drop=True)
    return Panel.from_pandas(rows, layout="long", time_column="time")


def panel_from_xarray(data: xr.DataArray | xr.Dataset, time: str, sensor: str, variable: str | None) -> Panel:
    """The panel of an array over time and sensor, in any order of its axes; places of the sensors where it has them."""
    array: Any = data if not hasattr(data, "data_vars") else _variable(data, variable)
    dims = [str(dim) for dim in array.dims]
    expected = f"an array over {time!r} and {sensor!r} is needed, this one has {some(dims)}"
    require(sorted(dims) == sorted((time, sensor)), f"{expected}: select one step of the others, or name the two axes")
    array = array.transpose(time, sensor)
    names = array[sensor].values if sensor in array.coords else range(array.sizes[sensor])
    stamps = array[time].values if time in array.coords and array[time].dtype.kind == "M" else None
    try:
        values = np.asarray(array.values, dtype=array.dtype if array.dtype.kind == "c" else float)  # a panel refuses it
    except (TypeError, ValueError):
        raise InputError(f"the array holds {array.dtype}, not numbers: convert it first") from None
    return Panel(values, tuple(str(name) for name in names), stamps, coordinates=_places(array, sensor))


def _variable(data: Any, variable: str | None) -> Any:
    """The named variable of a data set, or its only one."""
    names = [str(name) for name in data.data_vars]
    require(variable is not None or len(names) == 1, f"the data set has the variables {some(names)}: name one of them")
    name = variable or names[0]
    require_known(name, names, f"the data set has no variable {name!r}")
    return data[name]


def _places(data: Any, sensor: str) -> Array | None:
    """Latitude and longitude (N, 2) of the sensors, where the array carries both."""
    found = [next((data[name] for name in names if name in data.coords), None) for names in PLACES]
    known = [one.values.astype(float) for one in found if one is not None and one.dims == (sensor,)]
    return np.stack(known, axis=1) if len(known) == len(PLACES) else None


def array_of(panel: Panel) -> xr.DataArray:
    """A panel as an array over time and sensor."""
    xr = optional("xarray", "an xarray array")
    places = {} if panel.coordinates is None else {"lat": panel.coordinates[:, 0], "lon": panel.coordinates[:, 1]}
    coords = _axes(panel) | {name: ("sensor", values) for name, values in places.items()}
    return xr.DataArray(panel.values.copy(), dims=("time", "sensor"), coords=coords, name="reading")


def arrays_of(run: Run) -> xr.Dataset:
    """A run as a data set: readings, means and ends over time and sensor; score, radius, inside and sizes over time."""
    xr = optional("xarray", "an xarray data set")
    wide = {"reading": run.values, "mean": run.mean, "lower": run.lower, "upper": run.upper}
    narrow = {name: getattr(run, name) for name in ("score", "radius", "inside", "width", "width_full", "log_volume")}
    variables = {name: (("time", "sensor"), values) for name, values in wide.items()}
    return xr.Dataset(variables | {name: (("time",), values) for name, values in narrow.items()}, coords=_axes(run))


def _axes(data: Panel | Run) -> dict[str, Any]:
    stamps = data.timestamps
    time = {} if stamps is None else {"time": stamps.astype("datetime64[s]").astype("datetime64[ns]")}
    return {"sensor": list(data.sensors), **time}
