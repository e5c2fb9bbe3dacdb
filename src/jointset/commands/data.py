"""`jointset data`: which data sets there are, where they lie, whether they are whole, and what a cell looks like."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jointset.commands.completion import bench_cells, data_known
from jointset.terminal import busy, show_json, show_table

if TYPE_CHECKING:
    from jointset.datasets.cells import Cell

data_app = typer.Typer(no_args_is_help=True, help="Data sets: list, fetch, check, find and look at them.")

Name = Annotated[str, typer.Argument(autocompletion=data_known, help="Data set, such as metr-la.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
PICTURES = (".png", ".svg", ".pdf")
LISTED = 30  # sensors shown unless all are asked for
WIDE = 120  # columns of a table that goes to a file


@data_app.command("list")
def list_(as_json: Json = False) -> None:
    """List the data sets: size, where they are, licence."""
    from jointset.datasets import registry

    if as_json:
        known = {name: registry.dataset(name) for name in registry.names()}
        shapes = {name: dict(zip(("steps", "sensors"), entry.shape, strict=True)) for name, entry in known.items()}
        facts = {name: {"cadence": entry.cadence, "licence": entry.licence} for name, entry in known.items()}
        show_json([{"name": name, **shapes[name], **facts[name], "here": whereabouts(name)} for name in known])
        return
    rows = []
    for name in registry.names():
        entry = registry.dataset(name)
        steps, sensors = entry.shape
        size = (f"{sensors:,}", f"{steps:,}", every(entry.cadence))
        rows.append([name, *size, whereabouts(name), entry.licence])
    show_table(("name", "sensors", "steps", "every", "here", "licence"), rows, words=("here", "licence"), wide=WIDE)
    typer.echo("NAME-K is a cell of K sensors, such as metr-la-20 or grssf-a-60: jointset data show metr-la-20")


@data_app.command()
def fetch(
    name: Name, force: Annotated[bool, typer.Option("--force", help="Download again what is already here.")] = False
) -> None:
    """Download a data set into the cache."""
    from jointset.datasets import registry
    from jointset.datasets.notes import data_warnings

    with data_warnings() as told:
        path = registry.fetch(name, force=force)
    for text in told:
        typer.echo(f"note: {text}", err=True)
    typer.echo(str(path))


@data_app.command()
def check(name: Name, as_json: Json = False) -> None:
    """Compare the file that is here with what is known of the data set; exit code 1 if a fact fails."""
    from jointset.datasets import registry

    with busy("checking"):
        facts = registry.check(name)
    verdicts = {True: "yes", False: "NO", None: "cannot tell"}
    rows = [[row.fact, row.expected, row.found, verdicts[row.ok]] for row in facts]
    columns = ("fact", "expected", "found", "as expected")
    if as_json:
        show_json([{"fact": row.fact, "expected": row.expected, "found": row.found, "ok": row.ok} for row in facts])
    else:
        show_table(columns, rows, words=columns, wide=WIDE)
    if any(row.ok is False for row in facts):
        raise typer.Exit(1)


@data_app.command()
def path(
    name: Annotated[
        str | None, typer.Argument(autocompletion=data_known, help="Data set; without one, the folders looked in.")
    ] = None,
) -> None:
    """Print where a data set lies (or would lie once fetched), or the folders looked in."""
    from jointset.datasets import registry

    if name is not None:
        typer.echo(str(registry.path(name)))
        return
    if os.environ.get("JOINTSET_DATA"):
        typer.echo(os.environ["JOINTSET_DATA"])
    typer.echo(str(registry.cache_folder()))


@data_app.command()
def show(
    cell: Annotated[
        str,
        typer.Argument(autocompletion=bench_cells, help="metr-la-20, aqi, grssf-a-60, ... or file:PATH?n=20&graph=knn"),
    ],
    protocol: Annotated[
        str | None,
        typer.Option(
            help="fit (as jointset fit; default for files), text (as the paper describes), table (as its tables)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sensors drawn (table) or of the simulation.")] = 0,
    missing: Annotated[
        str | None, typer.Option(help="fill (gaps filled as in the paper) or mask (gaps stay, as in protocol fit).")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help="source, knn, haversine, road, none, or a file; by default the data set's own.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Picture to write (.png, .svg, .pdf); CELL.png by default.")] = None,
    every_sensor: Annotated[bool, typer.Option("--all", help=f"List all sensors, not the first {LISTED}.")] = False,
    as_json: Json = False,
) -> None:
    """Describe a cell, its blocks, gaps, graph and scales, and draw it."""
    from jointset.datasets.cells import cell as cell_named
    from jointset.report.cell import cell_figure
    from jointset.writing import output_file, whole_file

    target = output_file(out or Path(f"{picture_name(cell)}.png"), PICTURES)
    with busy("reading"):
        found = cell_named(cell, protocol, seed, missing, graph=graph)  # type: ignore[arg-type]
    if as_json:
        show_json(facts_of(found) | {"picture": str(target)})
    else:
        typer.echo(f"{found.name}, protocol {found.protocol}, seed {found.seed}: {found.panel.describe()}")
        show_blocks(found)
        typer.echo(graph_line(found))
        show_sensors(found, None if every_sensor else LISTED)
        for text in found.notes:
            typer.echo(f"note: {text}")
    with busy("drawing"), whole_file(target) as unfinished:
        cell_figure(found).savefig(unfinished, format=target.suffix.lower()[1:])
    if not as_json:
        typer.echo(f"Wrote {target}.")


def facts_of(cell: Cell) -> dict[str, Any]:
    """What `show` tells of a cell, in numbers."""
    from jointset.inputs.times import iso

    stamps, blocks = cell.raw.timestamps, {}
    for name, block in cell.blocks.items():
        ends = (block.start, block.stop - 1)
        repairs, gone = cell.repairs[name], 1.0 - float(cell.observed(block).mean())
        first, last = ends if stamps is None else (iso(stamps[t]) for t in ends)
        counts = {"steps": block.stop - block.start, "gaps": gone, "filled": repairs.carried + repairs.median}
        blocks[name] = {"from": first, "to": last, **counts}
    sensors = [dict(zip(("sensor", "mean", "sd", "gaps", "neighbours"), row, strict=True)) for row in sensor_rows(cell)]
    named = {"cell": cell.name, "protocol": cell.protocol, "seed": cell.seed, "unit": cell.unit}
    return named | {"blocks": blocks, "graph": graph_line(cell), "sensors": sensors, "notes": list(cell.notes)}


# ---------------------------------------------------------------------- words


def every(seconds: int) -> str:
    """A cadence in words.

    >>> every(300), every(3600), every(45)
    ('5 min', '1 h', '45 s')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def whereabouts(name: str) -> str:
    """Whether a data set is here, and where."""
    from jointset.datasets import registry

    state = registry.state(name)
    if state == "not here":
        linked = any(all(remote.url for remote in home.files) for home in registry.dataset(name).homes)
        return "download" if linked else "by hand"
    if state == "generated":
        return state
    cached = registry.path(name).parent == registry.cache_folder()
    return f"{state}, {'cache' if cached else 'local'}"


def picture_name(cell: str) -> str:
    """File name without suffix for the picture of a cell.

    >>> picture_name("metr-la-20"), picture_name("file:data/speeds.csv.gz?n=20")
    ('metr-la-20', 'speeds')
    """
    return Path(cell.removeprefix("file:").partition("?")[0]).name.partition(".")[0] or "cell"


def graph_line(cell: Cell) -> str:
    """Edges, mean degree and connected parts of a cell's graph in one line."""
    from jointset.graph import edge_count
    from jointset.inputs.communities import components

    adjacency = cell.panel.adjacency
    if adjacency is None:
        return "graph: none"
    n, edges = adjacency.shape[0], edge_count(adjacency) // 2
    parts = components(adjacency)
    largest = f", the largest of {max(map(len, parts))} sensors" if len(parts) > 1 else ""
    count = f"{len(parts)} connected part{'s' * (len(parts) > 1)}{largest}"
    return f"graph: {edges} edges, mean degree {2 * edges / n:.1f}, {count}"


def show_blocks(cell: Cell) -> None:
    """A row for every block: its steps and times, the share of gaps in the source and how many were filled."""
    rows = []
    for name, block in cell.blocks.items():
        repairs = cell.repairs[name]
        gone = 1.0 - float(cell.observed(block).mean())
        cells = [f"{block.stop - block.start:,}", *ends(cell, block), percent(gone)]
        rows.append([name, *cells, f"{repairs.carried + repairs.median:,}"])
    show_table(("block", "steps", "from", "to", "gaps", "filled"), rows, wide=WIDE)


def ends(cell: Cell, block: slice) -> tuple[str, str]:
    """First and last moment of a block, or its first and last step where there are no time stamps."""
    from jointset.inputs.times import iso

    if cell.raw.timestamps is None:
        return str(block.start), str(block.stop - 1)
    first, last = (iso(cell.raw.timestamps[t])[:16].replace("T", " ") for t in (block.start, block.stop - 1))
    return first, last


def sensor_rows(cell: Cell) -> list[tuple[str, float, float, float, int]]:
    """Of every sensor its name, mean, scale and share of gaps in training, and the number of its neighbours."""
    import numpy as np

    from jointset.graph import weighted_edges

    train, names = cell.blocks["train"], cell.panel.sensors
    observed = cell.observed(train)
    means = np.nanmean(np.where(observed, cell.raw.values[train], np.nan), axis=0)
    adjacency = cell.panel.adjacency
    starts = np.empty(0, dtype=int) if adjacency is None else weighted_edges(adjacency)[0][:, 0]
    degree = np.bincount(starts, minlength=len(names)).tolist()
    numbers = (means.tolist(), cell.scale.tolist(), (1.0 - observed.mean(axis=0)).tolist(), degree)
    return list(zip(names, *numbers, strict=True))


def show_sensors(cell: Cell, limit: int | None) -> None:
    """A row for every sensor: mean, scale and share of gaps in training, and its neighbours."""
    import numpy as np

    n = len(cell.panel.sensors)
    rows = [
        [name, f"{mean:.4g}", f"{sd:.4g}", percent(gone), str(edges)]
        for name, mean, sd, gone, edges in sensor_rows(cell)[:limit]
    ]
    title = f"training block{', ' + cell.unit if cell.unit else ''}"
    show_table(("sensor", "mean", "sd", "gaps", "neighbours"), rows, title, wide=WIDE)
    if limit is not None and n > limit:
        low, middle, high = np.quantile(cell.scale, [0, 0.5, 1])
        rest = f"{n - limit} more sensors (--all lists them)"
        typer.echo(f"{rest}; the sd of all {n} runs from {low:.4g} to {high:.4g}, median {middle:.4g}")


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.0811), percent(0.00007)
    ('8.1 %', '0.01 %')
    """
    return f"{100 * share:.1f} %" if share == 0 or share >= 0.0005 else f"{100 * share:.2f} %"
