"""`jointset fit`: a predictor from the rows of a file, tested on the last of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.commands import completion, readings
from jointset.errors import InputError, require, some
from jointset.support.extras import installed, lack_of
from jointset.terminal import (
    counted,
    duration,
    note,
    phases,
    seconds_left,
    several,
    show_json,
    show_summary,
    show_trust,
    stepped,
    trust_words,
    warn,
)

DEFAULT = "default"  # the method of `fit`
WITHOUT_GRAPH = dict.fromkeys((DEFAULT, "quick", "var"), "how sensors go together is learned from the readings")
LONG = 10.0  # seconds of training that are told beforehand


def fit_command(
    panel: Annotated[Path, typer.Argument(help="Readings: .csv, .tsv (also .gz), .parquet or .npz.")],
    out: Annotated[Path, typer.Option(help="Model folder to write.")],
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Graph: edge list or matrix (.csv), .npy or .npz; knn: from correlations of the rows fitted on."
        ),
    ] = None,
    places: Annotated[
        Path | None, typer.Option(help="CSV of sensor,latitude,longitude: where the pages draw the sensors.")
    ] = None,
    symmetrize: Annotated[bool, typer.Option("--symmetrize", help="Use (A + A')/2 of the graph.")] = False,
    directed: Annotated[bool, typer.Option("--directed", help="Accept a directed graph.")] = False,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    drop_dead: readings.DropDead = False,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreEdges = False,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "--filter",
            autocompletion=completion.methods_known,
            help="Name from `jointset methods`: default (trained), quick (seconds), ewma:box+aci, ...; "
            "else default, or quick where torch is not installed.",
        ),
    ] = None,
    shape: Annotated[
        str, typer.Option(autocompletion=completion.one_of("ellipsoid", "box", "lean"), help="ellipsoid, box, or lean.")
    ] = "ellipsoid",
    calibration: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.rules_known,
            help="split, aci, agaci, dtaci, pid, sfogd, saocp, eci, window, auto, or clock-RULE; else auto for "
            "default and quick, split for the others.",
        ),
    ] = None,
    alpha: readings.Alpha = 0.1,
    warmup: Annotated[int, typer.Option(help="First calibration row whose score counts.")] = 50,
    horizon: Annotated[int, typer.Option(help="Steps ahead that sets are calibrated for, beside the next one.")] = 1,
    raw: Annotated[bool, typer.Option("--raw", help="Filter the values as they are, not standardised.")] = False,
    recipe: Annotated[
        str | None,
        typer.Option(autocompletion=completion.recipes, help="Learned filters: fast, paper, or sharp (gnf-node)."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Learned filters: number of optimiser steps.")] = None,
    seed: Annotated[int, typer.Option(help="Learned filters: seed of the training run.")] = 0,
    device: Annotated[
        str, typer.Option(autocompletion=completion.devices, help="Learned filters: cpu or cuda.")
    ] = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Learned filters: file to resume from after a kill; deleted at the end.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write a page about the model and its test rows, .html.", metavar="FILE")
    ] = None,
    impute: Annotated[
        bool, typer.Option("--impute", help="Learn to fill gaps too: for `impute` and `stream --impute`.")
    ] = False,
    train_share: Annotated[float, typer.Option(help="Share of the rows, from the first, to fit on.")] = 0.7,
    test_share: Annotated[float, typer.Option(help="Share of the rows, up to the last, to test on.")] = 0.1,
) -> None:
    """Fit a predictor on the first rows of a file, calibrate it on the next, test it on the last.

    The model ends where the file ends: `predict` and `stream` go on from there. Exit code 3: it is written, but its
    sets held far fewer of the last rows than promised (15 points or more under the target, and less than chance has).
    """
    from jointset.catalogue import LEARNED, ONE_AT_A_TIME
    from jointset.commands.advice import beside, show_beside, verdict_on
    from jointset.commands.ahead import show_run_ahead
    from jointset.horizons.calibrating_ahead import require_horizon
    from jointset.inputs.adjacency import correlation_knn
    from jointset.inputs.fleet import without_dead
    from jointset.inputs.outliers import warn_absurd
    from jointset.inputs.sensor_health import words_on_jumps
    from jointset.inputs.sensor_places import read_places
    from jointset.methods import predictor_for, taken_by_fit, three_blocks, whole_name
    from jointset.panel import Panel
    from jointset.writing import model_folder, output_file

    method = method or usual_method()
    training: dict[str, Any] = {"seed": seed, "device": device, "steps": steps}
    how: dict[str, Any] = {"alpha": alpha, "warmup": warmup, "standardize": not raw}
    predictor = predictor_for(
        method,
        shape=shape,
        calibration=calibration,
        **how,
        training=training if recipe is None else training | {"recipe": recipe},
    )
    name = whole_name(method, shape, calibration)
    learned = name.method in LEARNED
    flags = {
        "--recipe": recipe,
        "--steps": steps,
        "--checkpoint": checkpoint,
        "--device": None if device == "cpu" else device,
    }
    given = [flag for flag, value in flags.items() if value is not None]
    require(
        learned or not given,
        f"{some(given)}: only learned filters (default, gnf-node, ...) take that, {method} is none",
    )
    require_horizon(horizon)
    model_folder(out)
    if html is not None:
        output_file(html, (".html", ".htm"))
    fleet = readings.fleet_asked(drop, rename, ignore_unknown)
    with phases(4) as started:
        started("reading")
        options: dict[str, Any] = {"layout": layout, "time_column": time_column, "day_first": day_first}
        options |= {"symmetrize": symmetrize, "directed": directed, "fleet": fleet, "notice": note}
        options["counting"] = partial(counted, started, "reading")
        correlated = str(graph) == "knn"
        data = Panel.read(panel, graph=None if correlated else graph, **options)
        alive = data
        if drop_dead:
            alive = without_dead(data, three_blocks(data, train_share, test_share)[0], note)
        predictor.left_out = (*fleet.drop, *(name for name in data.sensors if name not in alive.sensors))
        data = alive
        if correlated:
            data = data.with_graph(correlation_knn(three_blocks(data, train_share, test_share)[0].values))
        if places is not None:
            data = replace(data, coordinates=read_places(places, data.sensors))
        train, calibrating, test = three_blocks(data, train_share, test_share)
        require_scores(len(data), len(calibrating), alpha, warmup, 1.0 - train_share - test_share)
        started("fitting")

        trained = training_told(started) if learned else stepped(started, "fitting")
        told = taken_by_fit(predictor.filter, checkpoint=checkpoint)
        require(checkpoint is None or "checkpoint" in told, f"{method} keeps no checkpoint: leave it out")
        with naming_the(method):
            predictor.fit(train, progress=trained, **told)
            started("calibrating")
            counting = counted(started, "calibrating", len(calibrating))
            predictor.calibrate(calibrating, horizon=horizon, progress=counting)
            if impute:
                predictor.learn_to_fill(calibrating, partial(counted, started, "learning to fill gaps"))
        started("testing")
        warn_absurd(test, "test")
        counting, before = counted(started, "testing", len(test)), predictor.copy()
        run = predictor.run(test, regions=False, progress=counting) if len(test) else None
    predictor.save(out)
    text, code = verdict_on(predictor, run, str(name), train, calibrating) if run is not None else ("", 0)
    if as_json:
        rows = {"training": len(train), "calibration": len(calibrating), "test": len(test)}
        found: dict[str, Any] = {"model": str(out), "method": str(name), "alpha": alpha, "sensors": data.sensors}
        found |= {"rows": rows, "scores": predictor.n_calibration, "test": None if run is None else run.summary()}
        if run is not None and name.method == DEFAULT:
            found["beside"] = beside(name, run, (train, calibrating, test), **how)
        if run is not None and run.ahead is not None:
            found["ahead"] = run.ahead.summary()
        show_json(found | {"trust": trust_words(predictor), "warning": text})
    else:
        typer.echo(f"{panel}: {data.describe()}")
        if data.adjacency is None:
            typer.echo(f"No graph: {WITHOUT_GRAPH.get(name.method, 'sensors are not mixed')}.")
        if words := words_on_jumps(predictor.usual, predictor.graph):
            typer.echo(f"Alarms: {words}.")
        typer.echo(f"Fitted on {len(train)} rows, calibrated on {len(calibrating)} ({predictor.n_calibration} scores).")
        if run is not None:
            show_summary(run, alpha, f"On the last {several(len(test), 'row')}")
        if run is not None and name.method == DEFAULT:
            show_beside(beside(name, run, (train, calibrating, test), **how), alpha)
        if name.method in ONE_AT_A_TIME and name.wrap is None:
            typer.echo(
                f"{name.method} answers one sensor at a time: its target is for each sensor, not for all at once."
            )
        show_trust(predictor)
        if run is not None and run.ahead is not None:
            show_run_ahead(run.ahead, predictor)
        typer.echo(f"Saved {out}. Next: jointset predict {out}{'' if horizon == 1 else f' --horizon {horizon}'}")
    if html is not None:
        from jointset.report.model_page import write_model_page

        with phases(len(test), alike=True) as started:
            name_of = out.resolve().name
            write_model_page(html, name_of, before, test, lambda count: started("writing the page", count))
        if not as_json:
            typer.echo(f"Open {html} in a browser to see it on its test rows.")
    if text:
        warn(text)
    raise typer.Exit(code)


def require_scores(rows: int, calibrating: int, alpha: float, warmup: int, share: float) -> None:
    """Refuse too few rows before anything is learned from them."""
    from jointset.calibration.quantiles import minimum_scores

    least = minimum_scores(alpha)
    found, needed = max(calibrating - warmup + 1, 0), math.ceil((least + warmup - 1) / share)
    require(
        found >= least,
        f"{rows} rows are too few: {calibrating} of them calibrate, {found} of these after the warm-up of {warmup}, "
        f"and {least} are needed for alpha={alpha:g}; give {needed} rows, or a smaller --warmup or --train-share",
    )


def usual_method() -> str:
    """What is fitted where no method is asked for."""
    if installed("torch"):
        return DEFAULT
    note(f"{lack_of('torch', f'the method {DEFAULT}')}; this is quick")
    return "quick"


def training_told(started: Callable[..., None]) -> Callable[[int, int, float], None]:
    """A progress function for training: it tells a bar how far it is, and once how long it will take."""
    calls, told, left, shown = 0, False, seconds_left(), stepped(started, "fitting")

    def step_done(step: int, total: int, loss: float) -> None:
        nonlocal calls, told
        calls, rest = calls + 1, left(step, total)
        if not told and (calls > 1 or step <= total // 50):  # what a run before this one did says nothing of the pace
            told = True
            if rest > LONG:
                note(f"training takes about {duration(rest)} here; for sets in seconds: --method quick")
        shown(step, total, loss)

    return step_done


@contextmanager
def naming_the(method: str) -> Iterator[None]:
    """Put the method in front of every InputError that does not name it."""
    from jointset.catalogue import bare

    try:
        yield
    except InputError as error:
        known = str(error).startswith(bare(method))
        raise InputError(str(error) if known else f"{method}: {error}") from None
