"""What the columns of a table are: time, sensor, readings; wide or long, by rules that can be foreseen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from jointset.errors import require, require_known, some
from jointset.support.files import NUMBER

Layout = Literal["auto", "wide", "long"]
Kind = Literal["number", "time", "text"]

DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
TIME_NAMES = {"time", "times", "timestamp", "timestamps", "date", "datetime", "utc", "timeutc", "datetimeutc"}
SENSOR_NAMES = {
    *("sensor", "sensors", "sensorid", "sensorname", "station", "stationid", "stationname", "id", "name", "node"),
    *("nodeid", "detector", "detectorid", "device", "deviceid", "site", "siteid", "location", "series", "uniqueid"),
}
WIDE = "--layout wide (a column per sensor; layout='wide' in Python)"
VALUE_NAMES = {"value", "values", "reading", "readings", "measurement", "y"}


class Plan(NamedTuple):
    """What each column of a table is, by position; `sensor` is None in a wide table."""

    time: int | None
    sensor: int | None
    values: list[int]


def cell_kind(cell: str) -> Kind:
    """Kind of a column from its first cell that is not missing."""
    cell = cell.strip()
    if not cell or NUMBER.fullmatch(cell):
        return "number"
    return "time" if DATE.fullmatch(cell) else "text"


def plain(name: str) -> str:
    """A name in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def plan_columns(names: Sequence[str], kinds: Sequence[Kind], layout: Layout, time_column: str | None) -> Plan:
    """What each column is, from names, kinds of cells and what the user said."""
    time = _time_index(names, kinds, time_column)
    rest = [i for i in range(len(names)) if i != time]
    sensor = _sensor_index(names, kinds, rest)
    if layout == "auto":
        layout = _detect_layout(names, time, rest, sensor)
    if layout == "wide":
        for i in rest:
            advice = "call it 'time' if it holds times, name it after its sensor, or drop it"
            require(names[i] != "", f"column {i + 1} (from 1) has no name: {advice}")
        split = "separate columns by commas, semicolons or tabs"
        require(len(rest) > 0, f"one column, {names[0]!r}, of times, and no sensors: {split}")
        return Plan(time, None, rest)
    long = f"a long table has three columns, time, sensor and value; found {some(names)}"
    require(time is not None and len(rest) == 2, f"{long}: take the others out of the file, or say {WIDE}")
    sensor = rest[0] if sensor is None else sensor
    return Plan(time, sensor, [i for i in rest if i != sensor])


def _time_index(names: Sequence[str], kinds: Sequence[Kind], time_column: str | None) -> int | None:
    """Place of the time column: the one asked for, else the one named like time, else the only one with dates."""
    if time_column is not None:
        require_known(time_column, names, f"no column {time_column!r} for time")
        return names.index(time_column)
    found = [i for i, name in enumerate(names) if plain(name) in TIME_NAMES]
    found = found or [i for i, kind in enumerate(kinds) if kind == "time"]
    several = f"more than one time column ({some([names[i] for i in found])})"
    require(len(found) < 2, f"{several}: join or drop one, or say --time-column (time_column=)")
    return found[0] if found else None


def _sensor_index(names: Sequence[str], kinds: Sequence[Kind], rest: list[int]) -> int | None:
    """Place of the column that names sensors: by its name, else the only one with text."""
    named = [i for i in rest if plain(names[i]) in SENSOR_NAMES]
    texts = [i for i in rest if kinds[i] == "text"]
    return next((found[0] for found in (named, texts) if len(found) == 1), None)


def _detect_layout(names: Sequence[str], time: int | None, rest: list[int], sensor: int | None) -> Layout:
    named = sensor is not None and plain(names[sensor]) in SENSOR_NAMES
    valued = any(plain(names[i]) in VALUE_NAMES for i in rest)
    if named and time is not None and len(rest) == 2:
        return "long"
    if named and valued:
        return "long"
    three = time is not None and len(rest) == 2 and (sensor is not None or valued)
    either = f"columns {some(names)} could be a wide or a long table"
    require(not three, f"{either}: say {WIDE}, or --layout long (time, sensor, value; layout='long' in Python)")
    return "wide"
