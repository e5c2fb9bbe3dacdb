"""`jointset report`: a fitted model, or the results of a benchmark, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, note, phases


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
        options: dict[str, Any] = {"layout": layout, "time_column": time_column, "day_first": day_first, "notice": note}
        fleet = readings.fleet_asked(drop, rename, ignore_unknown)
        page = model_page(folder, rows, folder / "report.html" if out is None else out, options, fleet)
    else:
        require(rows is None, f"{folder} is not a model folder: rows go with a model that `jointset fit` wrote")
        page = benchmark_page(folder, out)
    typer.echo(f"Open {page} in a browser ({page.stat().st_size / 1e6:.1f} MB).")


def benchmark_page(folder: Path, out: Path | None) -> Path:
    """Write the page of a benchmark's results."""
    from jointset.bench.report import write_report

    with busy("writing the page"):
        return write_report(folder, out)


def model_page(folder: Path, rows: Path | None, out: Path, options: dict[str, Any], fleet: Any) -> Path:
    """Write the page of a model, and of rows that it has not seen."""
    from jointset.methods import load_predictor
    from jointset.panel import Panel
    from jointset.report.model_page import write_model_page

    with busy("loading the model"):
        predictor = load_predictor(folder)
    panel = None
    if rows is not None:
        with busy("reading"):
            fleet = fleet._replace(left_out=predictor.left_out)
            panel = Panel.read(rows, sensors=predictor.sensors, fleet=fleet, directed=True, **options)
        if predictor.repeats(panel):
            note("these rows begin before the last row the model has seen: coverage on known rows flatters")
    with phases(0 if panel is None else len(panel), alike=True) as started:
        name = folder.resolve().name
        write_model_page(out, name, predictor, panel, lambda count: started("going through the rows", count))
    return out
