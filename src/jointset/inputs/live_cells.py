"""One row of a stream: what it is read to, how, and the columns and cells that it is read from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from jointset.contracts import Array
from jointset.errors import InputError, require, require_known, some
from jointset.inputs.fleet import AS_IT_IS, Fleet
from jointset.inputs.layout import SENSOR_NAMES, TIME_NAMES, plain
from jointset.inputs.reading_tables import MISSING
from jointset.support.files import NUMBER

FORMATS = ("auto", "csv", "json")
LAYOUTS = ("auto", "wide", "long")


class Reading(NamedTuple):
    """One row: readings (N,) in the order of the model, NaN = missing, and its time as it was written."""

    values: Array
    time: str | int | float | None


Found = tuple[int, Reading | Exception]  # the (last) row of a reading, from 1, and the reading or what is wrong with it


class Options(NamedTuple):
    """How lines are to be read."""

    format: str = "auto"
    layout: str = "auto"
    time_column: str | None = None
    fleet: Fleet = AS_IT_IS
    day_first: bool = False

    def checked(self) -> Options:
        """The options themselves, refused where a word is unknown."""
        require(self.format in FORMATS, f"unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")
        require(self.layout in LAYOUTS, f"unknown layout {self.layout!r}: choose one of {', '.join(LAYOUTS)}")
        return self


def is_long(names: Sequence[str], sensors: Sequence[str], options: Options) -> bool:
    """Whether a header is that of a long stream: as asked for, else by its three columns, none of them a sensor."""
    if options.layout != "auto":
        return options.layout == "long"
    if len(names) != 3 or any(options.fleet.called(name) in sensors for name in names):
        return False
    time = [name for name in names if name == options.time_column or is_time(name)]
    return len(time) == 1 and sum(plain(name) in SENSOR_NAMES for name in names) == 1


def cell_number(cell: str, name: str) -> float:
    """The number in a cell of a sensor, NaN where it is empty."""
    if cell in MISSING:
        return math.nan
    if NUMBER.fullmatch(cell) is None or math.isinf(number := float(cell)):
        raise InputError(f"sensor {name!r}: {cell[:40]!r} is no finite number: send one, or nothing")
    return number


def time_place(names: list[str], sensors: tuple[str, ...], asked: str | None) -> int | None:
    """Column of the time: the one asked for, else the one named like time that is no sensor."""
    if asked is not None:
        require_known(asked, names, f"no column {asked!r} for time in the header")
        return names.index(asked)
    found = [i for i, name in enumerate(names) if is_time(name) and name not in sensors]
    require(len(found) < 2, f"more than one time column ({some([names[i] for i in found])}): name one, --time-column")
    return found[0] if found else None


def is_time(name: str) -> bool:
    """Whether a column is named like time."""
    return plain(name) in TIME_NAMES


def places_of(sensors: Sequence[str], fleet: Fleet) -> dict[str, int | None]:
    """Place in the model by the names that rows may use; None for those that are left out."""
    place = {name: i for i, name in enumerate(sensors)}
    called = {name: fleet.called(name) for name in (*sensors, *fleet.rename, *fleet.drop)}
    return {name: None if new is None else place[new] for name, new in called.items() if new is None or new in place}
