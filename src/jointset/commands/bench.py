"""`jointset bench`: methods on cells, into a folder that can be stopped, continued and read at any time."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jointset.commands import completion
from jointset.errors import InputError, require, require_alpha, require_known
from jointset.support.extras import require_extra
from jointset.terminal import note, several, show_json

if TYPE_CHECKING:
    import pandas as pd

    from jointset.bench.plan import Task
    from jointset.bench.runner import Engine
    from jointset.bench.task import Done

HERE = {"local": (), "dask": ("distributed",), "dask:local": ("distributed",)}  # engines here: modules of workers
SHOWN = ("width_full", "joint", "log_mean_volume", "worst_window")


def bench_command(
    cells: Annotated[
        str,
        typer.Option(
            autocompletion=completion.listed(completion.bench_cells),
            help="Cells, separated by commas: names, hero, scale, nontraffic, grssf, available, file:PATH.",
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            autocompletion=completion.listed(completion.bench_methods),
            help="Methods, separated by commas: names, filters, static, adaptive, conditional, published, all, grid, "
            "grid:NAME (every geometry and wrap of a method or group).",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results; rows that are there are not done again.")],
    seeds: Annotated[int, typer.Option(help="Number of seeds: 0, 1, ...")] = 1,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="fit (as jointset fit; default for files), text (as the paper describes), table (as its tables)."
        ),
    ] = None,
    backbone: Annotated[str, typer.Option(help="Mean backbones: gpvar, var, gru, transformer, stgnn.")] = "gpvar",
    swap: Annotated[
        bool, typer.Option("--swap", help="Run filters around every backbone's mean too, not only their own.")
    ] = False,
    alpha: Annotated[float, typer.Option(help="Miss rate: 0.1 asks for 90 % coverage.")] = 0.1,
    recipe: Annotated[
        str, typer.Option(autocompletion=completion.recipes, help="Learned filters: fast, paper, or sharp (gnf-node).")
    ] = "",
    jobs: Annotated[int | None, typer.Option(help="Worker processes; by default one a core, one for cuda.")] = None,
    engine: Annotated[
        str, typer.Option(help="local, dask (workers here), or dask:tcp://HOST:PORT (a scheduler of yours).")
    ] = "local",
    device: Annotated[
        str, typer.Option(autocompletion=completion.devices, help="Learned filters and backbones: cpu or cuda.")
    ] = "cpu",
    pilot: Annotated[
        str,
        typer.Option(
            help="Rows to fit shapes on: validation, train (exact split) or calibration; else the protocol's."
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    horizon: Annotated[int, typer.Option(help="Steps ahead that sets are calibrated and tested for as well.")] = 1,
    limit_steps: Annotated[
        int, typer.Option(help="A quick look: at most so many test steps, and training steps of what is learned.")
    ] = 0,
) -> None:
    """Run methods on cells and keep one row of numbers for every seed.

    A run that was stopped goes on with the same command and does only what is missing. `static` is the group of that
    name, `static:ellipsoid` the one row. Exit code 1: some rows are errors, which the next run tries again.
    """
    if engine in HERE:
        from jointset.bench.processes import starter

        starter(*HERE[engine])  # workers load while this process does, and plans
    from jointset.bench.names import backbones_named, cells_to_run, methods_to_run, pilot_named, protocols_named
    from jointset.bench.plan import Settings, data_digest, tasks
    from jointset.bench.progress import shown
    from jointset.bench.results import read_results, read_runs
    from jointset.bench.runner import cores, done_units, fill, require_device
    from jointset.bench.task import forget
    from jointset.horizons.calibrating_ahead import require_horizon

    arguments = told(locals())
    require_alpha(alpha)
    require(seeds >= 1, f"--seeds {seeds}: give the number of seeds, 1 or more")
    require(jobs is None or jobs >= 1, f"--jobs {jobs}: give the number of processes, 1 or more")
    require_horizon(horizon)
    require(limit_steps >= 0, f"--limit-steps {limit_steps}: give a number of steps; 0 is no limit")
    settings = Settings(alpha, limit_steps, recipe.lower(), device, pilot_named(pilot), horizon if horizon > 1 else 0)
    wanted, named = methods_to_run(methods, here=engine in HERE), cells_to_run(cells)
    check_recipe(wanted.names, settings.recipe)
    require_device(device, here=engine in HERE)
    run = engine_named(engine, jobs or (1 if device == "cuda" else cores()))
    asked = partial(
        tasks,
        named.names,
        wanted.names,
        range(seeds),
        protocols=protocols_named(protocol),
        backbones=backbones_named(backbone),
        settings=settings,
        swap=swap,
    )
    require(out.is_dir() or not out.exists(), f"--out {out} is a file: give the folder of the results")
    read_runs(out)  # a record that cannot be continued is refused before any work
    for text in (*wanted.left_out, *named.left_out):
        note(text)
    require(bool(named.names), f"none of the cells of {cells!r} has its data here: `jointset data list` shows what has")
    lacking = prepare(named.names)
    forget()  # what this process has read before may be older
    data = {name: data_digest(name) for name in named.names}
    whole = partial(asked, data=data)
    for text in changed_files(out, data):
        note(text)
    planned = whole(done=done_units(out))
    report_state(sum(len(task.units) for task in whole()), planned, out)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop is a Ctrl-C
    failed, errors = 0, list[str]()
    if planned:
        try:
            with shown(planned) as show:

                def finished(done: Done) -> None:
                    errors.extend(row["error"] for row in done.rows if row["error"])
                    show(done)

                failed = fill(out, planned, partial(with_failures, run, lacking), told=arguments, finished=finished)
        except KeyboardInterrupt:
            note(f"stopped: what is finished is in {out}, the same command goes on from there")
            raise typer.Exit(130) from None
    results = read_results(out)
    keys = {unit for task in whole() for unit in task.units}
    if as_json:
        show_json(rows_shown(results, keys))
    else:
        show_rows(results, keys)
        typer.echo(f"Results in {out}. Next: jointset tables {out}, jointset report {out}")
    if failed:
        note(f"{failed} {'row is an error' if failed == 1 else 'rows are errors'}, the first: {errors[0]}")
        raise typer.Exit(1)


# ---------------------------------------------------------------------- before the run


def engine_named(name: str, jobs: int) -> Engine:
    """The engine of `local`, `dask`, `dask:local` or `dask:ADDRESS`: from tasks to finished ones."""
    kind, _, address = name.partition(":")
    require_known(kind, ("local", "dask"), f"unknown engine {name!r}")
    if kind == "local":
        require(not address, f"unknown engine {name!r}: local takes no address, dask:ADDRESS does")
        from jointset.bench.engine_local import run_local

        return partial(run_local, jobs=jobs)
    require_extra("distributed", f"the engine {name}")
    from jointset.bench.engine_dask import run_dask

    return partial(run_dask, jobs=jobs, address=None if address in ("", "local") else address)


def check_recipe(methods: Sequence[str], recipe: str) -> None:
    """Refuse a recipe that there is not, or that one of the methods does not have."""
    from jointset.catalogue import LEARNED
    from jointset.filters.recipes import RECIPES
    from jointset.methods import filter_row, parse

    for name in methods if recipe else ():
        if parse(name).method in LEARNED:
            try:
                filter_row(parse(name), training={"recipe": recipe})
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
    if recipe:
        require_known(recipe, RECIPES, f"unknown recipe {recipe!r}")


def prepare(cells: Sequence[str]) -> dict[str, str]:
    """See to the data of cells, fetching what is not here; why, for those that cannot be had."""
    from jointset.datasets import registry
    from jointset.datasets.notes import data_warnings
    from jointset.datasets.origins import file_parts, name_parts
    from jointset.support.files import existing_file

    lacking: dict[str, str] = {}
    for name in cells:
        if name.startswith("file:"):
            existing_file(file_parts(name)[0])
            continue
        base, _ = name_parts(name, registry.names())
        if registry.state(base) == "not here":
            try:
                with data_warnings():
                    registry.fetch(base)
            except (InputError, OSError) as error:
                lacking[name] = " ".join(str(error).split())
    return lacking


def changed_files(out: Path, data: Mapping[str, str]) -> Iterator[str]:
    """A sentence for every file cell that has rows of another content than it has now."""
    from jointset.bench.plan import graph_file
    from jointset.bench.results import read_results
    from jointset.datasets.origins import file_parts

    known = {name: digest for name, digest in data.items() if digest} if out.is_dir() else {}
    results = read_results(out) if known else None
    for name, digest in known.items():
        assert results is not None
        made = results.loc[results["cell"].eq(name) & results["status"].eq("ok"), "data"]
        if made.eq(digest).all():
            continue
        what = f"{file_parts(name)[0]}{' or its graph file' if graph_file(name) else ''}"
        lack = f"{what} has changed since rows of it were made"
        if made.eq("").all():
            lack = f"rows of {what} are there that do not tell what it held then"
        yield f"{lack}: they are left out, and run again where asked for"


def with_failures(engine: Engine, lacking: dict[str, str], tasks: Sequence[Task]) -> Iterator[Done]:
    """Tasks through an engine; those whose data cannot be had fail at once."""
    from jointset.bench.task import failure

    yield from (failure(task, lacking[task.cell]) for task in tasks if task.cell in lacking)
    able = [task for task in tasks if task.cell not in lacking]
    if able:
        yield from engine(able)


def told(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a run for its record."""
    names = ("cells", "methods", "seeds", "protocol", "backbone", "swap", "alpha", "recipe", "jobs", "engine", "device")
    return {"arguments": {name: given[name] for name in (*names, "pilot", "limit_steps", "horizon")}}


def report_state(rows: int, planned: Sequence[Task], out: Path) -> None:
    """How many rows there are and how many of them are missing."""
    missing = sum(len(task.units) for task in planned)
    there = f", {rows - missing} of them already in {out}" if missing < rows else ""
    typer.echo(f"{several(rows, 'row')}{there}; {missing} to do in {several(len(planned), 'task')}.", err=True)


# ---------------------------------------------------------------------- after the run


def of_run(results: pd.DataFrame, keys: set[tuple]) -> Any:
    """Which rows have one of these keys."""
    import numpy as np

    from jointset.bench.results import keys_of, without_horizon

    return np.array([key in keys or without_horizon(key) in keys for key in keys_of(results)], dtype=bool)


def columns_shown(rows: pd.DataFrame) -> tuple[str, ...]:
    """The figures to show of rows: those of the steps ahead where there are any."""
    return (*SHOWN, "ahead_joint", "ahead_log_volume") if rows["horizon"].gt(1).any() else SHOWN


def rows_shown(results: pd.DataFrame, keys: set[tuple]) -> list[dict[str, Any]]:
    """What `show_rows` shows, an object a method: the means over its seeds."""
    fine = results[results["status"].eq("ok")]
    named = ["cell", "protocol", "method", "backbone"]
    groups = fine[of_run(fine, keys)].groupby(named, sort=False)
    shown = []
    for name, group in groups:
        means = {column: group[column].mean() for column in columns_shown(group)}
        shown.append(dict(zip(named, name, strict=True)) | {"seeds": len(group), "note": group["note"].max(), **means})
    return shown


def show_rows(results: pd.DataFrame, keys: set[tuple]) -> None:
    """A table for every cell and protocol of the run: the mean of every method over its seeds."""
    from jointset.bench.tables.measured import variant_of
    from jointset.bench.tables.model import REUSED
    from jointset.terminal import number, show_table

    fine = results[results["status"].eq("ok")]
    fine = fine[of_run(fine, keys)]
    for (cell, protocol), rows in fine.groupby(["cell", "protocol"], sort=False):
        lines, notes, columns = [], dict[str, list[str]](), columns_shown(rows)
        for (method, backbone), group in rows.groupby(["method", "backbone"], sort=False):
            marks = [*([] if backbone in ("own", "gpvar") else [str(backbone)]), variant_of(group.iloc[0])]
            told = ", ".join(filter(None, marks))
            name = f"{method} ({told})" if told else str(method)
            numbers = {column: number(group[column].mean()) for column in columns}
            if note := group["note"].max():
                numbers["joint"] += REUSED
                notes.setdefault(note, []).append(name)
            lines.append([name, str(len(group)), *numbers.values()])
        sizes = f"{several(rows['n'].iloc[0], 'sensor')}, {several(rows['n_test'].iloc[0], 'test step')}"
        title = f"{cell}, protocol {protocol}, {sizes}"
        show_table(("method", "seeds", *columns), lines, title)
        for note, names in notes.items():
            typer.echo(f"{REUSED} {', '.join(names)}: {note}")
