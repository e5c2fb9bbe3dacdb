"""Rows that are held out of training to choose by: the last ones of the panel, and laws of fitted filters there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from jointset.abilities import Several
from jointset.abilities import follows_clock as follows_clock
from jointset.contracts import Array, Filter, State
from jointset.laws import AnyLaw
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


def normal_law(filter_: Filter[State], state: State) -> AnyLaw:
    """Law of the next reading; of a filter whose sets have one radius it is a normal one."""
    return cast("AnyLaw", filter_.law(state))


def normal_run(filter_: Filter[State], values: Array, state: State, *times: Array | None) -> tuple[AnyLaw, State]:
    """Laws of all rows, likewise, and the state after the last one."""
    laws, after = filter_.run(values, state, *times)
    return cast("AnyLaw", laws), after


def laws_of(filter_: Filter[State], state: State) -> Sequence[AnyLaw]:
    """Laws of the next reading: one, or those of the parts."""
    return filter_.laws(state) if isinstance(filter_, Several) else [normal_law(filter_, state)]


def run_of(filter_: Filter[State], values: Array, state: State, *times: Array | None) -> tuple[Sequence[AnyLaw], State]:
    """Laws of all rows, one for all rows or those of the parts, and the state after the last row."""
    if isinstance(filter_, Several):
        return filter_.run_laws(values, state, *times)
    law, after = normal_run(filter_, values, state, *times)
    return [law], after


def blocks_of_laws(filter_: Filter[Any], panel: Panel) -> Iterator[tuple[int, AnyLaw]]:
    """Laws of consecutive rows of a panel from a fresh state, with the first row of each block."""
    return _blocks(normal_run, filter_, panel)


def blocks_of_parts(filter_: Filter[Any], panel: Panel) -> Iterator[tuple[int, Sequence[AnyLaw]]]:
    """The same of every part of the filter."""
    return _blocks(run_of, filter_, panel)


def _blocks(run: Callable[..., Any], filter_: Filter[Any], panel: Panel) -> Iterator[tuple[int, Any]]:
    rows, n = panel.values.shape
    size, stamps = max(1, BLOCK // n**2), panel.timestamps if follows_clock(filter_) else None
    state = filter_.start()
    for first in range(0, rows, size):
        block = slice(first, first + size)
        times = () if stamps is None else (stamps[block],)
        laws, state = run(filter_, panel.values[block], state, *times)
        yield first, laws
