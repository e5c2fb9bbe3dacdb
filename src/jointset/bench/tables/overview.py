"""Tables with a line for every row of a folder, files of one's own too: everything, coverage over time, steps ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jointset.bench.measures import coin
from jointset.bench.tables.build import SEED_NOTE, notes_on
from jointset.bench.tables.grids import BOXES, SHAPES
from jointset.bench.tables.measured import At, Summary, summed
from jointset.bench.tables.model import REUSED, Column, Entry, Number, Table
from jointset.support.how_far import each

if TYPE_CHECKING:
    import pandas as pd

Shown = Mapping[str, tuple[str, str, int]]  # quantity: (title, group, decimals)
EVERYTHING: Shown = {
    "width_full": ("width_full", "", 3),
    "joint": ("joint", "", 3),
    "worst_window": ("worst window", "", 3),
    "log_mean_volume": ("log mean vol", "", 3),
    "log_volume": ("log-vol", "", 3),
    "width": ("width", "", 3),
    "winkler": ("winkler", "", 3),
    "infinite_share": ("infinite", "", 4),
}
OVER_TIME: Shown = {
    "joint": ("joint", "", 3),
    "worst_window": ("worst 500", "", 3),
    "worst_hour": ("lowest hour", "", 3),
    **{f"gap_{w}{k}": (name, f"{w} steps", 3) for w in (30, 100, 500) for k, name in (("", "gap"), ("_p90", "P90"))},
    "off_30": ("off", "30 steps", 3),
    "longest_misses": ("longest", "", 1),
    "joint_score": ("joint score", "", 3),
}
STEPS_AHEAD: Shown = {
    "ahead_joint": ("joint", "", 3),
    "ahead_log_volume": ("log-volume", "", 3),
    "ahead_lowest": ("lowest step", "", 3),
    "ahead_highest": ("highest step", "", 3),
    "ahead_rmse": ("rmse", "", 3),
}
LABELS = ("cell", "protocol", "backbone", "method")
NOTES = (
    f"Numbers: {SEED_NOTE}. Worst window: smallest joint coverage over any 500 steps in a row, "
    "over all where there are fewer. Log mean vol: log of the mean volume^(1/N). Infinite: share of "
    "steps whose set is the whole space or whose radius was clipped. ↓ joint below 1 - alpha - 0.005, ↑ at or above "
    "1 - alpha + 0.013. * and °: the tightest and the next by width_full among those at target on the same cell, "
    "protocol, alpha and number of steps.",
)
NOTES_OVER_TIME = (
    "Gap, P90: mean and 90 % quantile of |coverage of so many steps in a row - (1 - alpha)|. Off: share of 30 steps in "
    "a row whose coverage is off by more than 0.10. Lowest hour: coverage of the hour of the day (UTC) that has least, "
    "where there are time stamps. Longest: the longest run of misses. Independent coin: the same of "
    "a method whose misses are independent with probability alpha, the mean of 200 draws of as many steps: what "
    "is noise. Joint score: mean of V + (V' - V) / alpha, V the volume^(1/N) of a set and V' that of the set of the "
    "same law that just holds the reading; the smaller the better.",
)
NOTES_AHEAD = (
    "Joint, log-volume: of the one set for all readings of all steps, the second per reading. Lowest, highest step: "
    "joint coverage of the sets of single steps, of the step where it is least and most. Rmse: over all steps.",
)


def overview(table: pd.DataFrame) -> Table | None:
    """Means and spreads over seeds of everything that was run; failures with their message."""
    rows: list[tuple[Entry, ...]] = []
    noted: list[tuple[str, str]] = []
    for (protocol, level), part in each([*table.groupby(["protocol", "alpha"], sort=True)]):
        alpha = float(level)
        summaries = summed(part)
        ranks = _ranks(summaries)
        for key, summary in summaries.items():
            cell, backbone, method, variant, limit = key
            labels = (cell, str(protocol), backbone, At(method, variant=variant, limit_steps=limit).label)
            noted.append((f"{labels[-1]} on {cell}", summary.note))
            failure = next(iter(summary.failed.values()), None)
            rows.append((*labels, Number(alpha, None, 2), *_entries(summary, ranks.get(key, "")), failure))
    if not rows:
        return None
    rows.sort(key=lambda row: (str(row[0]), str(row[1]), row[len(LABELS)]))
    names = ("alpha", "seeds", *(title for title, _, _ in EVERYTHING.values()))
    columns = (*(Column(name) for name in names), Column("failure", messages=True))
    notes = (*NOTES, SHAPES, BOXES, *notes_on(noted))
    whole = Table("all", "Everything in the folder", LABELS, columns, tuple(rows), notes)
    several = {"alpha": len(set(table["alpha"])) > 1, "failure": any(row[-1] for row in rows)}
    return whole.only([i for i, column in enumerate(columns) if several.get(column.name, True)])


def windows(table: pd.DataFrame) -> Table | None:
    """Every row that has figures over time, and an ideal coin of as many steps beside every cell; None without any."""
    known = table[table["gap_30"].notna() & table["status"].eq("ok")]
    rows: list[tuple[Entry, ...]] = []
    for (cell, protocol, level), part in each([*known.groupby(["cell", "protocol", "alpha"], sort=True)]):
        alpha, steps = float(level), int(part["n_test"].max())
        rows += _lines(part, str(cell), str(protocol), OVER_TIME)
        ideal = coin(steps, alpha) | {"joint": 1.0 - alpha}
        if part["worst_hour"].isna().all():
            del ideal["worst_hour"]
        coins = (Number(ideal.get(key, math.nan), None, digits) for key, (_, _, digits) in OVER_TIME.items())
        rows.append((str(cell), str(protocol), "", f"independent coin, {steps} steps", *coins))
    return _table("windows", "Coverage over time", LABELS, OVER_TIME, rows, NOTES_OVER_TIME)


def horizons_table(table: pd.DataFrame) -> Table | None:
    """Every row with sets for steps ahead: the one set for all of them, and how those of single steps hold."""
    known = table[table["horizon"].gt(1) & table["status"].eq("ok")]
    rows: list[tuple[Entry, ...]] = []
    for (cell, protocol, _, steps), part in known.groupby(["cell", "protocol", "alpha", "horizon"], sort=True):
        rows += _lines(part, str(cell), str(protocol), STEPS_AHEAD, str(steps))
    return _table("ahead", "Sets for the steps ahead", (*LABELS, "steps"), STEPS_AHEAD, rows, NOTES_AHEAD)


def _lines(part: pd.DataFrame, cell: str, protocol: str, shown: Shown, *more: str) -> list[tuple[Entry, ...]]:
    lines: list[tuple[Entry, ...]] = []
    for (_, backbone, method, variant, limit), summary in summed(part).items():
        label = At(method, variant=variant, limit_steps=limit).label
        lines.append((cell, protocol, backbone, label, *more, *_numbers(summary, shown).values()))
    return lines


def _numbers(summary: Summary, shown: Shown) -> dict[str, Number | None]:
    return {key: summary.number(key, digits) for key, (_, _, digits) in shown.items()}


def _table(
    name: str, title: str, labels: tuple[str, ...], shown: Shown, rows: list[tuple[Entry, ...]], notes: tuple[str, ...]
) -> Table | None:
    columns = tuple(Column(title, group) for title, group, _ in shown.values())
    return Table(name, title, labels, columns, tuple(rows), notes) if rows else None


def _entries(summary: Summary, rank: str) -> list[Entry]:
    """The number of seeds and every quantity."""
    count = len(summary.seeds)
    seeds: Entry = f"{count} of {count + len(summary.failed)}" if summary.failed else Number(count, None, 0)
    if not count:
        return [seeds, "failed", *[None] * (len(EVERYTHING) - 1)]
    numbers = _numbers(summary, EVERYTHING)
    joint, width = numbers["joint"], numbers["width_full"]
    numbers["joint"] = joint and joint._replace(mark=summary.mark(), suffix=REUSED if summary.note else "")
    numbers["width_full"] = width and width._replace(rank=rank)
    return [seeds, *numbers.values()]


def _ranks(summaries: dict[tuple[str, str, str, str, int], Summary]) -> dict[tuple[str, str, str, str, int], str]:
    """Best and second width at target of every cell; quick looks among themselves."""
    ranks = {}
    for cell, limit in {(key[0], key[4]) for key in summaries}:
        alike = {key: one for key, one in summaries.items() if (key[0], key[4]) == (cell, limit)}
        here = {key: one.number("width_full") for key, one in alike.items() if one.at_target()}
        sized = {key: number.value for key, number in here.items() if number is not None and np.isfinite(number.value)}
        for key, rank in zip(sorted(sized, key=lambda k: sized[k]), ("best", "second"), strict=False):
            ranks[key] = rank
    return ranks
