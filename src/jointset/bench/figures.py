"""All pictures of a benchmark folder, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from jointset.audits.stored import audit_files, read_audits
from jointset.bench.figures_courses import courses_of_training, coverage_over_time, learning_curves, sweep
from jointset.bench.figures_results import headline, scale
from jointset.bench.results import existing_folder, read_results
from jointset.bench.tables.diagnostics import SWEEPS
from jointset.predicting.passes import Counting, silent
from jointset.writing import new_folder, whole_file

FORMATS = ("png", "svg")

__all__ = ["coverage_over_time", "figures", "headline", "learning_curves", "save", "scale", "sweep", "write_figures"]


def figures(folder: str | Path, *, paper: bool = False, counting: Counting = silent) -> Iterator[tuple[str, Figure]]:
    """Names and pictures that the folder has data for, once a protocol."""
    rows, audits = read_results(existing_folder(folder)), [read_audits(file) for file in audit_files(folder)]
    known: dict[str, Callable[[], Figure | None]] = {}
    for protocol in sorted(set(rows["protocol"])):
        known |= {
            f"headline-{protocol}": partial(headline, rows, protocol),
            f"headline-volume-{protocol}": partial(headline, rows, protocol, size="log_mean_volume"),  # fair to shapes
            f"scale-{protocol}": partial(scale, rows, protocol),
            f"coverage-{protocol}": partial(coverage_over_time, folder, rows, protocol),
            f"learning-curves-{protocol}": partial(courses_of_training, folder, rows, protocol),
        }
    known |= {spec.name: partial(sweep, spec, audits, paper) for spec in SWEEPS}
    more = counting(len(known), "picture")
    for name, draw in known.items():
        drawn = draw()
        if drawn is not None:
            yield name, drawn
        more(1)


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


def write_figures(
    folder: str | Path, target: str | Path, *, paper: bool = False, counting: Counting = silent
) -> list[Path]:
    """Draw everything the folder has data for into another folder; the files."""
    new_folder(target)
    drawn = figures(folder, paper=paper, counting=counting)
    return [path for name, figure in drawn for path in save(figure, target, name)]
