"""The report page: words, table and pictures in one HTML file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jointset
from jointset.pages.shell import png, png_source, render_page, write_text
from jointset.report.demo import NOTES, Result
from jointset.writing import json_ready, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A figure with its file name and what it shows, in words."""

    name: str
    title: str
    caption: str
    figure: Figure


def pictures(results: Mapping[str, Result], alpha: float) -> list[Picture]:
    """The pictures of the demonstration, the overview first."""
    from jointset.report import figures

    runs = {method: result.run for method, result in results.items()}
    first, reference = runs["kalman"], {name: runs[name] for name in ("kalman", "static")}
    return [
        Picture("overview.png", "Overview", "", figures.overview_figure(first, alpha)),
        Picture(
            "scores.png",
            "Score and radius",
            SCORES,
            figures.score_figure({**reference, "kalman+aci": runs["kalman+aci"]}),
        ),
        Picture("pair.png", "Two of the sensors", PAIR, figures.pair_figure(reference)),
        Picture("coverage.png", "Coverage over time", COVERAGE, figures.coverage_figure(runs, alpha)),
        Picture("sizes.png", "Size of the sets", SIZES, figures.size_figure(runs)),
    ]


def write_report(folder: Path, results: Mapping[str, Result], facts: Mapping[str, Any]) -> Path:
    """Write the pictures, `summary.json` and `report.html`; gives the path of the page.

    `facts` says what was run: track, about (the track in words), n, length, seed, alpha, command, created.
    """
    alpha = float(facts["alpha"])
    drawn = pictures(results, alpha)
    images = {}
    for picture in drawn:
        images[picture.name] = png(picture.figure)
        with whole_file(folder / picture.name) as unfinished:
            unfinished.write_bytes(images[picture.name])
    rows = [{"method": method, **result.row()} for method, result in results.items()]
    summary = {"jointset": jointset.__version__, **facts, "rows": rows}
    write_text(folder / "summary.json", json.dumps(json_ready(summary), indent=1) + "\n")
    sources = {name: png_source(image) for name, image in images.items()}
    shown = {"rows": rows, "pictures": drawn[1:], "sources": sources, "facts": facts, "notes": NOTES}
    page = folder / "report.html"
    write_text(page, render_page("demo", shown | {"target": 1.0 - alpha}))
    return page


SCORES = (
    "At every step the reading of all sensors becomes one number, its score: how far it lies from what was predicted. "
    "The line is the radius, fixed before the reading came. A dot below the line is a reading inside its set, a cross "
    "above it a miss. With split calibration the radius is one number for all steps; with ACI it follows the misses."
)
PAIR = (
    "The set lives in as many dimensions as there are sensors; this is what it looks like on the two whose errors move "
    "together most. Left: errors of the two sensors at all test steps, and the shadow of the whole set on their plane "
    "(the radius of the joint set with the covariance of the pair). The shadow is wide because it leaves room for all "
    "other sensors at once, so a cross can lie well inside it: that reading was odd elsewhere, or odd as a whole. "
    "Right: the cut through the set (kalman) at what all other sensors really read, at consecutive steps, in the units "
    "of the data. Here nothing is hidden: the pair lies inside its cut exactly when the whole reading lies inside the "
    "set. The cut is small when the others have used up most of the radius, and empty (“no cut”) when they have "
    "used up all of it."
)
COVERAGE = (
    "Share of readings inside their set over a moving window. The line is the target, the grey band the range in which "
    "95 % of such windows would fall if every step were an independent draw at exactly the target."
)
SIZES = (
    "Mean size of the sets; compare sizes only between methods that reach the target. Width speaks about one sensor at "
    "a time, log-volume about all of them together: only the second one rewards a method for knowing which sensors "
    "move together."
)
