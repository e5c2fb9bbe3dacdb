"""Live rows in, one answer a row out; a bad row is answered with an error and leaves the predictor as it was.

Rows are lines of CSV, the first one naming the sensors, or lines of JSON: `{"time": ..., "values": {sensor: number}}`,
a plain `{sensor: number}`, or a list in the order of the model. Empty cells and null are missing readings.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.errors import InputError, require, require_known, some, suggest
from jointset.files import NUMBER
from jointset.layout import TIME_NAMES, plain
from jointset.predictor import JointPredictor
from jointset.reading import MISSING
from jointset.times import live_seconds
from jointset.writing import json_ready

LARGEST = 1e100  # a reading beyond it would swamp the filter for good, if its square is a number at all
FORMATS = ("auto", "csv", "json")
Parse = Callable[[str], "Reading"]


class Reading(NamedTuple):
    """One row: readings (N,) in the order of the model, NaN = missing, and its time as it was written."""

    values: Array
    time: str | int | float | None


class Stream:
    """A predictor that is fed lines. `predictor` is always the state after the last good row.

    `notice` is told, once, what the reader of the answers should know about the header or the order of the rows. With
    `trust` every answer holds the predictor's verdict on itself after the row.
    """

    def __init__(
        self,
        predictor: JointPredictor,
        *,
        format: str = "auto",
        time_column: str | None = None,
        top: int = 3,
        trust: bool = False,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        require(format in FORMATS, f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
        require(top >= 0, f"top must be 0 or more sensors, got {top}")
        predictor.predict()  # refuses a predictor that is not calibrated before any row is read
        if trust:
            predictor.trust()  # likewise one that has no verdict to give
        self.predictor, self.trust = predictor, trust
        self.format, self.time_column, self.top, self.notice = format, time_column, top, notice
        self.rows = self.scored = self.inside = self.bad = 0
        self._latest: int | None = getattr(predictor, "last_time", None)  # time of the last row
        self._in_order = True  # as far as anyone was told

    def answers(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """One JSON-ready answer a row, in order; blank lines are skipped."""
        filled: Iterator[str] = (line for line in lines if line.strip())
        first = next(filled, None)
        if first is None:
            return
        first = first.removeprefix("\ufeff")
        if self.format == "json" or (self.format == "auto" and first.lstrip()[0] in "{["):
            parse: Parse = JsonRows(self.predictor.sensors, self.time_column)
            filled = chain([first], filled)
        else:
            parse = CsvRows(first, self.predictor.sensors, self.time_column, self.notice)
        for line in filled:
            yield self._answer(line, parse)

    def _answer(self, line: str, parse: Parse) -> dict[str, Any]:
        self.rows += 1
        try:
            reading = parse(line)
            seconds = live_seconds(reading.time)
            answer, after = advance(self._expecting(seconds), reading.values, self.top)
        except (
            ValueError,
            ArithmeticError,
        ) as error:  # InputError is a ValueError; nothing a row holds may end a stream
            self.bad += 1
            return {"row": self.rows, "error": " ".join(str(error).split())}
        self._follow(after, seconds, reading.time)
        self.scored += answer["inside"] is not None
        self.inside += answer["inside"] is True
        if self.trust:
            answer["trust"] = json_ready(after.trust()._asdict())
        return {"row": self.rows, "time": reading.time, **answer}

    def _expecting(self, seconds: int | None) -> JointPredictor:
        """The predictor, told when the row is where it follows the clock."""
        if seconds is None or not getattr(self.predictor, "follows_clock", False):
            return self.predictor
        told: Any = self.predictor.copy()
        told.expect(seconds)
        return told

    def _follow(self, after: JointPredictor, seconds: int | None, time: Any) -> None:
        """Go on from the predictor after a row; a row that is no later than the last is taken all the same."""
        self.predictor = after
        if seconds is None:
            return
        if self._in_order and self._latest is not None and seconds <= self._latest:
            self._in_order = False
            self.notice(
                f"row {self.rows} ({time}) is not later than the last one: rows count in the order they come in"
            )
        self._latest = seconds
        if hasattr(after, "last_time"):
            after.last_time = seconds


def advance(predictor: JointPredictor, y: Array, top: int = 3) -> tuple[dict[str, Any], JointPredictor]:
    """Answer to one reading (N,) and the predictor after it; the one given is not changed.

    The region is the one announced before the reading. A reading that would leave the filter without finite numbers
    is refused; an infinite score, of a reading off an interval of no length, is none of these.
    """
    region, after = predictor.predict(), predictor.copy()
    with np.errstate(all="ignore"):
        contributions = predictor.contributions(y)
        outcome = after.update(y)
        scored = not math.isnan(outcome.score) or not outcome.observed
        finite = scored and np.isfinite(after.predict().center).all()
    if not finite or np.any(np.abs(y) > LARGEST):
        worst = int(np.nanargmax(np.abs(y)))
        raise InputError(f"sensor {predictor.sensors[worst]!r}: {y[worst]:g} is too large to be scored: check the row")
    lower, upper = (np.asarray(end).tolist() for end in region.bounds)
    answer = {
        "score": outcome.score,
        "radius": outcome.radius,
        "inside": outcome.inside if outcome.observed else None,
        "observed": outcome.observed,
        **_unusual(outcome.radius),
        "bounds": {name: [lower[i], upper[i]] for i, name in enumerate(predictor.sensors)},
        "top": [
            {
                "sensor": predictor.sensors[i],
                "contribution": float(contributions[i]),
                "value": float(y[i]),
                "lower": lower[i],
                "upper": upper[i],
            }
            for i in largest(contributions, y, top)
        ],
    }
    return json_ready(answer), after


def largest(contributions: Array, y: Array, count: int) -> list[int]:
    """Positions of the observed sensors that contribute most, largest first."""
    seen = np.flatnonzero(~np.isnan(y))
    order = np.argsort(-contributions[seen], kind="stable")
    return [int(i) for i in seen[order[:count]]]


def _unusual(radius: float) -> dict[str, bool]:
    """What a null radius means: the whole space, or the empty set."""
    if radius == math.inf:
        return {"infinite": True}
    return {"empty": True} if radius < 0 else {}


class CsvRows:
    """Rows of a CSV stream whose header names the sensors in any order."""

    def __init__(
        self, header: str, sensors: tuple[str, ...], time_column: str | None, notice: Callable[[str], None]
    ) -> None:
        self.delimiter = "\t" if "\t" in header else ","
        names = [name.strip() for name in self._cells(header, "the header")]
        require(len(names) > 1 or ";" not in header, "the header is separated by ';': send ',' or tabs instead")
        self.sensors, self.width = sensors, len(names)
        self.time = _time_place(names, sensors, time_column)
        rest = {i: name for i, name in enumerate(names) if i != self.time}
        _check_header(list(rest.values()), sensors)
        place = {name: i for i, name in enumerate(sensors)}
        self.columns = [(i, place[name]) for i, name in rest.items()]
        absent = [name for name in sensors if name not in rest.values()]
        if absent:
            share = f"{len(absent)} of {len(sensors)} sensors"
            notice(f"{share} are not in the header and count as missing in every row: {some(absent)}")

    def __call__(self, line: str) -> Reading:
        """The reading of one line."""
        cells = self._cells(line, "the row")
        require(len(cells) == self.width, f"{len(cells)} cells, the header has {self.width}: send one cell per column")
        values = [math.nan] * len(self.sensors)
        for column, sensor in self.columns:
            cell = cells[column].strip()
            if cell not in MISSING:
                if NUMBER.fullmatch(cell) is None or math.isinf(number := float(cell)):
                    name = self.sensors[sensor]
                    raise InputError(f"sensor {name!r}: {cell[:40]!r} is no finite number: send one, or nothing")
                values[sensor] = number
        return Reading(np.array(values), None if self.time is None else cells[self.time].strip())

    def _cells(self, line: str, what: str) -> list[str]:
        try:
            return next(csv.reader([line.rstrip("\r\n")], delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"{what} is not CSV ({error}): check its quotes") from None


def _time_place(names: list[str], sensors: tuple[str, ...], asked: str | None) -> int | None:
    """Column of the time: the one asked for, else the one named like time that is no sensor."""
    if asked is not None:
        require_known(asked, names, f"no column {asked!r} for time in the header")
        return names.index(asked)
    found = [i for i, name in enumerate(names) if _is_time(name) and name not in sensors]
    require(len(found) < 2, f"more than one time column ({some([names[i] for i in found])}): name one, --time-column")
    return found[0] if found else None


def _is_time(name: str) -> bool:
    return plain(name) in TIME_NAMES


def _check_header(names: list[str], sensors: tuple[str, ...]) -> None:
    """Refuse a header that repeats a sensor, names an unknown one, or is a row of data."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    require(not twice, f"the header repeats {some(twice)}: name every sensor once")
    unknown = [name for name in names if name not in sensors]
    data = bool(unknown) and all(NUMBER.fullmatch(name) for name in names)
    require(not data, f"the first line holds data ({some(names, 3)}), not names: send a header with the sensor names")
    if unknown:
        raise InputError(f"the header names an unknown sensor {unknown[0]!r}: {suggest(unknown[0], sensors)}")


class JsonRows:
    """Rows of a JSON-lines stream."""

    def __init__(self, sensors: tuple[str, ...], time_column: str | None = None) -> None:
        self.sensors, self.time_column = sensors, time_column
        self.place = {name: i for i, name in enumerate(sensors)}

    def __call__(self, line: str) -> Reading:
        """The reading of one line."""
        try:
            row = json.loads(line, object_pairs_hook=_distinct)
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"the row is not JSON ({error}): send one object or list a line") from None
        time = None
        if isinstance(row, dict):
            stamps = [name for name in row if name == self.time_column or (_is_time(name) and name not in self.place)]
            time = _time(row.pop(stamps[0])) if stamps else None
            row = row["values"] if isinstance(row.get("values"), (dict, list)) else row
        return Reading(self._values(row), time)

    def _values(self, row: Any) -> Array:
        if isinstance(row, list):
            count = f"{len(row)} values for {len(self.sensors)} sensors"
            require(len(row) == len(self.sensors), f"{count}: send one per sensor, null where it is missing")
            row = dict(zip(self.sensors, row, strict=True))
        require(isinstance(row, dict), "the row is neither an object nor a list: send one object or list a line")
        values = [math.nan] * len(self.sensors)
        for name, value in row.items():
            if name not in self.place:
                raise InputError(f"unknown sensor {name!r}: {suggest(name, self.sensors)}")
            values[self.place[name]] = _number(name, value)
        return np.array(values)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise InputError(f"the row repeats {some(twice)}: send every sensor once")
    return row


def _number(name: str, value: Any) -> float:
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
