"""`jointset impute`: the gaps of a file filled, each with an interval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, phases, several


def impute_command(
    model: readings.Model,
    panel: Annotated[Path, typer.Argument(help="Rows that follow those the model has seen.")],
    out: Annotated[
        Path | None, typer.Option(help="One line a gap, with its interval: .csv, .json or .parquet.")
    ] = None,
    filled: Annotated[Path | None, typer.Option(help="The rows with their gaps filled: .csv or .npz.")] = None,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
    lowest: readings.Lowest = None,
    highest: readings.Highest = None,
) -> None:
    """Fill the gaps of a file: what each missing sensor should have read given those that were, and an interval.

    Every row is filled from itself and the rows before it. The model stays as it is; it must have been fitted with
    --impute. A sensor of the model without a column counts as missing in every row.
    """
    from jointset.predicting.imputation import impute_rows
    from jointset.predicting.limits import limits_asked
    from jointset.writing import TABLES, output_file, require_apart, write_panel, write_table

    require(out is not None or filled is not None, "nothing to write: give --out FILE.csv, --filled FILE.csv, or both")
    for path, kinds in ((out, TABLES), (filled, (".csv", ".npz"))):
        if path is not None:
            output_file(path, kinds)
    require_apart({"--out": out, "--filled": filled}, (panel, rename))
    fleet, limits = readings.fleet_asked(drop, rename, ignore_unknown), limits_asked(lowest, highest)
    predictor = readings.opened(model)
    data = readings.Asked(layout, time_column, day_first, fleet).after(predictor, panel)
    with phases(len(data), alike=True) as started:
        found = impute_rows(predictor, data, limits, progress=lambda rows: started("filling", rows))
    gaps = int((~data.mask).sum())
    typer.echo(f"{panel}: {several(gaps, 'gap')} of {data.mask.size:,} readings filled.")
    if out is not None:
        with busy("writing") as counting:
            write_table(found.table(), out, counting)
        typer.echo(f"Wrote {out}, one line a gap.")
    if filled is not None:
        with busy("writing") as counting:
            write_panel(data.with_values(found.values), filled, counting)
        typer.echo(f"Wrote {filled}, the rows with their gaps filled.")
