"""`jointset demo` and `jointset generate`: a simulated network, compared or written to a file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.commands.readings import Alpha
from jointset.errors import some
from jointset.extras import lack_of
from jointset.terminal import busy, note, phases, show_json, show_results

Track = Annotated[
    str, typer.Option(help="Kind of network: A stationary, B correlated noise, C heavy tails, D drift, E jump.")
]
Size = Annotated[int, typer.Option("--n", help="Number of sensors.")]
Seed = Annotated[int, typer.Option(help="Seed of the simulation.")]
Length = Annotated[int, typer.Option(help="Number of steps.")]


def demo_command(
    track: Track = "A",
    n: Size = 30,
    seed: Seed = 0,
    length: Length = 8000,
    alpha: Alpha = 0.1,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare a few methods on a simulated network and write a report page."""
    from jointset.datasets import generate_grssf
    from jointset.errors import require_alpha
    from jointset.report.demo import METHODS, TRACKS, compare, methods_here
    from jointset.report.page import write_report
    from jointset.writing import new_folder

    require_alpha(alpha)
    methods = methods_here()
    if left_out := [name for name in METHODS if name not in methods]:
        note(f"{some(left_out)} left out: {lack_of('torch', 'training')}")
    with phases(len(methods) + 2) as started:
        started("simulating")
        panel = generate_grssf(track, n=n, seed=seed, length=length).panel
        folder = new_folder(out)
        results = compare(panel, methods, alpha, started)
        started("drawing")
        facts: dict[str, Any] = {"track": track.upper(), "n": n, "seed": seed, "length": length, "alpha": alpha}
        facts["command"] = " ".join(["jointset demo", *(f"--{name} {value}" for name, value in facts.items())])
        facts |= {"about": TRACKS[track.upper()], "created": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        page = write_report(folder, results, facts)
    if as_json:
        show_json({"page": str(page), "methods": {method: result.row() for method, result in results.items()}})
        return
    show_results(results, alpha)
    typer.echo(f"Open {page} to see the sets.")


def generate_command(
    out: Annotated[Path, typer.Argument(help="File to write: .npz (everything) or .csv (wide).")],
    track: Track = "A",
    n: Size = 30,
    seed: Seed = 0,
    length: Length = 8000,
    graph: Annotated[Path | None, typer.Option(help="Also write the graph as an edge list (.csv).")] = None,
    drift: Annotated[str | None, typer.Option(help="Change the readings: jump, ramp, season or outage.")] = None,
) -> None:
    """Write a simulated network of sensors to a file."""
    from jointset.datasets import generate_grssf
    from jointset.datasets.drift import with_drift
    from jointset.writing import output_file, write_edges, write_panel

    output_file(out, (".npz", ".csv"))
    with busy("simulating"):
        panel = generate_grssf(track, n=n, seed=seed, length=length).panel
        panel = panel if drift is None else with_drift(panel, drift)
        write_panel(panel, out)
    typer.echo(f"{out}: {panel.describe()}")
    if graph is not None:
        write_edges(panel, graph)
        typer.echo(f"{graph}: the graph")
    elif out.suffix.lower() == ".csv":
        typer.echo("A .csv file holds no graph: --graph edges.csv writes it beside.")
