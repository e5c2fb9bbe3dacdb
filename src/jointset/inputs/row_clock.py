"""Times of live rows: repeated rows, rows that come late, gaps, another cadence, and times that cannot be read.

Rules. Rows count one after another, in the order they come in, whatever their times. A row whose time and readings are
those of one of the last 1,000 rows is repeated and does not count. A time that cannot be read is ignored, the readings
count. Whatever is unusual is told.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from jointset.contracts import Array
from jointset.inputs.times import day_first_advice

REMEMBERED = 1_000  # rows among which a repeated one is looked for
GAP = 10  # usual steps that a pause must last to be told
ALIKE = 5  # steps of another length in a row that make another cadence


class Event(NamedTuple):
    """Something unusual: its kind, under which it is counted, and what to tell."""

    kind: str
    text: str


class RowClock:
    """The times of a stream. `cadence` is the model's; where that has none, it is learnt from the first rows."""

    def __init__(self, cadence: int | None, latest: int | None) -> None:
        self.cadence, self.latest = cadence, latest
        self.longest_gap = 0
        self._now = cadence  # the cadence of the last rows
        self._step, self._alike = 0, 0  # length of the last step, and how many were so in a row
        self._rows: OrderedDict[int, bytes] = OrderedDict()  # readings by time

    def repeated(self, seconds: int | None, values: Array) -> bool:
        """Whether a row is one of the last rows again."""
        return seconds is not None and self._rows.get(seconds) == values.tobytes()

    def tick(self, seconds: int | None, values: Array, time: object, row: int) -> list[Event]:
        """Move on to a row that counts; what is unusual about its time."""
        if seconds is None:
            return [] if time is None else [_unreadable(time, row)]
        self._rows[seconds] = values.tobytes()
        if len(self._rows) > REMEMBERED:
            self._rows.popitem(last=False)
        before, self.latest = self.latest, seconds
        if before is None:
            return []
        step = seconds - before
        if step <= 0:
            text = f"row {row} ({time}) is not later than the one before: rows count in the order they come in"
            return [Event("rows not later than the one before", text)]
        return [*self._gap(step, time, row), *self._cadence(step)]

    def _gap(self, step: int, time: object, row: int) -> list[Event]:
        if self._now is None or step <= GAP * self._now:
            return []
        self.longest_gap = max(self.longest_gap, step)
        text = f"row {row} ({time}) comes {span(step)} after the one before, where rows come every {span(self._now)}"
        return [Event("gaps in time", f"{text}: they count as consecutive")]

    def _cadence(self, step: int) -> list[Event]:
        self._alike = self._alike + 1 if step == self._step else 1
        self._step = step
        if self._alike != ALIKE or step == self._now:
            return []
        self._now = step
        if self.cadence is None:
            self.cadence = step
            return []
        return [Event("changes of cadence", other_cadence(step, self.cadence))]


def other_cadence(step: int, usual: int) -> str:
    """What to tell of rows that come at another cadence than those a model was made on."""
    return f"rows come every {span(step)}, those of the model every {span(usual)}: its sets are for these"


def _unreadable(time: object, row: int) -> Event:
    """The event of a time that cannot be read."""
    text = f"row {row}: {str(time)[:40]!r} is no time that can be read: it is ignored, the row counts"
    return Event("times that could not be read", text + day_first_advice(time))


def span(seconds: int) -> str:
    """A length of time in words.

    >>> span(300), span(5400), span(90000), span(45)
    ('5 min', '1.5 h', '25 h', '45 s')
    """
    for unit, size, from_ in (("days", 86400, 2 * 86400), ("h", 3600, 3600), ("min", 60, 60)):
        if seconds >= from_:
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{seconds} s"
