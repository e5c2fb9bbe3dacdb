"""All pictures of a benchmark folder, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from jointset.audits.stored import audit_files, read_audits
from jointset.bench.figures_courses import courses_of_training, coverage_over_time, learning_curves, sweep
from jointset.bench.figures_results import headline, scale
from jointset.bench.results import existing_folder, read_results
from jointset.bench.tables.diagnostics import SWEEPS
from jointset.writing import new_folder, whole_file

FORMATS = ("png", "svg")

__all__ = ["coverage_over_time", "figures", "headline", "learning_curves", "save", "scale", "sweep", "write_figures"]


def figures(folder: str | Path, *, paper: bool = False) -> Iterator[tuple[str, Figure]]:
    """Names and pictures that the folder has data for, once a protocol."""
    rows, audits = read_results(existing_folder(folder)), [read_audits(file) for file in audit_files(folder)]
    for protocol in sorted(set(rows["protocol"])):
        drawn = {
            "headline": headline(rows, protocol),
            "headline-volume": headline(rows, protocol, size="log_mean_volume"),  # fair across shapes
            "scale": scale(rows, protocol),
            "coverage": coverage_over_time(folder, rows, protocol),
            "learning-curves": courses_of_training(folder, rows, protocol),
        }
        yield from ((f"{name}-{protocol}", figure) for name, figure in drawn.items() if figure is not None)
    for spec in SWEEPS:
        swept = sweep(spec, audits, paper)
        if swept is not None:
            yield spec.name, swept


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a picture as PNG and SVG, the same bytes for the same picture; their paths."""
    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "jointset"}):
        for form in FORMATS:
            path = Path(folder) / f"{name}.{form}"
            with whole_file(path) as unfinished:
                figure.savefig(unfinished, format=form, metadata={"Date": None} if form == "svg" else None)
            paths.append(path)
    return paths


def write_figures(folder: str | Path, target: str | Path, *, paper: bool = False) -> list[Path]:
    """Draw everything the folder has data for into another folder; the files."""
    new_folder(target)
    return [path for name, figure in figures(folder, paper=paper) for path in save(figure, target, name)]
