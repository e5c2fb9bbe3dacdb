"""Bodies of requests to readings: JSON, CSV and InfluxDB line protocol. A body is read whole or refused whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import orjson

from jointset.contracts import Array
from jointset.errors import InputError, require
from jointset.inputs.fleet import Fleet
from jointset.inputs.live_cells import Options, Reading, is_long
from jointset.inputs.live_rows import BAD, CsvRows, JsonRows, LongRows, Table, _distinct
from jointset.inputs.times import live_seconds
from jointset.live.joining import Single
from jointset.live.line_protocol import Point, points

JSON, LINES, CSV, INFLUX = "json", "json lines", "csv", "line protocol"
UNITS = {"ns": 10**9, "us": 10**6, "u": 10**6, "µ": 10**6, "ms": 10**3, "s": 1, "m": 1 / 60, "h": 1 / 3600}
PLAIN = {"time", "values"}
NUMBERS = (float, int)
MOST_ROWS = 10_000  # of one request
SENSOR_TAGS = ("sensor", "sensor_id", "sensorid", "station", "detector", "device", "id")


class Whole(NamedTuple):
    """One row: readings (N,), NaN = missing, its time in epoch seconds, and as it was given."""

    values: Array
    seconds: int
    time: str | int | float


class Batch(NamedTuple):
    """What a request holds: rows, or readings of single sensors; `many`: whether it was a list."""

    rows: list[Whole]
    singles: list[Single]
    many: bool = True


class Reader:
    """Bodies for the sensors of one model."""

    def __init__(self, sensors: tuple[str, ...], fleet: Fleet) -> None:
        self.sensors, self.fleet = sensors, fleet
        self.options = Options(fleet=fleet)
        self.json = JsonRows(sensors, self.options, lambda text: None)
        self.place = self.json.place
        self.colons = any(":" in name for name in self.place)

    def ignores(self, name: str) -> bool:
        """Whether readings under a name are left out: when the model was fitted, or as unknown ones where asked for."""
        if name in self.place:
            return self.place[name] is None
        return self.fleet.ignore_unknown or name in self.fleet.left_out

    def read(self, body: bytes, kind: str, precision: str = "ns") -> Batch:
        """The readings of a body."""
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"the body is not UTF-8 text (byte {error.start}): send UTF-8") from None
        require(bool(text.strip()), "the body is empty: send at least one row")
        try:
            if kind == JSON:
                return self._json(text)
            if kind == LINES:
                return Batch([self._row(i, line) for i, line in _numbered(text)], [])
            return self._csv(text) if kind == CSV else self._influx(text, precision)
        except InputError:
            raise
        except BAD as error:
            raise InputError(" ".join(str(error).split())) from None

    def _json(self, text: str) -> Batch:
        rows = self._plain_rows(text)
        if rows:
            return Batch(rows, [])
        try:
            found = json.loads(text, object_pairs_hook=_distinct)
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"the body is not JSON ({error}): send one row, or a list of rows") from None
        if not isinstance(found, list):
            return Batch([self._whole("the row", found)], [], many=False)
        require(0 < len(found) <= MOST_ROWS, f"{len(found):,} rows in one request: send 1 to {MOST_ROWS:,}")
        return Batch([self._whole(f"row {i}", row) for i, row in enumerate(found, 1)], [])

    def _plain_rows(self, text: str) -> list[Whole] | None:
        """A list of rows as nearly all are; None where it has to be looked at closely.

        Without a backslash strings are what they look like, so colons can be counted: one a key, and those inside names
        and times. A key that was there twice is one colon too many.
        """
        if "\\" in text or not text.startswith("["):
            return None
        try:
            found = orjson.loads(text)
        except ValueError:
            return None
        if not 0 < len(found) <= MOST_ROWS:
            return None
        rows, colons = [], 0
        for row in found:
            plain = self._plain(row)
            if plain is None:
                return None
            rows.append(plain)
            colons += len(PLAIN) + len(row["values"]) + str(plain.time).count(":")
            colons += sum(name.count(":") for name in row["values"]) if self.colons else 0
        return rows if text.count(":") == colons else None

    def _row(self, number: int, line: str) -> Whole:
        try:
            found = json.loads(line, object_pairs_hook=_distinct)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number} is not JSON ({error}): send one row a line") from None
        return self._whole(f"line {number}", found)

    def _whole(self, where: str, row: object) -> Whole:
        plain = self._plain(row)
        if plain is not None:
            return plain
        shape = '{"time": ..., "values": {sensor: number or null}}'
        require(isinstance(row, dict), f"{where} is no object: send {shape}")
        try:
            return self._timed(where, self.json.reading(row))
        except BAD as error:
            said = str(error)
            raise InputError(said if said.startswith(where) else f"{where}: {said}") from None

    def _plain(self, row: object) -> Whole | None:
        """A row as nearly all are, time and numbers by the names of sensors; None where it has to be looked at."""
        if type(row) is not dict or row.keys() != PLAIN or type(row["values"]) is not dict or self.fleet.rename:
            return None
        time, given, place = row["time"], row["values"], self.place
        seconds: int | None = time if type(time) is int and 10**9 <= time < 10**10 else None
        if seconds is None and type(time) in (str, int):
            seconds = live_seconds(time)
        values = [math.nan] * len(self.sensors)
        for name, value in given.items():
            at = place.get(name)
            if at is None:
                return None
            if type(value) in NUMBERS and -1e300 < value < 1e300:
                values[at] = value
            elif value is not None:
                return None
        return None if seconds is None or abs(seconds) >= 10**11 else Whole(np.array(values), seconds, time)

    def _timed(self, where: str, found: Reading) -> Whole:
        require(found.time is not None, f"{where} has no time: send one, so that a row sent twice counts once")
        assert found.time is not None
        return Whole(found.values, seconds_of(found.time, where), found.time)

    def _csv(self, text: str) -> Batch:
        lines = list(_numbered(text))
        table = Table(lines[0][1])
        if is_long(table.names, self.sensors, self.options):
            long = LongRows(table, self.sensors, self.options, lambda text: None)
            found = (self._long(long, i, line) for i, line in lines[1:])
            return Batch([], [one for one in found if one is not None])
        rows = CsvRows(table, self.sensors, self.options, lambda text: None)
        require(
            rows.time is not None, "the header names no time column: send one, so that a row sent twice counts once"
        )
        require(len(lines) > 1, "there is a header but no row: send at least one")
        return Batch([self._wide(rows, i, line) for i, line in lines[1:]], [])

    def _wide(self, rows: CsvRows, number: int, line: str) -> Whole:
        try:
            return self._timed(f"line {number}", rows(line))
        except BAD as error:
            said = str(error)
            raise InputError(said if said.startswith("line ") else f"line {number}: {said}") from None

    def _long(self, rows: LongRows, number: int, line: str) -> Single | None:
        try:
            _, seconds, place, value = rows._parse(line)
        except BAD as error:
            raise InputError(f"line {number}: {error}") from None
        return None if place is None or math.isnan(value) else Single(place, seconds, value)

    def _influx(self, text: str, precision: str) -> Batch:
        require(precision in UNITS, f"unknown precision {precision!r}: choose one of {', '.join(UNITS)}")
        singles: list[Single] = []
        for number, line in _numbered(text):
            for point in points(number, line):
                singles += self._singles(number, point, UNITS[precision])
        return Batch([], singles)

    def _singles(self, number: int, point: Point, unit: float) -> Iterator[Single]:
        """The readings of one point: of the sensors its fields are named after, or of the one that a tag names."""
        require(point.stamp is not None, f"line {number} has no time stamp: send one, so that it counts once if resent")
        assert point.stamp is not None
        seconds = seconds_of(
            math.floor(point.stamp / unit) if unit <= 1 else point.stamp // int(unit), f"line {number}"
        )
        known = [name for name in point.fields if name in self.place]
        tagged = next((point.tags[tag] for tag in SENSOR_TAGS if tag in point.tags), None)
        if known:
            named = {name: point.fields[name] for name in known}
        else:
            name = tagged if tagged is not None else point.measurement
            value = point.fields.get("value", next(iter(point.fields.values())))
            named = {name: value}
        for name, value in named.items():
            if self.ignores(name):
                continue
            if name not in self.place:
                words = "name sensors in fields, or one in the tag sensor, as `fit` knew them"
                raise InputError(f"line {number}: the model knows no sensor {name[:60]!r}: {words}")
            if not isinstance(value, float):
                raise InputError(f"line {number}: sensor {name!r} reads {str(value)[:40]!r}, no number: send one")
            place = self.place[name]
            if place is not None and not math.isnan(value):
                yield Single(place, seconds, value)


def seconds_of(when: object, where: str) -> int:
    """Epoch seconds of a time as it is given; what is finer than a second is cut off, the unit of numbers is judged
    by their size.
    """
    seconds = live_seconds(when) if isinstance(when, (str, int, float)) else None
    if seconds is None or not -(10**11) < seconds < 10**11:
        raise InputError(
            f"{where}: {str(when)[:40]!r} is no time: write it like 2012-03-01T00:05:00Z, or as epoch seconds"
        )
    return seconds


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1."""
    lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    require(len(lines) <= MOST_ROWS + 1, f"{len(lines):,} lines in one request: send up to {MOST_ROWS:,}")
    return iter(lines)
