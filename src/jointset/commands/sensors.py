"""`jointset sensors`: the sensors of a model and how they are; a model that goes on with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, note, several, show_json, show_table

if TYPE_CHECKING:
    from jointset.inputs.fleet import Fleet


def sensors_command(
    model: readings.Model,
    drop: readings.Drop = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", help="OLD=NEW, a sensor with another name; may be given again.")
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option("--add", help="New sensors, comma-separated; may be given again.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Edge list with the neighbours of new sensors.")] = None,
    rows: Annotated[Path | None, typer.Option(help="Recent rows: levels of new sensors, and calibration.")] = None,
    out: Annotated[Path | None, typer.Option(help="Model folder to write; MODEL itself replaces it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the sensors of a model with their health; with --drop, --rename or --add write a model that goes on without
    them, under other names or with new ones.

    Nothing is learned again. The model knows what a sensor that left told of the others; a new one can join where the
    weights of a method serve all sensors alike (kalman, kalman-tuned, gnf-node).
    """
    from jointset.inputs.fleet import Fleet, names_listed
    from jointset.predicting.membership import health_table
    from jointset.writing import model_folder

    leaving, joining, renamed = names_listed(drop or []), names_listed(add or []), dict(map(_pair, rename or []))
    changes = bool(leaving or joining or renamed)
    require(changes or out is None, "nothing to change: give --drop, --rename or --add, or leave --out out")
    require(not changes or out is not None, "a changed model is written to a folder: give --out MODEL2")
    require(bool(joining) or graph is None, "--graph gives the neighbours of new sensors: give --add too")
    predictor = readings.opened(model)
    if not changes:
        table = health_table(predictor)
        if as_json:
            show_json(table)
        else:
            show_table(
                ("sensor", "level", "sd", "neighbours", "health"), [[str(x) for x in row.values()] for row in table]
            )
        return
    assert out is not None
    model_folder(out)
    names = [renamed.get(name, name) for name in predictor.sensors if name not in leaving] + list(joining)
    edges = _edges(graph, names, joining, Fleet(renamed, leaving, ignore_unknown=True))
    data = None
    if rows is not None:
        from jointset.panel import Panel

        fleet = Fleet(renamed, leaving, ignore_unknown=True)
        notice = _unless_there_was_nothing_to_do
        with busy("reading") as counting:
            data = Panel.read(rows, sensors=names, fleet=fleet, notice=notice, counting=counting)
    with busy("calibrating" if rows else "changing") as counting:
        more = None if data is None else counting(len(data))
        other = predictor.with_sensors(leaving, renamed, edges, data, progress=more)
    other.save(out)
    told = [f"{several(len(other.sensors), 'sensor')}, before {len(predictor.sensors)}"]
    for name in joining if data is None else ():
        of = "its neighbours" if edges[name] else "all sensors, as it has no neighbours: --graph names them"
        told.append(f"level and scale of {name} are those of {of}")
    typer.echo(f"Saved {out}: {'; '.join(told)}.")
    if data is None and (leaving or joining):
        typer.echo(
            "Its radius is that of the old number of sensors brought to the new one; --rows ROWS.csv calibrates."
        )
    if predictor.horizon is not None and other.horizon is None:
        few = "" if data is None else "more "
        steps = predictor.horizon.steps
        typer.echo(
            f"It has no sets for {steps} steps ahead, which the old model has: --rows with {few}rows calibrates."
        )


def _unless_there_was_nothing_to_do(text: str) -> None:
    """Tell a notice; rows may have the old names and the sensors that leave, or those of the new set alone."""
    if not text.startswith("nothing to"):
        note(text)


def _pair(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    require(bool(equals and old.strip() and new.strip()), f"--rename {text}: write OLD=NEW")
    return old.strip(), new.strip()


def _edges(graph: Path | None, names: list[str], joining: tuple[str, ...], fleet: Fleet) -> dict[str, dict[str, float]]:
    """The neighbours of new sensors in a graph file; those that the model will not have are left out."""
    if graph is None:
        return {name: {} for name in joining}
    import numpy as np

    from jointset.inputs.graph_files import read_graph

    A = read_graph(graph, names, directed=True, fleet=fleet, notice=note)
    found = {}
    for name in joining:
        weights = np.maximum(A, A.T)[names.index(name)]
        pairs = zip(names, weights.tolist(), strict=True)
        found[name] = {other: weight for other, weight in pairs if weight > 0 and other != name}
    return found
