"""`jointset methods`: the catalogue of rows."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from jointset.terminal import show_json

FIRST = ("default", "quick")  # what `jointset fit` trains, and what needs no training
WIDTH = 210  # a row of the catalogue fits on a line


def methods_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a method.")] = False,
) -> None:
    """List every method, default and quick first: names here and in the paper, mean, covariance, and what it needs."""
    from jointset.calibration import RULES
    from jointset.catalogue import ONE_AT_A_TIME, TABLE, without_wrap
    from jointset.paper_rows import CATALOGUE

    listed = sorted(CATALOGUE, key=lambda entry: FIRST.index(entry.name) if entry.name in FIRST else len(FIRST))
    if as_json:
        methods = [TABLE[without_wrap(entry.name)] for entry in listed]
        known = [{"family": one.family, "learned": one.learned, "geometries": one.geometries} for one in methods]
        show_json([entry._asdict() | more for entry, more in zip(listed, known, strict=True)])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("method", "in the paper", "mean", "covariance", "tuned", "adaptive", "needs", "reference"):
        table.add_column(column, overflow="fold")
    for entry in listed:
        table.add_row(*(part or "-" for part in entry))
    Console(markup=False, highlight=False, width=max(WIDTH, Console().width)).print(table)
    typer.echo("`jointset fit` trains default, for minutes; quick gives sets in seconds.")
    typer.echo("Rows with one radius take a geometry, and every row a wrap:")
    typer.echo(f"METHOD[:ellipsoid|box|lean][+{'|'.join(RULES)}], as in ewma:box+aci.")
    typer.echo("+clock-aci, +clock-dtaci, ...: that wrap by the clock, where readings have times.")
    names = ", ".join(ONE_AT_A_TIME)
    typer.echo(
        f"{names} answer one sensor at a time: all sensors together are inside far less often than the target asks,"
    )
    typer.echo("unless a wrap scales their intervals, as in spci+aci.")
