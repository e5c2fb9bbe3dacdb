"""The paper's tables and a table of everything, from a benchmark folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jointset.audits.stored import Audited, audit_files, read_audits
from jointset.bench.results import existing_folder, read_results
from jointset.bench.tables.build import build
from jointset.bench.tables.diagnostics import DIAGNOSES, SWEEPS, diagnosis_table, ranges_table, sweep_table
from jointset.bench.tables.grids import GRIDS
from jointset.bench.tables.measured import Measured
from jointset.bench.tables.model import Column, Number, Table
from jointset.bench.tables.overview import horizons_table, overview, windows
from jointset.bench.tables.render import SUFFIXES, render
from jointset.errors import InputError, suggest
from jointset.support.how_far import each
from jointset.writing import new_folder, whole_file

if TYPE_CHECKING:
    import pandas as pd


ALPHA = 0.1  # of the paper's tables; other levels stand in the table of everything
NAMES = (
    *(grid.name for grid in GRIDS),
    *(spec.name for spec in SWEEPS),
    "diagnostics",
    *(spec.name for spec in DIAGNOSES),
    "windows",
    "ahead",
    "all",
)

__all__ = ["NAMES", "Column", "Number", "Table", "render", "tables", "tables_named", "write_tables"]


def tables_named(text: str) -> list[str]:
    """Names of a comma-separated list, all where it is empty.

    >>> tables_named("hero, all")
    ['hero', 'all']
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in NAMES:
            every = f"all of them: {', '.join(NAMES)}"
            raise InputError(f"no table {name!r}: {suggest(name, NAMES, every)}")
    return names or [*NAMES]


def tables(folder: str | Path, *, paper: bool = False, only: Sequence[str] = NAMES) -> Iterator[Table]:
    """Tables of a benchmark folder for which it has rows; with `paper` all, the printed numbers beside ours.

    Grids come once a protocol that the folder holds (`table` where it holds none).
    """
    rows, audits = read_results(existing_folder(folder)), [read_audits(file) for file in audit_files(folder)]
    everything = {"windows": windows, "ahead": horizons_table, "all": overview}
    for name in each(["grids", "diagnoses", *(name for name in everything if name in only)]):
        if name == "grids":
            yield from _grids(rows, paper, only)
        elif name == "diagnoses":
            yield from _diagnoses(audits, paper, only)
        elif (table := everything[name](rows)) is not None:
            yield table


def _grids(rows: pd.DataFrame, paper: bool, only: Sequence[str]) -> Iterator[Table]:
    grids = [grid for grid in GRIDS if grid.name in only]
    protocols = sorted(set(rows["protocol"])) or ["table"]
    measured = [Measured(rows, protocol, ALPHA) for protocol in each(protocols if grids else [])]
    built = (build(grid, one, paper) for grid in grids for one in measured)
    yield from (table for table in built if table is not None)


def _diagnoses(audits: Sequence[Audited], paper: bool, only: Sequence[str]) -> Iterator[Table]:
    made = {spec.name: sweep_table(spec, audits, paper) for spec in SWEEPS}
    made["diagnostics"] = ranges_table(audits, paper)
    made |= {spec.name: diagnosis_table(spec, audits, paper) for spec in DIAGNOSES}
    yield from (table for name, table in made.items() if name in only and table is not None)


def write_tables(found: Sequence[Table], folder: str | Path) -> list[Path]:
    """Write every table in every format, one file each; their paths."""
    target = new_folder(folder)
    paths = []
    for table in each(found):
        for form, suffix in SUFFIXES.items():
            path = target / f"{table.name}{suffix}"
            with whole_file(path) as unfinished:
                unfinished.write_text(render(table, form), encoding="utf-8")
            paths.append(path)
    return paths
