"""The demonstration: a few methods on one simulated network, from training rows to sets on the test rows and a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jointset
from jointset.catalogue import TABLE
from jointset.filters.telling import Told
from jointset.joint_predictor import Run
from jointset.methods import parse, predictor_for
from jointset.pages.shell import png, png_source, render_page, write_text
from jointset.panel import Panel
from jointset.support.extras import installed
from jointset.writing import json_ready, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# method -> filter z-scores; raw values where the filter is given the very numbers that generated track A
METHODS = {"kalman": False, "kalman-tuned": True, "static": True, "gnf": True, "kalman+aci": False}

NOTES = {
    "kalman": "Kalman filter on the graph with fixed numbers, those that generated track A: the ideal forecaster there",
    "kalman-tuned": "the same filter, its numbers chosen on the training rows",
    "static": "reference: a graph autoregression for the mean, one covariance of its errors for all steps",
    "gnf": "the learned graph filter (GCN-GRU with a diagonal-plus-low-rank covariance), fast recipe",
    "kalman+aci": "the first row with a radius that follows its misses (adaptive conformal inference)",
}
TRACKS = {
    "A": "Gaussian noise, nothing changes over time",
    "B": "noise correlated inside communities of sensors",
    "C": "heavy-tailed noise (Student t with 5 degrees of freedom)",
    "D": "the graph drifts to another one over the test rows",
    "E": "the noise doubles half way through the test rows",
}


@dataclass(frozen=True)
class Result:
    """One row of the demonstration: all its sets, and the seconds from the first training row to the last set."""

    run: Run
    seconds: float

    def row(self) -> dict[str, Any]:
        """Coverage, sizes and time."""
        return {**self.run.summary(), "seconds": self.seconds}


def methods_here() -> dict[str, bool]:
    """The methods of the demonstration that can be fitted with the packages that are installed."""
    packages = {name: TABLE[parse(name).method].package for name in METHODS}
    return {name: scaled for name, scaled in METHODS.items() if not packages[name] or installed(packages[name])}


def compare(
    panel: Panel,
    methods: Mapping[str, bool] = METHODS,
    alpha: float = 0.1,
    started: Callable[[str], None] = lambda method: None,
    fitting: Callable[[str], Told] | None = None,
) -> dict[str, Result]:
    """Fit every method on the first 70 % of a panel, calibrate on the tenth before the last, run through the last.

    A method that begins is told to `started`; `fitting` makes the function that is told of the steps of its fit.
    """
    train, _, calibration, test = panel.split()
    results = {}
    for method, standardize in methods.items():
        started(method)
        begin = time.perf_counter()
        predictor = predictor_for(method, alpha=alpha, standardize=standardize)
        told = None if fitting is None else fitting(method)
        run = predictor.fit(train, progress=told).calibrate(calibration).run(test)
        results[method] = Result(run, time.perf_counter() - begin)
    return results


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
