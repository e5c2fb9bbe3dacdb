"""`jointset store`: look after what a service keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jointset.errors import require
from jointset.terminal import busy, several, show_json, show_table

store_app = typer.Typer(no_args_is_help=True, help="What `jointset serve` keeps: check, export, compact, back up.")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder given as `serve --store`.")]


@store_app.command()
def check(folder: Folder, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Look whether all that was kept is whole and comes to the same numbers; exit code 1 if not.

    Nothing is changed, and the service may run.
    """
    from jointset.live.upkeep import checked

    with busy("checking") as counting:
        facts = list(checked(folder, counting))
    if as_json:
        show_json([one._asdict() for one in facts])
    else:
        rows = [[one.network, one.fact, one.found, "yes" if one.ok else "NO"] for one in facts]
        show_table(("network", "fact", "found", "as it should be"), rows)
    if not all(one.ok for one in facts):
        raise typer.Exit(1)


@store_app.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .json or .parquet.")],
    network: Annotated[str | None, typer.Option(help="Network, where the store has several.")] = None,
    rows: Annotated[int, typer.Option(help="How many of the last rows.")] = 100_000,
) -> None:
    """Write rows with their readings, scores and bounds to a file; the service may run."""
    from jointset.live import upkeep

    found = {place.name: place for place in upkeep.networks_in(folder)}
    require(network is None or network in found, f"there is no network {network!r}: there are {', '.join(found)}")
    require(network is not None or len(found) == 1, f"say which with --network: {', '.join(found)}")
    require(1 <= rows <= 10**9, f"--rows must be at least 1, got {rows}")
    with busy("writing") as counting:
        count = upkeep.export(found[network or next(iter(found))], out, rows, counting)
    typer.echo(f"Wrote {several(count, 'row')} to {out}.")


@store_app.command()
def compact(folder: Folder) -> None:
    """Give the space of rows that are no longer kept back to the disk; the service must be stopped."""
    from jointset.live import upkeep

    for place in upkeep.networks_in(folder):
        with busy(f"compacting {place.name}") as counting:
            before, after = upkeep.compact(place, counting)
        typer.echo(f"{place.name}: {before / 2**20:.1f} MiB, now {after / 2**20:.1f} MiB")


@store_app.command()
def backup(folder: Folder, target: Annotated[Path, typer.Argument(help="New folder to write.")]) -> None:
    """Copy the store while the service runs; the copy can be served, or put in the place of one that is damaged."""
    from jointset.live import upkeep

    with busy("copying") as counting:
        names = upkeep.backup(folder, target, counting)
    typer.echo(f"Copied {', '.join(names)} to {target}.")
