"""`jointset tables`: the paper's tables and pictures from the folder of a benchmark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from jointset.commands.completion import listed, one_of, tables_known
from jointset.errors import require, require_known
from jointset.terminal import busy, show_json


def tables_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by `jointset bench`.")],
    paper: Annotated[bool, typer.Option("--paper", help="Put what the paper prints beside ours.")] = False,
    format: Annotated[
        str,
        typer.Option(
            autocompletion=one_of("text", "markdown", "latex", "csv"),
            help="What is printed: text, markdown, latex or csv.",
        ),
    ] = "text",
    only: Annotated[
        str,
        typer.Option(
            autocompletion=listed(tables_known), help="Comma-separated tables, such as hero,scale,all; all by default."
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to instead: every table in every format.", metavar="FOLDER")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a table.")] = False,
    pictures: Annotated[bool, typer.Option("--figures", help="Write the pictures too, PNG and SVG.")] = False,
) -> None:
    """Print the tables for which DIR has rows, or write them (and pictures) to files.

    With --paper every table is shown: printed values, differences, and what was not run or cannot be.
    """
    from jointset.bench.tables import render, tables, tables_named, write_tables
    from jointset.bench.tables.render import SUFFIXES, as_data

    require_known(format, SUFFIXES, f"unknown format {format!r}")
    require(out is not None or not pictures, "--figures needs --out FOLDER to write the pictures to")
    with busy("reading results"):
        found = [*tables(folder, paper=paper, only=tables_named(only))]
    require(bool(found), f"{folder} has no finished rows for these tables: `jointset bench --out {folder}` makes them")
    if out is not None:
        with busy("writing"):
            written = write_tables(found, out)
        if pictures:
            from jointset.bench.figures import write_figures

            with busy("drawing") as counting:
                written += write_figures(folder, out, paper=paper, counting=counting)
        typer.echo(f"Wrote {len(written)} files to {out}: {', '.join(table.name for table in found)}.")
        return
    if as_json:
        show_json([as_data(table) for table in found])
        return
    told: set[str] = set()
    for table in found:
        fresh = tuple(note for note in table.notes if format == "latex" or note not in told)
        told |= {*table.notes}
        typer.echo(render(replace(table, notes=fresh), format))
