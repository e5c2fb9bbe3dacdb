"""The table of everything: every cell, protocol, backbone and method that a folder holds, the user's own files too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jointset.bench.tables.build import SEED_NOTE, notes_on
from jointset.bench.tables.grids import BOXES, SHAPES
from jointset.bench.tables.measured import Summary, summed
from jointset.bench.tables.model import REUSED, Column, Entry, Number, Table

if TYPE_CHECKING:
    import pandas as pd

SHOWN = {  # quantity: (title, decimals)
    "width_full": ("width_full", 3),
    "joint": ("joint", 3),
    "worst_window": ("worst window", 3),
    "log_mean_volume": ("log mean vol", 3),
    "log_volume": ("log-vol", 3),
    "width": ("width", 3),
    "winkler": ("winkler", 3),
    "infinite_share": ("infinite", 4),
}
LABELS = ("cell", "protocol", "backbone", "method")
NOTES = (
    f"Numbers: {SEED_NOTE}. Worst window: smallest joint coverage over any 500 steps in a row, "
    "over all where there are fewer. Log mean vol: log of the mean volume^(1/N). Infinite: share of "
    "steps whose set is the whole space or whose radius was clipped. ↓ joint below 1 - alpha - 0.005, ↑ at or above "
    "1 - alpha + 0.013. * and °: the tightest and the next by width_full among those at target on the same cell, "
    "protocol, alpha and number of steps.",
)


def overview(table: pd.DataFrame) -> Table | None:
    """Means and spreads over seeds of everything that was run; failures with their message."""
    rows: list[tuple[Entry, ...]] = []
    noted: list[tuple[str, str]] = []
    for (protocol, level), part in table.groupby(["protocol", "alpha"], sort=True):
        alpha = float(level)  # type: ignore[arg-type]
        summaries = summed(part)
        ranks = _ranks(summaries)
        for key, summary in summaries.items():
            cell, backbone, method, variant, limit = key
            told = ", ".join(filter(None, (variant, f"{limit} steps" if limit else "")))
            labels = (cell, str(protocol), backbone, f"{method} ({told})" if told else method)
            noted.append((f"{labels[-1]} on {cell}", summary.note))
            failure = next(iter(summary.failed.values()), None)
            rows.append((*labels, Number(alpha, None, 2), *_entries(summary, ranks.get(key, "")), failure))
    if not rows:
        return None
    rows.sort(key=lambda row: (str(row[0]), str(row[1]), row[len(LABELS)]))
    names = ("alpha", "seeds", *(title for title, _ in SHOWN.values()))
    columns = (*(Column(name) for name in names), Column("failure", messages=True))
    notes = (*NOTES, SHAPES, BOXES, *notes_on(noted))
    whole = Table("all", "Everything in the folder", LABELS, columns, tuple(rows), notes)
    several = {"alpha": len(set(table["alpha"])) > 1, "failure": any(row[-1] for row in rows)}
    return whole.only([i for i, column in enumerate(columns) if several.get(column.name, True)])


def _entries(summary: Summary, rank: str) -> list[Entry]:
    """The number of seeds and every quantity."""
    count = len(summary.seeds)
    seeds: Entry = f"{count} of {count + len(summary.failed)}" if summary.failed else Number(count, None, 0)
    if not count:
        return [seeds, "failed", *[None] * (len(SHOWN) - 1)]
    numbers = {key: summary.number(key, digits) for key, (_, digits) in SHOWN.items()}
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
