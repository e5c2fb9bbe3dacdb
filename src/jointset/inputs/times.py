"""Time stamps: moments as epoch seconds (UTC), from text, numbers and table columns."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.errors import BadRow, InputError, require

Time = str | datetime | np.datetime64 | int | float
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(?P<zone>Z|[+-]\d\d(:?\d\d)?)?)?")
YEAR_LAST = re.compile(
    r"(\d{1,2})(?P<mark>[/.-])(\d{1,2})(?P=mark)(?P<year>\d{4})"
    r"([T ]+(?P<hour>\d{1,2})(?P<rest>:.*?) *(?P<half>[AaPp][Mm])?)?"
)
DIGIT_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])[0-5]\d([0-5]\d)?)?")


def epoch_seconds(when: Time, cut: bool = False) -> int:
    """Seconds since the epoch (UTC) of one moment, rounded up or cut; without an offset it is taken as UTC.

    >>> epoch_seconds("1970-01-01T01:00:00+01:00"), epoch_seconds("1970-01-02")
    (0, 86400)
    """
    if isinstance(when, np.datetime64):
        when = when.astype("datetime64[us]").item()
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when.strip())
        except ValueError:
            raise InputError(f"{when!r} is not a time: write it like 2012-03-01T00:05:00Z") from None
    if isinstance(when, datetime):
        moment = when if when.tzinfo else when.replace(tzinfo=UTC)
        since, second = moment - datetime.fromtimestamp(0, UTC), timedelta(seconds=1)
        return since // second if cut else -(-since // second)
    require(isinstance(when, (int, float, np.number)), f"{when!r} is not a time: give ISO text or epoch seconds")
    return math.floor(when) if cut else math.ceil(when)


def live_seconds(when: str | int | float | None, day_first: bool = False) -> int | None:
    """Seconds since the epoch (UTC) of a time as a live row gives it, None where it is no time.

    What is finer than a second is cut; the unit of numbers is judged by their size. Text is ASCII: Python would take
    any character for the T.

    >>> live_seconds("1970-01-02"), live_seconds("1330560300500"), live_seconds(5.9), live_seconds("noon")
    (86400, 1330560300, 5, None)
    >>> live_seconds("1970-01-02T00:00:00.9Z"), live_seconds(2**63)  # the second is no time of any unit
    (86400, None)
    >>> live_seconds("2.1.1970 0:05", day_first=True)
    86700
    """
    if isinstance(when, str):
        when = _year_first(when.strip(), day_first)
        if not when.isascii():
            return None
    if when is None or isinstance(when, bool):
        return None
    try:
        number = _floor(when) if isinstance(when, str) else math.floor(when)
        if not DIGIT_DATE.fullmatch(str(number)):
            unit = _unit(abs(number))
            return number // unit if unit else None
    except (ValueError, OverflowError):
        pass
    try:
        return epoch_seconds(when, cut=True) if isinstance(when, str) else None
    except InputError:
        return None


def day_first_advice(when: object) -> str:
    """What to add to a refusal of text such as 31/12/2012 23:55, which may be read where that is asked for."""
    year_last = isinstance(when, str) and YEAR_LAST.fullmatch(when.strip())
    return "; --day-first reads dates that begin with the day" if year_last else ""


def _year_first(text: str, day_first: bool) -> str:
    """A date that ends with the year as ISO 8601 has it; any other text as it is.

    >>> _year_first("11/16/2026 03:15 PM", False), _year_first("16.11.2026 9:15", True)
    ('2026-11-16 15:15', '2026-11-16 09:15')
    """
    match = YEAR_LAST.fullmatch(text)
    if match is None or not (day_first or match["half"]):  # nothing tells what comes first
        return text
    half, hour = (match["half"] or "").lower(), int(match["hour"] or 0)
    if half and not 1 <= hour <= 12:
        return text
    hour = hour % 12 + 12 * (half == "pm") if half else hour
    day, month = (int(match[i]) for i in ((1, 3) if day_first else (3, 1)))
    clock = f" {hour:02d}{match['rest']}" if match["hour"] else ""
    return f"{match['year']}-{month:02d}-{day:02d}{clock}"


def iso(seconds: int | np.integer[Any]) -> str:
    """ISO 8601 text of epoch seconds.

    >>> iso(1330560300)
    '2012-03-01T00:05:00Z'
    """
    return f"{np.datetime64(int(seconds), 's')}Z"


def column_seconds(column: Any, name: str, day_first: bool = False) -> Array:
    """Time column as int64 seconds since the epoch (UTC)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    no_nulls(column, name, "time")
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text:
        column = written = pc.utf8_trim_whitespace(column)
        if day_first or (len(column) and YEAR_LAST.fullmatch(column[0].as_py())):
            cells = [_year_first(cell, day_first) for cell in column.to_pylist()]
            column = pa.chunked_array([pa.array(cells, pa.string())])
    if not pa.types.is_temporal(column.type):
        try:
            return _scaled(column.cast(pa.int64()).to_numpy(), name)
        except pa.ArrowException:
            require(text, f"column {name!r} holds {column.type}, no times: use ISO 8601 or whole epoch seconds")
            column = _parse_iso(column, name, written, day_first)
    try:
        return column.cast(pa.timestamp("s", getattr(column.type, "tz", None))).cast(pa.int64()).to_numpy()
    except pa.ArrowException:
        raise InputError(f"column {name!r} has times finer than a second: average to whole seconds") from None


def _scaled(numbers: Array, name: str) -> Array:
    """Whole numbers since the epoch as seconds, their unit judged by their size."""
    first = str(numbers[0])
    require(
        not DIGIT_DATE.fullmatch(first),
        f"{first} in time column {name!r} looks like a date written in digits: write it like 2012-03-01T00:05:00Z",
    )
    unit = _unit(int(np.abs(numbers).max()))
    require(unit > 0, f"{first[:40]} in time column {name!r} is no time: use ISO 8601 or whole epoch seconds")
    require(not (numbers % unit).any(), f"column {name!r} has times finer than a second: average to whole seconds")
    return numbers // unit


def _floor(text: str) -> int:
    """The whole number not above a decimal one; ValueError where it is none."""
    whole, _, rest = text.partition(".")
    return int(whole) - (whole.startswith("-") and int(rest or 0) > 0) if rest.isdigit() or not rest else int(text)


def _unit(largest: int) -> int:
    """Parts of a second that whole numbers up to this count, judged by its size; 0: no time."""
    units = ((1, 1e11), (10**3, 1e14), (10**6, 1e17), (10**9, 2**63))  # int64 holds no more
    return next((unit for unit, limit in units if largest < limit), 0)


def _parse_iso(column: Any, name: str, written: Any, day_first: bool) -> Any:
    """ISO text as Arrow time stamps: all without offset, or all with one; `written` is what the file has."""
    import pyarrow as pa

    for zone in (None, "UTC"):
        try:
            return column.cast(pa.timestamp("ns", zone))
        except pa.ArrowException:
            continue
    kinds: dict[bool, tuple[int, str]] = {}
    for row, (cell, own) in enumerate(zip(column.to_pylist(), written.to_pylist(), strict=True)):
        match = ISO.fullmatch(cell)
        if match is None or not _is_date(cell):
            advice = "write it like 2012-03-01T00:05:00Z, or as whole epoch seconds"
            advice += "" if day_first else day_first_advice(own)
            raise _at({row: own}, name, f"{{}} is not an ISO 8601 time: {advice}")
        kinds.setdefault(match["zone"] is not None, (row, own))
        if len(kinds) == 2:
            both = dict((kinds[True], kinds[False]))
            raise _at(both, name, "{} has a UTC offset, {} has none: give all of them one, or none")
    raise InputError(f"column {name!r} holds times before 1678 or after 2261: check them")


def _at(cells: dict[int, str], name: str, what: str) -> BadRow:
    """The error that says what is wrong with cells of a column, by row."""
    return BadRow(lambda place: what.format(*(f"{place(t)}, column {name!r}: {x[:40]!r}" for t, x in cells.items())))


def _is_date(cell: str) -> bool:
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True


def no_nulls(column: Any, name: str, what: str) -> None:
    """Refuse a column with empty cells."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise BadRow(lambda place: f"{place(row)} has no {what} in column {name!r}: fill it, or drop the row")
