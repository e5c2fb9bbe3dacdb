"""`jointset methods`: the catalogue of rows."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from jointset.terminal import show_json

WIDTH = 210  # a row of the catalogue fits on a line


def methods_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a method.")] = False,
) -> None:
    """List every method: its name here and in the paper, its mean, its covariance, and what it needs."""
    from jointset.catalogue import ONE_AT_A_TIME, TABLE
    from jointset.paper_rows import CATALOGUE

    if as_json:
        methods = [TABLE[entry.name.partition("+")[0]] for entry in CATALOGUE]
        known = [{"family": one.family, "learned": one.learned, "geometries": one.geometries} for one in methods]
        show_json([entry._asdict() | more for entry, more in zip(CATALOGUE, known, strict=True)])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("method", "in the paper", "mean", "covariance", "tuned", "adaptive", "needs", "reference"):
        table.add_column(column, overflow="fold")
    for entry in CATALOGUE:
        table.add_row(*(part or "-" for part in entry))
    Console(markup=False, highlight=False, width=max(WIDTH, Console().width)).print(table)
    typer.echo("Rows with one radius take a geometry, and every row a wrap:")
    typer.echo("METHOD[:ellipsoid|box][+aci|agaci|dtaci|pid|sfogd|saocp|decaying|eci|window|auto], as in ewma:box+aci.")
    names = ", ".join(ONE_AT_A_TIME)
    typer.echo(
        f"{names} answer one sensor at a time: all sensors together are inside far less often than the target asks,"
    )
    typer.echo("unless a wrap scales their intervals, as in spci+aci.")
