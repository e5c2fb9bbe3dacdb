"""`jointset report`: a fitted model, or the results of a benchmark, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, phases


def report_command(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Model folder written by `jointset fit`, or one of `jointset bench`."),
    ],
    rows: Annotated[
        Path | None, typer.Argument(metavar="[ROWS]", help="Rows that follow those the model has seen.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Page to write, .html; without it report.html in FOLDER.", metavar="FILE")
    ] = None,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
) -> None:
    """Write one HTML page that needs no network.

    Of a model: its verdict and a light, scores against the radius, a map or graph with who is to blame, the band of
    every sensor with its readings, alarms, coverage by hour and weekday, the health of every sensor. Of a benchmark:
    summary, tables, figures, drill-down.
    """
    from jointset.writing import output_file

    if out is not None:
        output_file(out, (".html", ".htm"))
    if (folder / "model.json").is_file():
        fleet = readings.fleet_asked(drop, rename, ignore_unknown)
        asked = readings.Asked(layout, time_column, day_first, fleet)
        page = model_page(folder, rows, folder / "report.html" if out is None else out, asked)
    else:
        require(rows is None, f"{folder} is not a model folder: rows go with a model that `jointset fit` wrote")
        made = f"`jointset fit` writes a model, `jointset bench --out {folder}` the results of a benchmark"
        require(folder.is_dir(), f"no folder {folder}: {made}")
        from jointset.bench.report import write_report

        with busy("writing the page"):
            page = write_report(folder, out)
    typer.echo(f"Open {page} in a browser ({page.stat().st_size / 1e6:.1f} MB).")


def model_page(folder: Path, rows: Path | None, out: Path, asked: readings.Asked) -> Path:
    """Write the page of a model, and of rows that it has not seen."""
    from jointset.report.model_page import write_model_page

    predictor = readings.opened(folder)
    panel = None if rows is None else asked.after(predictor, rows, "coverage on known rows flatters")
    with phases(0 if panel is None else len(panel), alike=True) as started:
        name = folder.resolve().name
        write_model_page(out, name, predictor, panel, lambda count: started("going through the rows", count))
    return out
