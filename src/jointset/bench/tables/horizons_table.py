"""The table of steps ahead: the one set for all of them, and how the sets of single steps hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointset.bench.results import AHEAD
from jointset.bench.tables.measured import summed
from jointset.bench.tables.model import Column, Entry, Table

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("cell", "protocol", "backbone", "method", "steps")
TITLES = {
    "ahead_joint": "joint",
    "ahead_log_volume": "log-volume",
    "ahead_lowest": "lowest step",
    "ahead_highest": "highest step",
    "ahead_rmse": "rmse",
}
NOTES = (
    "Joint, log-volume: of the one set for all readings of all steps, the second per reading. Lowest, highest step: "
    "joint coverage of the sets of single steps, of the step where it is least and most. Rmse: over all steps.",
)


def horizons_table(table: pd.DataFrame) -> Table | None:
    """Every row with sets for steps ahead; None where there is none."""
    known = table[table["horizon"].gt(1) & table["status"].eq("ok")]
    rows: list[tuple[Entry, ...]] = []
    for (cell, protocol, _, steps), part in known.groupby(["cell", "protocol", "alpha", "horizon"], sort=True):
        for (_, backbone, method, variant, limit), summary in summed(part).items():
            told = ", ".join(filter(None, (variant, f"{limit} test steps" if limit else "")))
            label = f"{method} ({told})" if told else method
            numbers = [summary.number(key, 3) for key in AHEAD]
            rows.append((str(cell), str(protocol), backbone, label, str(steps), *numbers))
    if not rows:
        return None
    columns = tuple(Column(TITLES[key]) for key in AHEAD)
    return Table("ahead", "Sets for the steps ahead", LABELS, columns, tuple(rows), NOTES)
