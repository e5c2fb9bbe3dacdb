"""The command line: parses, calls, prints."""

from __future__ import annotations

import errno
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import jointset
from jointset.commands.audit import audit_command
from jointset.commands.bench import bench_command
from jointset.commands.data import data_app
from jointset.commands.methods import methods_command
from jointset.commands.readings import (
    DayFirst,
    Drop,
    DropDead,
    Highest,
    IgnoreEdges,
    IgnoreUnknown,
    Layout,
    Lowest,
    Rename,
    TimeColumn,
    fleet_asked,
)
from jointset.commands.report import report_command
from jointset.commands.tables import tables_command
from jointset.errors import InputError, require, some
from jointset.terminal import (
    busy,
    note,
    phases,
    show_json,
    show_region,
    show_results,
    show_summary,
    show_trust,
    tell_warnings,
    warn,
)

Track = Annotated[
    str, typer.Option(help="Kind of network: A stationary, B correlated noise, C heavy tails, D drift, E jump.")
]
Size = Annotated[int, typer.Option("--n", help="Number of sensors.")]
Seed = Annotated[int, typer.Option(help="Seed of the simulation.")]
Length = Annotated[int, typer.Option(help="Number of steps.")]
Alpha = Annotated[float, typer.Option(help="Miss rate: 0.1 asks for 90 % coverage.")]
Model = Annotated[Path, typer.Argument(help="Model folder written by `jointset fit`.")]


class Commands(TyperGroup):
    """Commands that answer bad input with one line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with --debug the traceback is shown instead."""
        try:
            return super().invoke(ctx)
        except (InputError, OSError) as error:
            closed = isinstance(error, OSError) and error.errno == errno.EPIPE  # the reader of our output has gone
            if closed or ctx.params.get("debug"):
                raise
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(data_app, name="data")
app.command("methods")(methods_command)
app.command("audit")(audit_command)
app.command("bench")(bench_command)
app.command("report")(report_command)
app.command("tables")(tables_command)


def main() -> None:
    """Entry point of `jointset`."""
    tell_warnings()
    app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"jointset {jointset.__version__}")
        raise typer.Exit


@app.callback()
def everywhere(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Joint prediction sets for networks of sensors: one calibrated set for the whole next reading."""


@app.command()
def demo(
    track: Track = "A",
    n: Size = 30,
    seed: Seed = 0,
    length: Length = 8000,
    alpha: Alpha = 0.1,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
) -> None:
    """Compare a few methods on a simulated network and write a report page."""
    from jointset.datasets import generate_grssf
    from jointset.errors import require_alpha
    from jointset.report.demo import METHODS, TRACKS, compare
    from jointset.report.page import write_report
    from jointset.writing import new_folder

    require_alpha(alpha)
    with phases(len(METHODS) + 2) as started:
        started("simulating")
        panel = generate_grssf(track, n=n, seed=seed, length=length).panel
        folder = new_folder(out)
        results = compare(panel, METHODS, alpha, started)
        started("drawing")
        facts: dict[str, Any] = {"track": track.upper(), "n": n, "seed": seed, "length": length, "alpha": alpha}
        facts["command"] = " ".join(["jointset demo", *(f"--{name} {value}" for name, value in facts.items())])
        facts |= {"about": TRACKS[track.upper()], "created": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        page = write_report(folder, results, facts)
    show_results(results, alpha)
    typer.echo(f"Open {page} to see the sets.")


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(help="File to write: .npz (everything) or .csv (wide).")],
    track: Track = "A",
    n: Size = 30,
    seed: Seed = 0,
    length: Length = 8000,
    graph: Annotated[Path | None, typer.Option(help="Also write the graph as an edge list (.csv).")] = None,
) -> None:
    """Write a simulated network of sensors to a file."""
    from jointset.datasets import generate_grssf
    from jointset.writing import output_file, write_edges, write_panel

    output_file(out, (".npz", ".csv"))
    with busy("simulating"):
        panel = generate_grssf(track, n=n, seed=seed, length=length).panel
        write_panel(panel, out)
    typer.echo(f"{out}: {panel.describe()}")
    if graph is not None:
        write_edges(panel, graph)
        typer.echo(f"{graph}: the graph")
    elif out.suffix.lower() == ".csv":
        typer.echo("A .csv file holds no graph: --graph edges.csv writes it beside.")


@app.command()
def fit(
    panel: Annotated[Path, typer.Argument(help="Readings: .csv, .tsv (also .gz), .parquet or .npz.")],
    out: Annotated[Path, typer.Option(help="Model folder to write.")],
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Graph: edge list or matrix (.csv), .npy or .npz; knn: from correlations of the rows fitted on."
        ),
    ] = None,
    symmetrize: Annotated[bool, typer.Option("--symmetrize", help="Use (A + A')/2 of the graph.")] = False,
    directed: Annotated[bool, typer.Option("--directed", help="Accept a directed graph.")] = False,
    layout: Layout = "auto",
    time_column: TimeColumn = None,
    day_first: DayFirst = False,
    drop: Drop = None,
    drop_dead: DropDead = False,
    rename: Rename = None,
    ignore_unknown: IgnoreEdges = False,
    method: Annotated[
        str, typer.Option("--method", "--filter", help="Name from `jointset methods`, as in gnf-node or ewma:box+aci.")
    ] = "kalman-tuned",
    shape: Annotated[str, typer.Option(help="ellipsoid or box.")] = "ellipsoid",
    calibration: Annotated[str, typer.Option(help="split, aci, agaci, dtaci or pid.")] = "split",
    alpha: Alpha = 0.1,
    warmup: Annotated[int, typer.Option(help="First calibration row whose score counts.")] = 50,
    raw: Annotated[bool, typer.Option("--raw", help="Filter the values as they are, not standardised.")] = False,
    recipe: Annotated[str | None, typer.Option(help="Learned filters: fast, paper, or sharp (gnf-node).")] = None,
    steps: Annotated[int | None, typer.Option(help="Learned filters: number of optimiser steps.")] = None,
    seed: Annotated[int, typer.Option(help="Learned filters: seed of the training run.")] = 0,
    device: Annotated[str, typer.Option(help="Learned filters: cpu or cuda.")] = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Learned filters: file to resume from after a kill; deleted at the end.")
    ] = None,
    train_share: Annotated[float, typer.Option(help="Share of the rows, from the first, to fit on.")] = 0.7,
    test_share: Annotated[float, typer.Option(help="Share of the rows, up to the last, to test on.")] = 0.1,
) -> None:
    """Fit a predictor on the first rows of a file, calibrate it on the next, test it on the last.

    The model ends where the file ends: `predict` and `stream` go on from there. Exit code 3: it is written, but its
    sets held far fewer of the last rows than promised (15 points or more under the target, and less than chance has).
    """
    from jointset.adjacency import correlation_knn
    from jointset.advice import verdict_on
    from jointset.baselines.catalogue import ONE_AT_A_TIME
    from jointset.filters import GNF
    from jointset.fleet import without_dead
    from jointset.methods import predictor_for, three_blocks, whole_name
    from jointset.panel import Panel
    from jointset.writing import model_folder

    training: dict[str, Any] = {"seed": seed, "device": device, "steps": steps}
    predictor = predictor_for(
        method,
        shape=shape,
        calibration=calibration,
        alpha=alpha,
        warmup=warmup,
        standardize=not raw,
        training=training if recipe is None else training | {"recipe": recipe},
    )
    learned = isinstance(predictor.filter, GNF)
    flags = {
        "--recipe": recipe,
        "--steps": steps,
        "--checkpoint": checkpoint,
        "--device": None if device == "cpu" else device,
    }
    given = [flag for flag, value in flags.items() if value is not None]
    require(learned or not given, f"{some(given)}: only learned filters (gnf-node, ...) take that, {method} is none")
    model_folder(out)
    fleet = fleet_asked(drop, rename, ignore_unknown)
    with phases(4) as started:
        started("reading")
        options: dict[str, Any] = {"layout": layout, "time_column": time_column, "day_first": day_first}
        options |= {"symmetrize": symmetrize, "directed": directed, "fleet": fleet, "notice": note}
        correlated = str(graph) == "knn"
        data = Panel.read(panel, graph=None if correlated else graph, **options)
        if drop_dead:
            data = without_dead(data, three_blocks(data, train_share, test_share)[0], note)
        if correlated:
            data = data.with_graph(correlation_knn(three_blocks(data, train_share, test_share)[0].values))
        train, calibrating, test = three_blocks(data, train_share, test_share)
        started("fitting")

        def trained(step: int, total: int, loss: float) -> None:
            started(f"training, step {step} of {total}", 0)

        told: dict[str, Any] = {"progress": trained, "checkpoint": checkpoint} if learned else {}
        with naming_the(method):
            predictor.fit(train, **told)
            started("calibrating")
            predictor.calibrate(calibrating)
        started("testing")
        run = predictor.run(test, regions=False) if len(test) else None
    predictor.save(out)
    typer.echo(f"{panel}: {data.describe()}")
    if data.adjacency is None:
        typer.echo("No graph: sensors are not mixed with their neighbours.")
    typer.echo(f"Fitted on {len(train)} rows, calibrated on {len(calibrating)} ({predictor.n_calibration} scores).")
    if run is not None:
        show_summary(run, alpha, f"On the last {len(test)} rows")
    name = whole_name(method, shape, calibration)
    if name.method in ONE_AT_A_TIME and name.wrap is None:
        typer.echo(f"{name.method} answers one sensor at a time: its target is for each sensor, not for all at once.")
    show_trust(predictor)
    typer.echo(f"Saved {out}. Next: jointset predict {out}")
    text, code = verdict_on(predictor, run, str(name), train, calibrating) if run is not None else ("", 0)
    if text:
        warn(text)
    raise typer.Exit(code)


@contextmanager
def naming_the(method: str) -> Iterator[None]:
    """Put the method in front of every InputError that does not name it."""
    try:
        yield
    except InputError as error:
        bare = method.partition("+")[0].partition(":")[0]
        raise InputError(str(error) if str(error).startswith(bare) else f"{method}: {error}") from None


@app.command()
def predict(
    model: Model,
    panel: Annotated[Path | None, typer.Argument(help="Rows that follow those the model has seen.")] = None,
    out: Annotated[Path | None, typer.Option(help="One line a row: .csv, .json or .parquet (with PANEL).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[bool, typer.Option("--save", help="Save the model as it is after the last row of PANEL.")] = False,
    layout: Layout = "auto",
    time_column: TimeColumn = None,
    day_first: DayFirst = False,
    drop: Drop = None,
    rename: Rename = None,
    ignore_unknown: IgnoreUnknown = False,
    lowest: Lowest = None,
    highest: Highest = None,
) -> None:
    """Show the set for the next reading, or run through the rows of a file.

    A sensor of the model without a column counts as missing in every row.
    """
    from jointset.limits import limits_asked
    from jointset.methods import load_predictor
    from jointset.panel import Panel
    from jointset.writing import TABLES, output_file, write_run

    fleet = fleet_asked(drop, rename, ignore_unknown)
    with busy("loading the model"):
        predictor = load_predictor(model)
    limits = limits_asked(lowest, highest)
    if panel is None:
        require(
            out is None and not save, "--out and --save need PANEL, rows to run through; --json prints the next set"
        )
        show_region(predictor, as_json, limits)
        if not as_json:
            show_trust(predictor)
        return
    if out is not None:
        output_file(out, TABLES)
    options: dict[str, Any] = {"layout": layout, "time_column": time_column, "day_first": day_first, "notice": note}
    with busy("reading"):
        data = Panel.read(panel, sensors=predictor.sensors, fleet=fleet, directed=True, **options)
    if predictor.repeats(data):
        note("these rows begin before the last row the model has seen: coverage on known rows flatters")
    with phases(len(data)) as started:
        run = predictor.run(data, regions=False, progress=lambda rows: started("predicting", rows))
    if out is not None:
        with busy("writing"):
            write_run(limits.of(run), out)
    if save:
        predictor.save(model)
    if as_json:
        show_json(run.summary())
    else:
        show_summary(run, predictor.alpha, f"On the {len(data)} rows of {panel}")
        show_trust(predictor)
        typer.echo(f"Wrote {out}." if out else "--out FILE.csv writes one line a row.")
        if save:
            typer.echo(f"Saved {model}, as it is after the last of these rows.")


@app.command()
def stream(
    model: Model,
    save: Annotated[bool, typer.Option("--save", help="Save the model at the end of input or on Ctrl-C.")] = False,
    save_every: Annotated[int | None, typer.Option(help="Save it after every so many good rows too.")] = None,
    format: Annotated[str, typer.Option(help="Input: auto, csv or json.")] = "auto",
    layout: Layout = "auto",
    time_column: TimeColumn = None,
    day_first: DayFirst = False,
    drop: Drop = None,
    rename: Rename = None,
    ignore_unknown: IgnoreUnknown = False,
    lowest: Lowest = None,
    highest: Highest = None,
    top: Annotated[int, typer.Option(help="Sensors to name that contribute most to the score.")] = 3,
    trust: Annotated[bool, typer.Option("--trust", help="Add drift and expected coverage to every line.")] = False,
) -> None:
    """Read rows on stdin, write one JSON line a row on stdout.

    Input is CSV with a header line that names the sensors, CSV of time, sensor and value, or one JSON object or list a
    line. The set of a row is the one announced before the row was read. A bad row gets a line with an error and
    changes nothing. In long CSV the rows of one time are one reading; it is answered when all sensors have been read,
    or when a row of a later time comes.
    """
    from jointset.limits import limits_asked
    from jointset.methods import load_predictor
    from jointset.saving import RegularSaves
    from jointset.streaming import Stream

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop is a Ctrl-C
    saves = None if save_every is None else RegularSaves(model, save_every, note)
    with busy("loading the model"):
        predictor = load_predictor(model)
    options: dict[str, Any] = {"format": format, "layout": layout, "time_column": time_column, "day_first": day_first}
    fleet = fleet_asked(drop, rename, ignore_unknown)
    options |= {"fleet": fleet, "limits": limits_asked(lowest, highest), "notice": note}
    live = Stream(predictor, top=top, trust=trust, **options)
    lines = (line.decode("utf-8", errors="replace") for line in typer.get_binary_stream("stdin"))
    try:
        try:
            for answer in live.answers(lines):
                typer.echo(json.dumps(answer, allow_nan=False))
                if saves is not None and "error" not in answer:
                    saves.saw(live.predictor)
        finally:
            time.sleep(0)  # a Ctrl-C that came together with the end of input is raised here, not while saving
    finally:
        known = predictor if saves is None or saves.saved is None else saves.saved
        if (save or saves is not None) and live.predictor is not known:
            live.predictor.save(model)
        if live.scored:
            share = f"{100 * live.inside / live.scored:.1f} % inside (target {100 * (1 - predictor.alpha):g} %)"
            note(f"{live.rows} rows, {live.bad} bad, {share}")
        if live.closing():
            note("; ".join(live.closing()))
