"""The rule of winners: which rows of a cell are the best, and which cannot be told from them.

1. At target: mean joint coverage over seeds of at least 1 - alpha - 0.005.
2. Among sets that are ellipsoids, or made of them, the smallest `log_mean_volume` wins; among boxes the smallest
   `width_full`. Shapes are not ranked against each other: boxes win on width and ellipsoids on volume by geometry.
3. A row whose mean is within one standard deviation of the best is a tie; that of whichever of the two varies more.

Quick looks do not count. Where every seed has other readings (simulations; sensors drawn in protocol `table`), nor does
a row that lacks seeds which other rows have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jointset.bench.plan import seeded_cell
from jointset.bench.tables.measured import Summary
from jointset.catalogue import TABLE
from jointset.datasets.origins import name_parts
from jointset.datasets.registry import dataset, names
from jointset.methods import parse

MEASURE = {"ellipsoid": "log_mean_volume", "box": "width_full"}  # what decides among sets of a shape

Key = tuple[str, str, str, str, int]  # cell, backbone, method, variant, limit_steps: as in `measured.summed`


class Standing(NamedTuple):
    """A row at target: its place among the summaries, its size and the spread of it over seeds."""

    key: Key
    summary: Summary
    size: float
    spread: float


def shape_of(method: str) -> str:
    """`box`, or `ellipsoid` for all sets made of ellipsoids: products, annuli, sums of an ellipsoid and a box."""
    name = parse(method)
    usual = TABLE[name.method].geometries[0] if name.method in TABLE else "ellipsoid"
    return "box" if name.geometry == "lean" else name.geometry or usual


def standings(summaries: Mapping[Key, Summary], cell: str, protocol: str, shape: str) -> list[Standing]:
    """The rows of a shape that are at target on a cell, the best first; all summaries are of this protocol."""
    rows = {key: one for key, one in summaries.items() if key[0] == cell and not key[4] and one.seeds}
    seeds = {seed for one in rows.values() for seed in one.seeds} if other_readings(cell, protocol) else set()
    found = []
    for key, one in rows.items():
        fair = shape_of(key[2]) == shape and seeds <= one.seeds.keys() and one.at_target()
        size = one.number(MEASURE[shape]) if fair else None
        if size is not None and math.isfinite(size.value):
            found.append(Standing(key, one, size.value, size.spread or 0.0))
    return sorted(found, key=lambda standing: standing.size)


def other_readings(cell: str, protocol: str) -> bool:
    """Whether every seed has other readings; where a cell has all sensors of its data set, none are drawn."""
    name, n = name_parts(cell, names())
    return seeded_cell(cell, protocol) and (cell.startswith("grssf-") or n not in (None, dataset(name).shape[1]))


def ties(standing: Iterable[Standing]) -> list[Standing]:
    """The best of an order and those behind it that are within one standard deviation of it."""
    best, *others = standing
    return [best, *(one for one in others if one.size - best.size <= max(one.spread, best.spread))]
