"""Lines of a stream to readings: wide CSV, long CSV or JSON, each bad row by itself.

Wide CSV has a header that names the sensors, in any order. Long CSV has the columns time, sensor and value: rows of one
time are one reading. JSON is one object or list a line: `{"time": ..., "values": {sensor: number}}`, a plain
`{sensor: number}`, or a list in the order of the model. Empty cells and null are missing readings.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, some
from jointset.inputs.fleet import Fleet, Notice, ignored_as_in_fit, match_columns, unknown_sensor
from jointset.inputs.layout import SENSOR_NAMES, plain
from jointset.inputs.live_cells import Found, Options, Reading, cell_number, is_long, is_time, places_of, time_place
from jointset.inputs.times import day_first_advice, live_seconds
from jointset.support.files import NUMBER, decimal_point, delimiter_of

BAD = (ValueError, ArithmeticError)  # InputError is a ValueError; nothing a row holds may end a stream


def readings(lines: Iterable[str], sensors: tuple[str, ...], options: Options, notice: Notice) -> Iterator[Found]:
    """The readings of a stream in order; blank lines are skipped. A header that cannot be used is refused."""
    filled = (line for line in lines if line.strip())
    first = next(filled, None)
    if first is None:
        return
    first = first.removeprefix("\ufeff")
    if options.format == "json" or (options.format == "auto" and first.lstrip()[0] in "{["):
        yield from _one_a_line(JsonRows(sensors, options, notice), chain([first], filled))
        return
    table = Table(first)
    if is_long(table.names, sensors, options):
        yield from LongRows(table, sensors, options, notice).read(filled)
    else:
        yield from _one_a_line(CsvRows(table, sensors, options, notice), filled)


def _one_a_line(parse: Callable[[str], Reading], lines: Iterable[str]) -> Iterator[Found]:
    for row, line in enumerate(lines, 1):
        try:
            yield row, parse(line)
        except BAD as error:
            yield row, error


class Strangers:
    """Names in rows that the model does not know: refused, or ignored and told of once."""

    def __init__(self, what: str, sensors: tuple[str, ...], fleet: Fleet, notice: Notice) -> None:
        self.what, self.sensors, self.fleet, self.notice = what, sensors, fleet, notice
        self.told: set[bool] = set()  # of those left out in `fit`, and of others

    def meet(self, names: list[str]) -> None:
        """Refuse these names, or say once that such are ignored."""
        new = [name for name in names if name not in self.fleet.left_out]
        if new and not self.fleet.ignore_unknown:
            raise InputError(unknown_sensor(new, self.sensors))
        if new and False not in self.told:
            self.notice(f"{self.what} that the model does not know are ignored: {some(new)}")
        if len(new) < len(names) and True not in self.told:
            self.notice(ignored_as_in_fit(self.fleet.left_out))
        self.told |= {name in self.fleet.left_out for name in names}


# ---------------------------------------------------------------------- CSV


class Table:
    """The header of a CSV stream, and lines to as many cells as it has."""

    def __init__(self, header: str) -> None:
        self.delimiter = delimiter_of(header)
        self.names = [name.strip() for name in self._cells(header, "the header")]

    def cells(self, line: str) -> list[str]:
        """The cells of a row."""
        cells, width = self._cells(line, "the row"), len(self.names)
        require(len(cells) == width, f"{len(cells)} cells, the header has {width}: send one cell per column")
        return [decimal_point(cell) for cell in cells] if self.delimiter == ";" else cells

    def _cells(self, line: str, what: str) -> list[str]:
        try:
            return next(csv.reader([line.rstrip("\r\n")], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"{what} is not CSV ({error}): check its quotes") from None


class CsvRows:
    """Rows of a wide CSV stream."""

    def __init__(self, table: Table, sensors: tuple[str, ...], options: Options, notice: Notice) -> None:
        self.table, self.sensors = table, sensors
        self.time = time_place(table.names, sensors, options.time_column)
        rest = [i for i in range(len(table.names)) if i != self.time]
        names = [table.names[i] for i in rest]
        plain_data = all(NUMBER.fullmatch(name) or live_seconds(name, options.day_first) is not None for name in names)
        data = plain_data and not all(name in sensors for name in names)
        what = f"the first line holds data ({some(names, 3)}), not names"
        require(not data, f"{what}: send a header with the sensor names")
        try:
            found = match_columns(names, sensors, options.fleet, notice)
        except InputError as error:
            if self.time is not None or not str(error).startswith("unknown sensor"):
                raise
            told = "no column is named like time: call that of the times 'time', or give stream --time-column"
            raise InputError(f"{error}; {told}") from None
        self.columns = [(rest[i], place) for i, place in found.items()]

    def __call__(self, line: str) -> Reading:
        """The reading of one line."""
        cells = self.table.cells(line)
        values = [math.nan] * len(self.sensors)
        for column, place in self.columns:
            values[place] = cell_number(cells[column].strip(), self.sensors[place])
        return Reading(np.array(values), None if self.time is None else cells[self.time].strip())


class LongRows:
    """Rows of a long CSV stream.

    Rows of one time are one reading. It is complete, and answered, when every sensor of the model has been read (those
    that are dropped apart), when a row of a later time comes, or at the end of input. A row of an earlier time, or of
    one that has been answered, comes too late and is a bad row.
    """

    def __init__(self, table: Table, sensors: tuple[str, ...], options: Options, notice: Notice) -> None:
        self.table, self.sensors, self.day_first = table, sensors, options.day_first
        time = time_place(table.names, sensors, options.time_column)
        rest = [i for i in range(len(table.names)) if i != time]
        require(
            time is not None and len(rest) == 2,
            f"a long stream has three columns, time, sensor and value; the header has {some(table.names)}",
        )
        assert time is not None
        self.time = time
        self.sensor = next((i for i in rest if plain(table.names[i]) in SENSOR_NAMES), rest[0])
        self.value = next(i for i in rest if i != self.sensor)
        self.place = places_of(sensors, options.fleet)
        self.known: tuple[str, int | None] = ("", None)  # a time as written, and in seconds
        self.expected = len({place for place in self.place.values() if place is not None})
        require(self.expected > 0, f"all {len(sensors)} sensors are left out: keep at least one")
        self.strangers = Strangers("rows of sensors", sensors, options.fleet, notice)

    def read(self, lines: Iterable[str]) -> Iterator[Found]:
        """The readings, each as soon as it is complete."""
        held: dict[int, float] = {}
        time, latest, answered, last = "", -math.inf, True, 0
        for row, line in enumerate(lines, 1):
            try:
                stamp, seconds, place, value = self._parse(line)
                if place is None and seconds <= latest:
                    continue
                late = seconds < latest or (seconds == latest and answered)
                require(not late, f"too late: the reading of {stamp} has been answered; send rows in the order of time")
                again = seconds == latest and place in held
                require(not again, f"two readings of {self._name(place)} at {stamp}: the first counts")
            except BAD as error:
                yield row, error
                continue
            if seconds > latest:
                if not answered:
                    yield last, self._reading(held, time)
                held, time, latest, answered = {}, stamp, seconds, False
            last = row
            if place is not None:
                held[place] = value
            if len(held) == self.expected:
                answered = True
                yield row, self._reading(held, time)
        if not answered:
            yield last, self._reading(held, time)

    def _parse(self, line: str) -> tuple[str, int, int | None, float]:
        """Time as written and in seconds, place of the sensor (None: left out) and value of one row."""
        cells = [cell.strip() for cell in self.table.cells(line)]
        stamp, name = cells[self.time], cells[self.sensor]
        if stamp != self.known[0]:  # most rows repeat the time of the last
            self.known = stamp, live_seconds(stamp, self.day_first)
        seconds = self.known[1]
        if seconds is None:
            advice = "write it like 2012-03-01T00:05:00Z, or as epoch seconds"
            raise InputError(f"{stamp[:40]!r} is no time: {advice}{day_first_advice(stamp)}")
        if name not in self.place:
            self.strangers.meet([name])
            return stamp, seconds, None, math.nan
        place = self.place[name]
        return stamp, seconds, place, math.nan if place is None else cell_number(cells[self.value], name)

    def _reading(self, held: dict[int, float], time: str) -> Reading:
        return Reading(np.array([held.get(i, math.nan) for i in range(len(self.sensors))]), time)

    def _name(self, place: int | None) -> str:
        return "" if place is None else repr(self.sensors[place])


# ---------------------------------------------------------------------- JSON


class JsonRows:
    """Rows of a JSON-lines stream."""

    def __init__(self, sensors: tuple[str, ...], options: Options, notice: Notice) -> None:
        self.sensors, self.time_column, self.fleet = sensors, options.time_column, options.fleet
        self.place = places_of(sensors, options.fleet)
        self.strangers = Strangers("columns", sensors, options.fleet, notice)

    def __call__(self, line: str) -> Reading:
        """The reading of one line."""
        try:
            row = json.loads(line, object_pairs_hook=_distinct)
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"the row is not JSON ({error}): send one object or list a line") from None
        return self.reading(row)

    def reading(self, row: Any) -> Reading:
        """The reading of what one line holds."""
        time = None
        if isinstance(row, dict):
            stamps = [name for name in row if name == self.time_column or (is_time(name) and name not in self.place)]
            time = _time(row.pop(stamps[0])) if stamps else None
            row = self._values(row)
        if isinstance(row, list):
            return Reading(self._in_order(row), time)
        require(isinstance(row, dict), "the row is neither an object nor a list: send one object or list a line")
        return Reading(self._by_name(row), time)

    def _values(self, row: dict[str, Any]) -> Any:
        """What an object holds under "values", unless that is the reading of a sensor; else the object itself."""
        found = row.get("values")
        whole = isinstance(found, (dict, list))
        sensor = "values" in self.place or self.fleet.rename.get("values") in self.place
        if "values" not in row or (sensor and not whole):
            return row
        given = f'"values" is {json.dumps(found)[:40]}'
        require(whole, f"{given}: send an object of sensors and numbers, or a list in the order of the model")
        return found

    def _in_order(self, row: list[Any]) -> Array:
        count = f"{len(row)} values for {len(self.sensors)} sensors"
        require(len(row) == len(self.sensors), f"{count}: send one per sensor, null where it is missing")
        values = np.array([json_number(name, value) for name, value in zip(self.sensors, row, strict=True)])
        values[[name in self.fleet.drop for name in self.sensors]] = np.nan
        return values

    def _by_name(self, row: dict[str, Any]) -> Array:
        values = [math.nan] * len(self.sensors)
        if self.fleet.rename:
            _distinct([(new, None) for name in row if (new := self.fleet.called(name)) is not None])
        unknown = []
        for name, value in row.items():
            if name not in self.place:
                unknown.append(name)
            elif (place := self.place[name]) is not None:
                values[place] = json_number(name, value)
        if unknown:
            self.strangers.meet(unknown)
        return np.array(values)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise InputError(f"the row repeats {some(twice)}: send every sensor once")
    return row


def json_number(name: str, value: Any) -> float:
    """The number of a sensor in JSON, NaN where it is null."""
    if value is None:
        return math.nan
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or abs(value) > sys.float_info.max:
        raise InputError(f"sensor {name!r}: {json.dumps(value)[:40]} is no finite number: send one, or null")
    return float(value)


def _time(value: Any) -> str | int | float | None:
    plain = value is None or isinstance(value, (str, int, float))
    require(plain and not (isinstance(value, float) and not math.isfinite(value)), "time must be text or a number")
    time: str | int | float | None = value
    return time
