"""Pictures as functions that return their axes: scores, the band of a sensor, the network, a set of two sensors.

>>> import jointset
>>> train, _, calibration, test = jointset.generate_grssf("A", n=8, length=2000).panel.split()
>>> predictor = jointset.predictor("kalman").fit(train).calibrate(calibration)
>>> axes = jointset.plot.score(predictor.run(test))
>>> axes.get_ylabel()
'score'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jointset.contracts import Array, Reading, Region
from jointset.errors import require, require_known
from jointset.inputs.graph_edges import edges_of
from jointset.inputs.labels import reading_of
from jointset.inputs.sensor_places import drawing, places_of
from jointset.panel import Panel
from jointset.planes import section, shadow
from jointset.regions import Box, Ellipsoid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jointset.joint_predictor import JointPredictor
    from jointset.runs import Run

DOT, MISS, INK, LINE, FILL = "#9fb3c4", "#b2182b", "#222222", "#0b3c6f", "#dbe6ef"


def score(run: Run, ax: Axes | None = None, *, color: str = LINE) -> Axes:
    """Scores of a run as dots, misses as crosses, and the radius they were held against."""
    ax = _axes(ax)
    draw_scores(ax, _steps(run), run, color)
    return _dated(ax, run)


def draw_scores(ax: Axes, steps: Array, run: Run, color: str) -> None:
    """Scores as dots, the radius as a line, misses as crosses."""
    missed = run.score > run.radius
    finite = run.score[np.isfinite(run.score)]
    ax.plot(steps[~missed], run.score[~missed], ".", color=DOT, markersize=4, label="score, inside")
    outside = steps[missed], run.score[missed]
    ax.plot(*outside, "x", color=MISS, markersize=5.5, markeredgewidth=1.4, label="score, outside")
    radius = np.where(np.isfinite(run.radius), run.radius, np.nan)
    ax.step(steps, radius, where="mid", color=color, linewidth=1.8, label="radius")
    ax.set_ylabel("score")
    ax.margins(x=0.01)
    if len(finite) and finite.max() > 15 * np.median(finite) > 0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)


def band(run: Run, sensor: str, ax: Axes | None = None, *, color: str = LINE) -> Axes:
    """The readings of one sensor in the ends of the joint set along it; crosses where they are beyond these."""
    require_known(sensor, run.sensors, f"unknown sensor {sensor!r}")
    ax, steps, i = _axes(ax), _steps(run), run.sensors.index(sensor)
    values, lower, upper = run.values[:, i], run.lower[:, i], run.upper[:, i]
    beyond = (values < lower) | (values > upper)
    ax.fill_between(steps, lower, upper, color=FILL, linewidth=0, label="joint set, along this sensor")
    ax.plot(steps, run.mean[:, i], color=color, linewidth=1.2, label="mean")
    ax.plot(steps[~beyond], values[~beyond], ".", color=INK, markersize=3, label="reading")
    ax.plot(steps[beyond], values[beyond], "x", color=MISS, markersize=6, markeredgewidth=1.6, label="reading, outside")
    ax.set_ylabel(sensor, parse_math=False)
    ax.margins(x=0.01)
    return _dated(ax, run)


def map(network: Panel | JointPredictor, values: Any = None, ax: Axes | None = None, *, cmap: str = "YlOrRd") -> Axes:
    """The sensors where they are, or laid out by their graph; coloured by a number each, such as `contributions(y)`."""
    panel = isinstance(network, Panel)
    require(panel or hasattr(network, "places"), f"a map is of a panel or a predictor, got a {type(network).__name__}")
    ax, sensors = _axes(ax), network.sensors
    if isinstance(network, Panel):
        drawn = drawing(places_of(network), edges_of(network.adjacency), len(sensors))
    else:
        drawn = drawing(network.places, network.graph, len(sensors))
    where = np.array(drawn["at"])
    for ends in drawn["edges"]:
        ax.plot(*where[ends].T, color="#cccccc", linewidth=0.8, zorder=1)
    colours = {"color": LINE} if values is None else {"c": reading_of(values, sensors), "cmap": cmap}
    dots = ax.scatter(where[:, 0], where[:, 1], s=42, edgecolors=INK, linewidths=0.6, zorder=2, **colours)
    if values is not None:
        assert ax.figure is not None
        ax.figure.colorbar(dots, ax=ax, shrink=0.8)
    ax.set_aspect("equal", "datalim")
    ax.set_axis_off()
    return ax


def region(
    region: Region, pair: tuple[str, str] | None = None, reading: Reading | None = None, ax: Axes | None = None
) -> Axes:
    """The set of one step for two sensors: its shadow; with a reading also its cut through the other sensors of it.

    The set is an ellipsoid or a box, the two sensors its first two where none are named. The two readings lie inside
    the cut exactly where the whole reading lies inside the set; one with gaps has no cut.
    """
    require(
        isinstance(region, (Ellipsoid, Box)) and np.ndim(region.radius) == 0,
        "only an ellipsoid or a box of one step has an outline for two sensors: take region[t], or plot.band",
    )
    one = cast(Ellipsoid | Box, region)
    names = one.sensors or tuple(str(i) for i in range(np.shape(one.center)[-1]))
    require(len(names) > 1, "the set of one sensor has no outline in a plane: plot.band draws it")
    pair = pair or (names[0], names[1])
    for name in pair:
        require_known(name, names, f"unknown sensor {name!r}")
    require(pair[0] != pair[1], f"two sensors are drawn, got {pair[0]!r} twice")
    ax, places = _axes(ax), (names.index(pair[0]), names.index(pair[1]))
    ax.plot(*_shadow(one, places), color=LINE, linewidth=1.4, linestyle="--", label="shadow")
    if reading is not None:
        y = reading_of(reading, names)
        cut = None if np.isnan(y).any() else _cut(one, places, y)
        if cut is not None:
            ax.fill(*cut, facecolor=FILL, edgecolor=LINE, linewidth=1.4, label="given the other sensors")
        inside = bool(one.contains(y))
        look = {"marker": "o", "color": INK} if inside else {"marker": "x", "color": MISS, "markeredgewidth": 1.8}
        word = "reading, inside" if inside else "reading, outside"
        ax.plot(*y[list(places)], linestyle="", markersize=7, label=word, **look)
    ax.set_xlabel(pair[0], parse_math=False)
    ax.set_ylabel(pair[1], parse_math=False)
    return ax


def _shadow(one: Ellipsoid | Box, places: tuple[int, int]) -> Array:
    """Outline (2, points) of a set on the plane of two sensors."""
    if isinstance(one, Ellipsoid):
        return shadow(one.law, float(one.radius), places).outline()
    (x, y), (X, Y) = (np.asarray(ends)[list(places)] for ends in one.bounds)
    return np.array([[x, X, X, x, x], [y, y, Y, Y, y]])


def _cut(one: Ellipsoid | Box, places: tuple[int, int], y: Array) -> Array | None:
    """Outline of a set in that plane given the readings of all other sensors; None where these are outside."""
    if isinstance(one, Ellipsoid):
        found = section(one.law, float(one.radius), places, y)
        return found.outline() if found.radius >= 0 else None
    held = np.where(np.isin(np.arange(len(y)), places), np.asarray(one.center), y)
    return _shadow(one, places) if one.contains(held) else None


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _steps(run: Run) -> Array:
    """Times of the rows, or their numbers."""
    return np.arange(len(run.score)) if run.timestamps is None else run.timestamps.astype("datetime64[s]")


def _dated(ax: Axes, run: Run) -> Axes:
    """The axes with few and short dates, which do not run into each other, where rows have times."""
    if run.timestamps is not None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        few = AutoDateLocator(maxticks=6)
        ax.xaxis.set_major_locator(few)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(few))
    return ax
