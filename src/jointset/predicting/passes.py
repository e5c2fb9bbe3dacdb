"""One pass of a filter through rows: its laws block by block, and the runs of whole panels."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jointset.abilities import Sized, follows_clock, message_start
from jointset.algebra.law_blocks import bare, concatenate
from jointset.calibration.gap_levels import Strata, restarted_strata
from jointset.contracts import Array, Filter, Forecast
from jointset.errors import require
from jointset.panel import Panel
from jointset.regions import named
from jointset.runs import Run, columns_of
from jointset.score_abilities import followed, leaning_as
from jointset.support.how_far import between

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor

BLOCK = 16_000_000  # numbers that the laws of a block of rows may hold
Laws = Iterable[tuple[Forecast, Array, object]]  # of blocks of rows, those rows, and the state after them
Progress = Callable[[int], None]  # told how many rows were done
Counting = Callable[..., Progress]  # told how many rows there are, and what they are called where they are no rows


def silent(total: int, unit: str = "row") -> Progress:
    """Count nothing: nobody looks on."""
    return lambda rows: None


def laws_of(predictor: JointPredictor, panel: Panel, state: object) -> Laws:
    """Laws of the blocks of a panel in the units of the data, from a state of the filter."""
    follows = follows_clock(predictor.filter)
    times = panel.timestamps if follows else None
    name = message_start(predictor.filter).rstrip(": ") or "the filter"
    require(not follows or times is not None, f"{name} needs time stamps: give readings with a time column")
    return _in_blocks(predictor.filter, panel.values, state, times, (predictor.shift, predictor.scale))


def _in_blocks(
    filter: Filter[Any], values: Array, state: object, times: Array | None, units: tuple[Array, Array]
) -> Iterator[tuple[Forecast, Array, object]]:
    shift, scale = units
    for block in blocks(filter, values):
        rows, clock = values[block], () if times is None else (times[block],)
        with between(block.start / max(len(values), 1), block.stop / max(len(values), 1)):
            laws, state = filter.run((rows - shift) / scale, state, *clock)
            yield laws.rescale(shift, scale), rows, state


def blocks(filter: Filter[Any], values: Array) -> list[slice]:
    """Consecutive rows whose laws hold at most `BLOCK` numbers, N^2 a row unless the filter knows better."""
    sizes = filter.law_sizes(values) if isinstance(filter, Sized) else np.full(len(values), values.shape[1] ** 2)
    total, starts = np.cumsum(sizes), [0]
    while starts[-1] < len(values):
        held = total[starts[-1] - 1] if starts[-1] else 0
        starts.append(max(starts[-1] + 1, int(np.searchsorted(total, held + BLOCK, side="right"))))
    return [slice(start, stop) for start, stop in itertools.pairwise(starts)] or [slice(0, 0)]


def run_together(
    predictors: Sequence[JointPredictor], panel: Panel, laws: Laws, regions: bool
) -> list[tuple[Run, float]]:
    """Runs of predictors that differ in their rule only, and the seconds each would have taken alone.

    Laws and scores, those of the first one, are made once for all.
    """
    score = followed(restarted_strata(predictors[0].score), panel.values)[0]
    walks = [Strata(one.score, one.calibration, one.calibration_state) for one in predictors]
    pieces: list[list[dict[str, Array]]] = [[] for _ in predictors]
    kept: list[Any] = []
    clock, begin, own, spared = time.perf_counter, time.perf_counter(), [0.0] * len(predictors), 0.0
    state, at, stamps = predictors[0].filter_state, 0, panel.timestamps
    for law, rows, after in laws:
        block = slice(at, at + len(rows))
        state, at, times = after, block.stop, None if stamps is None else stamps[block]
        scores = np.atleast_1d(leaning_as(score, score, block).score(law, rows))
        for i in range(len(predictors)):
            start = clock()
            found, shown = walks[i].course(scores, rows, times)
            own[i] += clock() - start
            pieces[i].append(columns_of(leaning_as(walks[i].latest, score, block), law, rows, shown, found))
            spared += (clock() - start) * (i > 0)  # the law keeps its sizes: alone, each would pay as the first
        kept.append(bare(law) if regions else None)
    shared = clock() - begin - spared - own[0]
    runs = []
    for one, parts, walk, seconds in zip(predictors, pieces, walks, own, strict=True):
        columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        radii = columns.pop("radii")
        known = leaning_as(walk.traced, score, slice(None))
        whole = named(known.region(concatenate(kept), radii), panel.sensors) if regions else None
        one.score = walk.score
        one.moved_to(state, walk.state, panel)
        one.watch = one.watch and one.watch.run(columns["score"], columns["inside"])
        share = one.infinite_share
        run = Run(panel.sensors, panel.timestamps, panel.values, infinite_share=share, regions=whole, **columns)
        runs.append((run, shared + seconds))
    return runs
