"""What every command that reads readings takes: their layout, their time column, and how a changed fleet is met."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jointset.commands.completion import one_of
from jointset.terminal import busy, note

if TYPE_CHECKING:
    from jointset.inputs.fleet import Fleet
    from jointset.joint_predictor import JointPredictor
    from jointset.panel import Panel

Alpha = Annotated[float, typer.Option(help="Miss rate: 0.1 asks for 90 % coverage.")]
Model = Annotated[Path, typer.Argument(help="Model folder written by `jointset fit`.")]
Layout = Annotated[
    str,
    typer.Option(
        autocompletion=one_of("auto", "wide", "long"),
        help="auto, wide (a column per sensor) or long (time, sensor, value).",
    ),
]
TimeColumn = Annotated[str | None, typer.Option(help="Name of the time column, where it is not found by itself.")]
DayFirst = Annotated[bool, typer.Option("--day-first", help="Dates begin with the day, as in 31/12/2012 23:55.")]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Sensors to leave out, comma-separated; may be given again.")
]
Rename = Annotated[
    Path | None, typer.Option("--rename", help="CSV of old,new: columns called old are read as new, in the graph too.")
]
IgnoreUnknown = Annotated[
    bool, typer.Option("--ignore-unknown", help="Ignore columns that the model does not know, with one notice.")
]
IgnoreEdges = Annotated[
    bool, typer.Option("--ignore-unknown", help="Ignore edges to sensors that the readings lack, with one notice.")
]
DropDead = Annotated[
    bool, typer.Option("--drop-dead", help="Leave out sensors that are constant or empty in training, and say which.")
]

Lowest = Annotated[float | None, typer.Option("--min", help="Smallest reading there can be: cuts off bounds shown.")]
Highest = Annotated[float | None, typer.Option("--max", help="Largest reading there can be: cuts off bounds shown.")]


class Asked(NamedTuple):
    """How the rows of a file are to be read, from the options above."""

    layout: str
    time_column: str | None
    day_first: bool
    fleet: Fleet

    def after(self, predictor: JointPredictor, path: Path, flatters: str = "") -> Panel:
        """Rows of the sensors of a model; where they begin among those it has seen, it is said what that flatters.

        So is it where they come at another cadence.
        """
        from jointset.inputs.row_clock import other_cadence
        from jointset.panel import Panel

        asked = self._asdict() | {"fleet": self.fleet._replace(left_out=predictor.left_out)}
        with busy("reading") as counting:
            data = Panel.read(path, sensors=predictor.sensors, directed=True, notice=note, counting=counting, **asked)
        if flatters and predictor.repeats(data):
            note(f"these rows begin before the last row the model has seen: {flatters}")
        usual = None if predictor.usual is None else predictor.usual.cadence
        if data.cadence and usual and data.cadence != usual:
            note(other_cadence(data.cadence, usual))
        return data


def opened(model: Path) -> JointPredictor:
    """The model of a folder."""
    from jointset.methods import load_predictor

    with busy("loading the model"):
        return load_predictor(model)


def fleet_asked(drop: list[str] | None, rename: Path | None, ignore_unknown: bool) -> Fleet:
    """The fleet of the three options."""
    from jointset.inputs.fleet import Fleet, names_listed, read_renames

    return Fleet({} if rename is None else read_renames(rename), names_listed(drop or []), ignore_unknown)
