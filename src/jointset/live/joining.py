"""Sensors that report one by one, joined into rows.

The row of a step holds the readings of one cadence: those whose times, cut down to a multiple of the cadence, are that
of the step. Of several readings of a sensor in one step the latest counts. A row is whole, and counts, when every
sensor has been read, when a reading comes that is later than the end of the step and a grace period, when a row of a
later time comes, when it is the oldest of more than MOST_HELD that wait, or when nothing has been read for a cadence
and a grace period. What comes after that is late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jointset.contracts import Array

MOST_HELD = 100  # steps that wait at once: senders whose clocks are that far apart have no common row


class Single(NamedTuple):
    """One reading of one sensor."""

    place: int  # of the sensor in the model
    seconds: int
    value: float


Held = Mapping[int, Mapping[int, tuple[int, float]]]  # by step and place: time and value


class Rule(NamedTuple):
    """How single readings become rows: seconds of a step, and of grace after its end."""

    cadence: int
    grace: int

    def step(self, seconds: int) -> int:
        """The step that a reading belongs to.

        >>> Rule(300, 30).step(719)
        600
        """
        return seconds - seconds % self.cadence

    def over(self, held: Held, seconds: int) -> list[int]:
        """Steps that are over when a reading of this time comes, oldest first."""
        return sorted(step for step in held if seconds >= step + self.cadence + self.grace)


def hold(held: Held, step: int, single: Single) -> Held:
    """What is held after one more reading; an earlier one of the sensor, or the same again, does not replace a later.

    >>> hold({}, 600, Single(0, 719, 2.5))
    {600: {0: (719, 2.5)}}
    """
    row = held.get(step, {})
    if single.place in row and row[single.place][0] >= single.seconds:
        return held
    return {**held, step: {**row, single.place: (single.seconds, single.value)}}


def row_of(readings: Mapping[int, tuple[int, float]], n: int) -> Array:
    """The row (N,) of the readings of a step, NaN where there is none.

    >>> row_of({1: (719, 2.5)}, 2)
    array([nan, 2.5])
    """
    return np.array([readings[i][1] if i in readings else math.nan for i in range(n)])
