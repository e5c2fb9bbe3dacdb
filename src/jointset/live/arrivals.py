"""Which rows count: rows that come late, a clock that is set back, and one that leaps ahead.

A row counts when it is later than the last one that counted. One that is not is late: it is kept, and does not move
the predictor. Three late rows one after another, each later than the one before it, say that the clock was set back:
from the third they count. A row far ahead counts; when the next one falls between it and the row before it, the leap
was a wild time stamp, and rows count on from there. So a wrong clock stops nothing for longer than two rows.
"""

from __future__ import annotations

from typing import NamedTuple

SET_BACK = 3  # late rows in order that make another clock
LEAP = 1_000  # usual steps that are far ahead
DAY = 86_400


class Clock(NamedTuple):
    """Times, in epoch seconds, of the last rows of a network."""

    latest: int | None = None  # of the last row that counted
    before: int | None = None  # of the one before it, where the last one leapt far ahead
    late: int | None = None  # of the last late row, where rows are late one after another
    behind: int = 0  # how many are so in order


def judge(clock: Clock, seconds: int, cadence: int | None) -> tuple[bool, Clock]:
    """Whether a row of this time counts, and the clock after it.

    >>> clock = Clock(latest=1000)
    >>> judge(clock, 1060, 60)[0], judge(clock, 940, 60)[0]
    (True, False)
    """
    latest = clock.latest
    if latest is None or seconds > latest:
        far = latest is not None and seconds - latest > max(LEAP * (cadence or 0), DAY)
        return True, Clock(seconds, latest if far else None)
    if clock.before is not None and seconds > clock.before:
        return True, Clock(seconds)
    behind = clock.behind + 1 if clock.late is not None and seconds > clock.late else 1
    if behind == SET_BACK:
        return True, Clock(seconds)
    return False, clock._replace(late=seconds, behind=behind)
