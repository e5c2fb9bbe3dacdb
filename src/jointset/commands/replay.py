"""`jointset replay`: the rows of a file sent to a service, as if they came now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from jointset.commands import readings
from jointset.errors import require
from jointset.terminal import busy, note, phases, several


def replay_command(
    panel: Annotated[Path, typer.Argument(help="Readings with time stamps: .csv, .tsv, .parquet or .npz.")],
    url: Annotated[str, typer.Option(help="Address of a network: http://HOST:PORT/NAME.")] = "http://127.0.0.1:8000",
    speed: Annotated[float, typer.Option(help="Times faster than the rows' own clock; 0: as fast as can be.")] = 1.0,
    now: Annotated[bool, typer.Option("--now", help="Move the times, so that the first row is of now.")] = False,
    token_file: Annotated[Path | None, typer.Option(help="File whose first token the service asks for.")] = None,
    layout: readings.Layout = "auto",
    time_column: readings.TimeColumn = None,
    day_first: readings.DayFirst = False,
    drop: readings.Drop = None,
    rename: readings.Rename = None,
    ignore_unknown: readings.IgnoreUnknown = False,
) -> None:
    """Send the rows of a file to `jointset serve`, at their own pace or faster.

    Rows whose times the service knows do not count again: a replay that was stopped may be started anew.
    """
    from jointset.live.replaying import pauses, replay, rows_of, target_of
    from jointset.panel import Panel

    require(speed >= 0, f"--speed must be 0 or more, got {speed:g}")
    token = None
    if token_file is not None:
        from jointset.live.security import read_tokens

        token = read_tokens(token_file)[0].decode()
    options: dict[str, Any] = {"layout": layout, "time_column": time_column, "day_first": day_first, "notice": note}
    options["fleet"] = readings.fleet_asked(drop, rename, ignore_unknown)
    with busy("reading") as counting:
        data = Panel.read(panel, directed=True, counting=counting, **options)
        rows = rows_of(data, int(time.time()) if now else None)
    counts = {"outside": 0, "known": 0}
    with phases(len(rows), alike=True) as started:

        def answered(found: list[dict[str, Any]]) -> None:
            counts["outside"] += sum(one.get("inside") is False and not one.get("repeated") for one in found)
            counts["known"] += sum(bool(one.get("repeated")) for one in found)
            started("sending", len(found))

        replay(target_of(url, token, note), rows, pauses(data, speed), answered)
    known = f", {counts['known']:,} of them known already" if counts["known"] else ""
    typer.echo(f"Sent {several(len(rows), 'row')}{known}: {counts['outside']:,} outside their set.")
