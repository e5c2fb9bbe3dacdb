"""`jointset demo` and `jointset generate`: simulated networks, shown, compared or written to a file."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.commands.completion import one_of
from jointset.commands.readings import Alpha
from jointset.errors import some
from jointset.support.extras import lack_of
from jointset.terminal import busy, counted, note, phases, show_json, show_results, stepped

Track = Annotated[
    str,
    typer.Option(
        autocompletion=one_of(*"ABCDE"),
        help="Kind of network: A stationary, B correlated noise, C heavy tails, D drift, E jump.",
    ),
]
Size = Annotated[int, typer.Option("--n", help="Number of sensors.")]
Seed = Annotated[int, typer.Option(help="Seed of the simulation.")]
Length = Annotated[int, typer.Option(help="Number of steps.")]


def demo_command(
    live: Annotated[
        bool, typer.Option("--live", help="Serve a simulated city, with a page to watch and an incident a minute.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare a few methods on a simulated network instead.")
    ] = False,
    track: Track = "A",
    n: Size = 30,
    seed: Seed = 0,
    length: Length = 8000,
    alpha: Alpha = 0.1,
    port: Annotated[int, typer.Option(help="With --live: port of the page; 0: any that is free.")] = 8000,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show on a simulated city how an incident and a broken sensor are found and named, and write a page about it.

    --track, --n and --length go with --compare.
    """
    from jointset.errors import require, require_alpha

    require_alpha(alpha)
    require(not (live and compare), "--live and --compare are two demonstrations: choose one")
    if live:
        from jointset.commands.live_demo import live_demo

        live_demo(out, seed, alpha, port)
    elif compare:
        compare_methods(track, n, seed, length, alpha, out, as_json)
    else:
        tell(seed, alpha, out, as_json)


def tell(seed: int, alpha: float, out: Path, as_json: bool) -> None:
    """The story of a city, and its page."""
    from jointset.report.model_page import write_course_page
    from jointset.report.story import METHOD, tell_story
    from jointset.writing import new_folder

    folder = new_folder(out)
    with phases(4) as started:
        going = partial(counted, started, "going through two days")
        story = tell_story(seed, alpha, started, stepped(started, "fitting"), going)
        started("drawing")
        page = folder / "report.html"
        write_course_page(page, "A simulated city", story.course)
    if as_json:
        events = [{**event._asdict(), "minutes": event.late} for event in story.events]
        show_json({"page": str(page), "events": events, "false_alarms": story.false_alarms})
        return
    city = f"{len(story.course.before.sensors)} loop detectors, a reading every five minutes"
    typer.echo(f"A simulated city: {city}. {METHOD} was fitted on seven days and calibrated on three.")
    typer.echo("Two days with trouble follow:")
    for event in story.events:
        alarm = "no alarm" if event.alarm is None else f"alarm after {event.late} minutes: {event.alarm['text']}"
        typer.echo(f"  {event.when}  {event.what} at {event.sensor}\n{'':20}{alarm}")
    typer.echo(f"  alarms about nothing: {len(story.false_alarms)}")
    typer.echo(f"Open {page} to see it. With a live page: jointset demo --live")


def compare_methods(track: str, n: int, seed: int, length: int, alpha: float, out: Path, as_json: bool) -> None:
    """Compare a few methods on a simulated network and write a report page."""
    from jointset.datasets import generate_grssf
    from jointset.report.demo import METHODS, TRACKS, compare, methods_here, write_report
    from jointset.writing import new_folder

    methods = methods_here()
    if left_out := [name for name in METHODS if name not in methods]:
        note(f"{some(left_out)} left out: {lack_of('torch', 'training')}")
    with phases(len(methods) + 2) as started:
        started("simulating")
        panel = generate_grssf(track, n=n, seed=seed, length=length).panel
        folder = new_folder(out)
        results = compare(panel, methods, alpha, started, partial(stepped, started))
        started("drawing")
        facts: dict[str, Any] = {"track": track.upper(), "n": n, "seed": seed, "length": length, "alpha": alpha}
        given = " ".join(f"--{name} {value}" for name, value in facts.items())
        facts |= {"about": TRACKS[track.upper()], "created": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        page = write_report(folder, results, facts | {"command": f"jointset demo --compare {given}"})
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
    drift: Annotated[
        str | None,
        typer.Option(
            autocompletion=one_of("jump", "ramp", "season", "outage"),
            help="Change the readings: jump, ramp, season or outage.",
        ),
    ] = None,
) -> None:
    """Write a simulated network of sensors to a file."""
    from jointset.datasets import generate_grssf
    from jointset.datasets.drift import with_drift
    from jointset.writing import output_file, require_apart, write_edges, write_panel

    output_file(out, (".npz", ".csv"))
    require_apart({"OUT": out, "--graph": graph})
    with busy("simulating") as counting:
        panel = generate_grssf(track, n=n, seed=seed, length=length, counting=counting).panel
        panel = panel if drift is None else with_drift(panel, drift)
    with busy("writing") as counting:
        write_panel(panel, out, counting)
    typer.echo(f"{out}: {panel.describe()}")
    if graph is not None:
        write_edges(panel, graph)
        typer.echo(f"{graph}: the graph")
    elif out.suffix.lower() == ".csv":
        typer.echo("A .csv file holds no graph: --graph edges.csv writes it beside.")
