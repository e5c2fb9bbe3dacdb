"""Readings by label: data frames, series and mappings in the order of a model's sensors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.contracts import Array, Reading, Readings
from jointset.errors import InputError, require, some, suggest
from jointset.inputs.outliers import LARGEST, too_large
from jointset.inputs.panel_checks import unmasked
from jointset.panel import Panel

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def panel_of(data: Readings, sensors: tuple[str, ...] = ()) -> Panel:
    """A panel as it is; of a data frame or a dict of columns by label; of an array (T, N) in the order of the sensors.

    Without sensors a data frame keeps its columns, and those of an array are named by their numbers.

    >>> panel_of([[1.0, 2.0], [3.0, 4.0]]).sensors
    ('0', '1')
    """
    if isinstance(data, Panel):
        return data
    require(
        not isinstance(data, (str, Path)), f"{data} is the name of a file: read it first, Panel.read({str(data)!r})"
    )
    if isinstance(data, Mapping):
        data = _frame(data)
    if type(data).__module__.partition(".")[0] == "xarray":
        panel = Panel.from_xarray(cast("xr.DataArray", data))
        return aligned(panel, sensors) if sensors else panel
    if _is(data, "DataFrame") or hasattr(data, "to_pandas"):
        panel = Panel.from_pandas(cast("pd.DataFrame", data))
        return aligned(panel, sensors) if sensors else panel
    values = np.asarray(unmasked(data))
    width = values.shape[1] if values.ndim == 2 else len(sensors)
    return Panel(values, sensors or tuple(str(i) for i in range(width)))


def _frame(columns: Mapping[str, object]) -> Any:
    """A data frame of columns by name."""
    import pandas as pd

    try:
        return pd.DataFrame(dict(columns))
    except ValueError as error:  # columns of several lengths, or single numbers
        raise InputError(f"a dict is taken as columns of equal length, one a sensor: {error}") from None


def aligned(panel: Panel, sensors: tuple[str, ...]) -> Panel:
    """The panel with its columns in this order; refused unless it has the same sensors."""
    expected, given = set(sensors), set(panel.sensors)
    missing = [name for name in sensors if name not in given]
    unknown = [name for name in panel.sensors if name not in expected]
    require(
        not missing,
        f"the readings lack sensors the model was fitted on: {some(missing)}; add the columns, empty if need be",
    )
    require(not unknown, f"the readings have sensors the model does not know: {some(unknown)}; drop the columns")
    return panel if panel.sensors == sensors else panel.select(sensors)


def require_sensors(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Refuse sensors that are not those of the model in its order."""
    missing = [s for s in expected if s not in given]
    extra = [s for s in given if s not in expected]
    named = f"sensor {(missing or extra or [''])[0]!r} ({len(missing or extra)} in all)"
    require(not missing, f"{named} is missing from the panel: the model was fitted on it")
    require(not extra, f"{named} is unknown to the model: use panel.select(predictor.sensors)")
    order = "the panel has the model's sensors in another order: use panel.select(predictor.sensors)"
    require(given == expected, order)


def reading_of(y: Reading, sensors: tuple[str, ...]) -> Array:
    """One reading (N,) in the order of the sensors, NaN = missing.

    A series, a mapping, and a panel or data frame of one row go by their labels, and a sensor without a label is
    missing; anything else is taken in the order of the sensors.

    >>> reading_of({"b": 2.0}, ("a", "b"))
    array([nan,  2.])
    """
    n = len(sensors)
    if isinstance(y, np.ndarray) or not (labelled := _labelled(y)):
        values = _numbers(y)
        if values.shape == (n,) and not np.count_nonzero(np.abs(values) > LARGEST):  # as nearly all are
            return values
    else:
        values = _by_label(*labelled, sensors)
    require(values.shape == (n,), f"a reading needs {n} values in the order of the sensors, got shape {values.shape}")
    if np.isinf(values).any():
        name = sensors[int(np.flatnonzero(np.isinf(values))[0])]
        raise InputError(f"the reading of sensor {name!r} is infinite: pass NaN for a missing reading")
    for i in np.flatnonzero(np.abs(values) > LARGEST):
        raise InputError(too_large(sensors[i], values[i]))
    return values


def _numbers(y: object) -> Array:
    try:
        return np.asarray(unmasked(y), dtype=float)
    except (TypeError, ValueError):
        raise InputError("a reading needs numbers, NaN where one is missing: got something else in it") from None


def in_order(y: Any, sensors: tuple[str, ...]) -> Array:
    """Readings (..., N) as they are; labelled ones by their labels, refused where the names are not known.

    >>> in_order({"b": 2.0}, ("a", "b"))
    array([nan,  2.])
    """
    rows = isinstance(y, Panel) or _is(y, "DataFrame")
    if isinstance(y, np.ndarray) or not (rows or _labelled(y)):
        return _numbers(y)
    require(
        bool(sensors), "the set does not know the names of its sensors: give the reading as an array in their order"
    )
    if not rows or len(y) == 1:
        return reading_of(y, sensors)
    frame = y.to_pandas() if isinstance(y, Panel) else y
    found = np.full((len(frame), len(sensors)), np.nan)
    try:
        found[:, _places([str(name) for name in frame.columns], sensors)] = frame.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(f"readings need numbers: {error}") from None
    return found


def _labelled(y: Any) -> tuple[list[str], Sequence[Any]] | None:
    """Labels and values of a labelled reading, None for any other."""
    if isinstance(y, Mapping):
        return [str(label) for label in y], list(y.values())
    if isinstance(y, Panel):
        require(len(y) == 1, f"the panel has {len(y)} rows, a reading is one: use run(panel) for several")
        return list(y.sensors), y.values[0].tolist()
    if _is(y, "DataFrame"):
        require(len(y) == 1, f"the data frame has {len(y)} rows, a reading is one: use run(frame) for several")
        y = y.iloc[0]
    return ([str(label) for label in y.index], y.tolist()) if _is(y, "Series") else None


def _by_label(labels: list[str], values: Sequence[object], sensors: tuple[str, ...]) -> Array:
    places = _places(labels, sensors)
    reading = np.full(len(sensors), np.nan)
    reading[places] = [_number(*pair) for pair in zip(labels, values, strict=True)]
    return reading


def _places(labels: list[str], sensors: tuple[str, ...]) -> list[int]:
    """Places of the labels of readings among the sensors."""
    require(len(labels) > 0, "the reading has no label: give at least one sensor, NaN where it is missing")
    place = {name: i for i, name in enumerate(sensors)}
    for label in labels:
        if label not in place:
            order = "values without labels, such as series.to_numpy(), are taken in the order of the sensors"
            raise InputError(f"the reading names an unknown sensor {label!r}: {suggest(label, sensors, order)}")
    if len(set(labels)) < len(labels):
        twice = sorted({label for label in labels if labels.count(label) > 1})
        raise InputError(f"the reading names sensors twice: {some(twice)}; give each once")
    return [place[label] for label in labels]


def _number(label: str, value: Any) -> float:
    """A number, NaN for None and for the missing values of pandas."""
    try:
        return float("nan") if value is None or value is getattr(_pandas(), "NA", None) else float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"the reading of sensor {label!r} is {value!r}, no number: pass NaN where it is missing"
        ) from None


def _pandas() -> Any:
    """pandas where it is loaded: what comes from it cannot come without it."""
    return sys.modules.get("pandas")


def _is(data: object, kind: str) -> bool:
    pandas = _pandas()
    return pandas is not None and isinstance(data, getattr(pandas, kind))
