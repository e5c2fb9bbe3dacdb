"""`jointset stream`: rows on stdin, answers on stdout."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jointset.commands import readings
from jointset.commands.completion import one_of
from jointset.errors import InputError, require
from jointset.terminal import note, several

if TYPE_CHECKING:
    from jointset.joint_predictor import JointPredictor


def stream_command(
    model: readings.Model,
    save: Annotated[bool, typer.Option("--save", help="Save the model at the end of input or on Ctrl-C.")] = False,
    save_every: Annotated[int | None, typer.Option(help="Save it after every so many good rows too.")] = None,
    format: Annotated[
        str, typer.Option(autocompletion=one_of("auto", "csv", "json"), help="Input: auto, csv or json.")
    ] = "auto",
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
    lowest: readings.Lowest = None,
    highest: readings.Highest = None,
    top: Annotated[int, typer.Option(help="Sensors to name that contribute most to the score.")] = 3,
    trust: Annotated[bool, typer.Option("--trust", help="Add drift and expected coverage to every line.")] = False,
    ahead: Annotated[
        bool, typer.Option("--ahead", help="Add the sets of the next steps, of a model fitted with --horizon.")
    ] = False,
    impute: Annotated[
        bool, typer.Option("--impute", help="Say in every line what fills its gaps, with intervals (fit --impute).")
    ] = False,
) -> None:
    """Read rows on stdin, write one JSON line a row on stdout.

    Input is CSV with a header line that names the sensors, CSV of time, sensor and value, or one JSON object or list a
    line. The set of a row is the one announced before the row was read. A bad row gets a line with an error and
    changes nothing. In long CSV the rows of one time are one reading; it is answered when all sensors have been read,
    or when a row of a later time comes.
    """
    from jointset.next_set import next_sets
    from jointset.predicting.limits import limits_asked
    from jointset.streaming import Stream
    from jointset.writing import json_ready

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service manager's stop is a Ctrl-C
    saves = None if save_every is None else RegularSaves(model, save_every, note)
    predictor = readings.opened(model)
    options: dict[str, Any] = {"format": format, "layout": layout, "time_column": time_column, "day_first": day_first}
    fleet = readings.fleet_asked(drop, rename, ignore_unknown)
    options |= {"fleet": fleet, "limits": limits_asked(lowest, highest), "notice": note}
    require(
        not ahead or predictor.horizon is not None,
        f"{model} has no sets for steps ahead: fit it with --horizon, or leave --ahead out",
    )
    live = Stream(predictor, top=top, trust=trust, impute=impute, **options)

    def sets_of(now: JointPredictor) -> dict[str, Any]:
        assert now.horizon is not None
        return next_sets(now, now.predict(horizon=now.horizon.steps), options["limits"])

    lines = (line.decode("utf-8", errors="replace") for line in typer.get_binary_stream("stdin"))
    try:
        try:
            for answer in live.answers(lines):
                if ahead and "error" not in answer:
                    answer["ahead"] = json_ready(sets_of(live.predictor))
                typer.echo(json.dumps(answer, allow_nan=False))
                if saves is not None and "error" not in answer:
                    saves.saw(live.predictor)
        finally:
            time.sleep(0)  # a Ctrl-C that came together with the end of input is raised here, not while saving
    finally:
        known = predictor if saves is None or saves.saved is None else saves.saved
        if (save or saves is not None) and live.predictor is not known:
            live.predictor.save(model)
        if live.rows:
            share = "none could be scored"
            if live.scored:
                share = f"{100 * live.inside / live.scored:.1f} % inside (target {100 * (1 - predictor.alpha):g} %)"
            note(f"{several(live.rows, 'row')}, {live.bad} bad, {share}")
        if live.closing():
            note("; ".join(live.closing()))


class RegularSaves:
    """Saves the predictor of a stream after every `every` good rows; `notice` is told of the first failed save in a row
    of them, and when it works again.
    """

    def __init__(self, path: Path, every: int, notice: Callable[[str], None]) -> None:
        require(every >= 1, f"--save-every must be at least 1 row, got {every}")
        self.path, self.every, self.notice = path, every, notice
        self.rows = self.failed = 0
        self.saved: JointPredictor | None = None  # the last predictor that is on the disk

    def saw(self, predictor: JointPredictor) -> None:
        """One more good row, and the predictor after it."""
        self.rows += 1
        if self.rows % self.every:
            return
        try:
            predictor.save(self.path)
        except InputError as error:
            if not self.failed:
                self.notice(f"not saved after good row {self.rows}: {error}; the stream goes on")
            self.failed += 1
            return
        if self.failed:
            self.notice(f"saved again after good row {self.rows}: {self.failed} saves had failed")
        self.saved, self.failed = predictor, 0
