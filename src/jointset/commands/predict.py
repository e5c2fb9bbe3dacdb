"""`jointset predict`: the next set, or those of the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, phases, several, show_json, show_region, show_summary, show_trust

if TYPE_CHECKING:
    from jointset.contracts import Array
    from jointset.horizons.passes_ahead import AheadRun
    from jointset.joint_predictor import JointPredictor
    from jointset.predicting.limits import Limits


def predict_command(
    model: readings.Model,
    panel: Annotated[Path | None, typer.Argument(help="Rows that follow those the model has seen.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="One line a row of PANEL, or with --horizon a step and sensor: .csv, .json or .parquet."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Show the sets of the next so many steps, as in `fit --horizon`.")
    ] = None,
    fan: Annotated[
        Path | None, typer.Option(help="Folder for a picture of every sensor's next steps (with --horizon).")
    ] = None,
    impute: Annotated[
        Path | None,
        typer.Option(help="One line a gap of PANEL, filled, with an interval (fit --impute): .csv, .json or .parquet."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[bool, typer.Option("--save", help="Save the model as it is after the last row of PANEL.")] = False,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
    lowest: readings.Lowest = None,
    highest: readings.Highest = None,
) -> None:
    """Show the set for the next reading, or run through the rows of a file.

    A sensor of the model without a column counts as missing in every row. With --impute its gaps are filled too, each
    from its row and those before; the sets stay the same. With --horizon come the sets of the steps
    after the last row, of PANEL where there is one.
    """
    from jointset.inputs.outliers import warn_absurd
    from jointset.predicting.imputation import impute_rows
    from jointset.predicting.limits import limits_asked
    from jointset.writing import TABLES, output_file, require_apart, write_run, write_table

    fleet = readings.fleet_asked(drop, rename, ignore_unknown)
    require(fan is None or horizon is not None, "--fan draws the steps of --horizon: give --horizon too")
    require(impute is None or panel is not None, "--impute fills the gaps of PANEL: give rows that follow")
    for path in (out, impute):
        if path is not None:
            output_file(path, TABLES)
    require_apart({"--out": out, "--impute": impute}, (panel, rename))
    predictor = readings.opened(model)
    limits = limits_asked(lowest, highest)
    if horizon is not None:
        predictor.predict(horizon=horizon)  # refused before any row is read
    if panel is None and horizon is not None:
        require(not save, "--save needs PANEL, rows to run through")
        show_ahead(predictor, horizon, as_json, limits, out, fan)
        return
    if panel is None:
        require(
            out is None and not save, "--out and --save need PANEL, rows to run through; --json prints the next set"
        )
        show_region(predictor, as_json, limits)
        if not as_json:
            show_trust(predictor)
        return
    asked = readings.Asked(layout, time_column, day_first, fleet)
    data = asked.after(predictor, panel, "coverage on known rows flatters")
    warn_absurd(data, "new")
    filled = None
    if impute is not None:
        with phases(len(data), alike=True) as started:
            filled = impute_rows(predictor, data, limits, progress=lambda rows: started("filling", rows)).table()
    with phases(len(data), alike=True) as started:
        run = predictor.run(data, regions=False, progress=lambda rows: started("predicting", rows))
    if filled is not None and impute is not None:
        with busy("writing") as counting:
            write_table(filled, impute, counting)
        if not as_json:
            typer.echo(f"Wrote {impute}, one line a gap: {several(len(filled), 'gap')} filled.")
    if out is not None and horizon is None:
        with busy("writing") as counting:
            write_run(limits.of(run), out, counting)
    if save:
        predictor.save(model)
    if horizon is not None:
        show_ahead(predictor, horizon, as_json, limits, out, fan, data.values, run.ahead)
        return
    if as_json:
        show_json(run.summary())
    else:
        show_summary(run, predictor.alpha, f"On the {several(len(data), 'row')} of {panel}")
        show_trust(predictor)
        typer.echo(f"Wrote {out}." if out else "--out FILE.csv writes one line a row.")
        if save:
            typer.echo(f"Saved {model}, as it is after the last of these rows.")


def show_ahead(
    predictor: JointPredictor,
    horizon: int,
    as_json: bool,
    limits: Limits,
    out: Path | None,
    fan: Path | None,
    past: Array | None = None,
    tested: AheadRun | None = None,
) -> None:
    """Show how the sets of steps ahead did on some rows and those of the next steps, and write what was asked for."""
    from jointset.commands.ahead import show_run_ahead, show_sets, write_sets
    from jointset.writing import new_folder

    sets = predictor.predict(horizon=horizon)
    if tested is not None and not as_json:
        show_run_ahead(tested, predictor)
    show_sets(predictor, sets, as_json, limits, tested)
    if out is not None:
        write_sets(predictor, sets, out, limits)
        if not as_json:
            typer.echo(f"Wrote {out}.")
    if fan is not None:
        from jointset.report.fan import write_fans  # matplotlib takes its time

        with busy("drawing"):
            written = write_fans(new_folder(fan), sets, past, limits)
        if not as_json:
            typer.echo(f"Wrote {several(len(written), 'picture')} to {fan}.")
