"""The table of windows: how coverage holds over time, with an ideal coin of as many steps beside every cell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jointset.bench.measures import coin
from jointset.bench.tables.measured import Summary, summed
from jointset.bench.tables.model import Column, Entry, Number, Table

if TYPE_CHECKING:
    import pandas as pd

COIN = "independent coin"
SHOWN = {  # quantity: (title, group, decimals)
    "joint": ("joint", "", 3),
    "worst_window": ("worst 500", "", 3),
    "worst_hour": ("lowest hour", "", 3),
    **{f"gap_{w}{k}": (name, f"{w} steps", 3) for w in (30, 100, 500) for k, name in (("", "gap"), ("_p90", "P90"))},
    "off_30": ("off", "30 steps", 3),
    "longest_misses": ("longest", "", 1),
    "joint_score": ("joint score", "", 3),
}
LABELS = ("cell", "protocol", "backbone", "method")
NOTES = (
    "Gap, P90: mean and 90 % quantile of |coverage of so many steps in a row - (1 - alpha)|. Off: share of 30 steps in "
    "a row whose coverage is off by more than 0.10. Lowest hour: coverage of the hour of the day (UTC) that has least, "
    "where there are time stamps. Longest: the longest run of misses. Independent coin: the same of "
    "a method whose misses are independent with probability alpha, the mean of 200 draws of as many steps: what "
    "is noise. Joint score: mean of V + (V' - V) / alpha, V the volume^(1/N) of a set and V' that of the set of the "
    "same law that just holds the reading; the smaller the better.",
)


def windows(table: pd.DataFrame) -> Table | None:
    """Every row that has these figures, and the coin of its cell; None where no row has them."""
    known = table[table["gap_30"].notna() & table["status"].eq("ok")]
    rows: list[tuple[Entry, ...]] = []
    for (cell, protocol, level), part in known.groupby(["cell", "protocol", "alpha"], sort=True):
        alpha, steps = float(level), int(part["n_test"].max())  # type: ignore[arg-type]
        for (_, backbone, method, variant, limit), summary in summed(part).items():
            told = ", ".join(filter(None, (variant, f"{limit} steps" if limit else "")))
            label = f"{method} ({told})" if told else method
            rows.append((str(cell), str(protocol), backbone, label, *_numbers(summary)))
        ideal = coin(steps, alpha) | {"joint": 1.0 - alpha}
        if part["worst_hour"].isna().all():
            del ideal["worst_hour"]
        coins = (Number(ideal.get(key, math.nan), None, digits) for key, (_, _, digits) in SHOWN.items())
        rows.append((str(cell), str(protocol), "", f"{COIN}, {steps} steps", *coins))
    if not rows:
        return None
    columns = tuple(Column(title, group) for title, group, _ in SHOWN.values())
    return Table("windows", "Coverage over time", LABELS, columns, tuple(rows), NOTES)


def _numbers(summary: Summary) -> list[Entry]:
    return [summary.number(key, digits) for key, (_, _, digits) in SHOWN.items()]
