"""The calendar as regressors: sines and cosines of the time of day and of the week."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array
from jointset.panel import Panel
from jointset.storage import storable

DAY, WEEK = 86_400, 7 * 86_400
CYCLES = 2  # of a period that the rows must span, for its terms to be used


@storable
class Calendar(NamedTuple):
    """How many harmonics of the day and of the week (UTC) there are; with none of either there is no clock."""

    day: int = 0
    week: int = 0

    def terms(self, times: Array | None, rows: int) -> Array:
        """Sines, then cosines of all harmonics (rows, 2 (day + week)) at times (rows,), epoch seconds."""
        if not self or times is None:
            return np.empty((rows, 0))
        periods, speeds, harmonics = _waves(self.day, self.week)
        angles = np.asarray(times)[:, None] % periods * speeds * harmonics
        out = np.empty((rows, 2 * angles.shape[1]))
        np.sin(angles, out=out[:, : angles.shape[1]])
        np.cos(angles, out=out[:, angles.shape[1] :])
        return out

    def __bool__(self) -> bool:
        """Whether there are terms."""
        return self.day + self.week > 0


NO_CALENDAR = Calendar()


@lru_cache
def _waves(day: int, week: int) -> tuple[Array, Array, Array]:
    """Period in seconds, radians a second and number of every harmonic."""
    periods = np.repeat([DAY, WEEK], [day, week])
    return periods, 2.0 * np.pi / periods, np.concatenate([np.arange(1, day + 1), np.arange(1, week + 1)])


def calendar_of(panel: Panel, day: int, week: int) -> Calendar:
    """As many harmonics as asked for, of the periods that the rows of a panel span twice and meet twice a harmonic."""
    return calendar_at(panel.timestamps, panel.cadence, day, week)


def calendar_at(times: Array | None, cadence: int | None, day: int, week: int) -> Calendar:
    """The same of rows at these times, epoch seconds, so many seconds apart."""
    if times is None or not cadence:
        return Calendar()
    span = int(times[-1] - times[0])
    counts = (
        min(asked, (period - 1) // (2 * cadence)) if span >= CYCLES * period else 0
        for period, asked in ((DAY, day), (WEEK, week))
    )
    return Calendar(*counts)
