"""Rows that are held out of training to choose by: the last ones of the panel, and laws of fitted filters there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jointset.abilities import Several
from jointset.abilities import follows_clock as follows_clock
from jointset.contracts import Array, Filter, Forecast
from jointset.panel import Panel

SHARE = 0.15  # of the training rows
WARMUP = 50  # held-out rows that only bring a filter to speed
FEWEST = 100  # held-out rows below which nothing is chosen
BLOCK = 8_000_000  # numbers a block of laws may hold


def held_out(panel: Panel) -> tuple[Panel, Panel]:
    """The rows to fit on and those to choose on; where these are too few to choose, all are to be fitted on."""
    cut = len(panel) - int(SHARE * len(panel))
    return (panel[:cut] if len(panel) - cut >= FEWEST else panel), panel[cut:]


def enough(panel: Panel) -> bool:
    """Whether held-out rows with a reading, the first ones left out, are enough to choose by."""
    return len(panel) >= FEWEST and int(panel.mask[WARMUP:].any(axis=1).sum()) >= FEWEST - WARMUP


def parts_of(filter_: Filter[Any]) -> int:
    """How many laws a filter has for a pool."""
    return filter_.parts if isinstance(filter_, Several) else 1


def laws_of(filter_: Filter[Any], state: Any) -> list[Any]:
    """Laws of the next reading: one, or those of the parts."""
    return filter_.laws(state) if isinstance(filter_, Several) else [filter_.law(state)]


def run_of(filter_: Filter[Any], values: Array, state: Any, *times: Array | None) -> tuple[list[Any], Any]:
    """Laws of all rows, one for all rows or those of the parts, and the state after the last row."""
    if isinstance(filter_, Several):
        return filter_.run_laws(values, state, *times)
    law, after = filter_.run(values, state, *times)
    return [law], after


def plain_run(filter_: Filter[Any], values: Array, state: Any, *times: Array | None) -> tuple[Forecast, Any]:
    """Laws of all rows and the state after the last one."""
    return filter_.run(values, state, *times)


def blocks_of_laws(
    filter_: Filter[Any], panel: Panel, run: Callable[..., Any] = plain_run
) -> Iterator[tuple[int, Any]]:
    """Laws of consecutive rows of a panel from a fresh state, with the first row of each block."""
    rows, n = panel.values.shape
    state, size = filter_.start(), max(1, BLOCK // n**2)
    for first in range(0, rows, size):
        block = slice(first, first + size)
        times = (panel.timestamps[block],) if follows_clock(filter_) and panel.timestamps is not None else ()
        laws, state = run(filter_, panel.values[block], state, *times)
        yield first, laws
