"""The small network that predictors are checked on, and the rows they are given."""

from __future__ import annotations

from functools import cache

import numpy as np

from jointset.datasets import generate_grssf
from jointset.panel import Panel

TRAINING, CALIBRATION = slice(0, 400), slice(400, 700)
ROWS = 16  # of a test block
MIDDLE = 60.0  # of the readings
HOUR = 3600  # seconds between rows


@cache
def network() -> Panel:
    """Eight sensors with a graph, hourly rows, in units far from zero."""
    made = generate_grssf("B", n=8, seed=3, length=800).panel
    return Panel(
        MIDDLE + 7.0 * made.values, made.sensors, timestamps=HOUR * np.arange(len(made)), adjacency=made.adjacency
    )


def block(rows: int = ROWS) -> Panel:
    """The rows that follow the calibration."""
    return network()[CALIBRATION.stop : CALIBRATION.stop + rows]


def block_with_gaps(rows: int = ROWS, jump: float = 1.0) -> Panel:
    """The same, a tenth of the cells and two rows empty; `jump` scales the second half about the middle."""
    values = block(rows).values.copy()
    values[rows // 2 :] = MIDDLE + jump * (values[rows // 2 :] - MIDDLE)
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    values[[5, 6]] = np.nan
    return block(rows).with_values(values)
