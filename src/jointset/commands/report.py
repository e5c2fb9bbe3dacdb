"""`jointset report`: the results of a benchmark as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jointset.terminal import busy


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by `jointset bench`.")],
    out: Annotated[
        Path | None, typer.Option(help="Page to write, .html; without it report.html in DIR.", metavar="FILE")
    ] = None,
) -> None:
    """Write one HTML page about the results in DIR: summary, tables, figures, drill-down. It needs no network."""
    from jointset.bench.report import write_report
    from jointset.writing import output_file

    if out is not None:
        output_file(out, (".html", ".htm"))
    with busy("writing the page"):
        page = write_report(folder, out)
    typer.echo(f"Open {page} in a browser ({page.stat().st_size / 1e6:.1f} MB).")
