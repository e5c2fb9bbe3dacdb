"""Pictures of results: width against joint coverage, and width against the number of sensors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from jointset.bench.figures_labels import place_labels
from jointset.bench.tables.measured import SLACK, At, Measured, Summary, without_size
from jointset.catalogue import PROMINENT, TABLE, bare
from jointset.plot import INK, MISS
from jointset.report.figures import STYLE, new_figure

if TYPE_CHECKING:
    import pandas as pd

FAMILIES: dict[str, dict[str, Any]] = {  # told apart by marker and lightness
    "learned filter": {"marker": "*", "color": "#0b3c6f", "markersize": 12},
    "filter, not learned": {"marker": "o", "color": "#5aa2d8"},
    "static covariance": {"marker": "s", "color": "#d9780f"},
    "adaptive (wrapped)": {"marker": "D", "color": "#7a4a00", "markersize": 6},
    "conditional covariance": {"marker": "^", "color": "#6b6b6b"},
    "published": {"marker": "P", "color": "#111111", "markersize": 8.5},
}
LINES: list[dict[str, Any]] = [
    {"color": "#0b3c6f", "linestyle": "-", "marker": "*", "markersize": 10},
    {"color": "#d9780f", "linestyle": "--", "marker": "s"},
    {"color": "#111111", "linestyle": "-.", "marker": "v"},
    {"color": "#5aa2d8", "linestyle": ":", "marker": "o"},
    {"color": "#7a4a00", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "D"},
    {"color": "#6b6b6b", "linestyle": "-", "marker": "^"},
    {"color": "#8a2846", "linestyle": (0, (1, 1)), "marker": "P", "markersize": 8},
    {"color": "#2e7d5b", "linestyle": (0, (7, 2)), "marker": "<"},
    {"color": "#9a8fb8", "linestyle": (0, (3, 1, 1, 1)), "marker": "X", "markersize": 8},
    {"color": "#444444", "linestyle": (0, (8, 2, 1, 2)), "marker": ">"},
]
NEAR = 0.045  # joint coverage further below the target is told in words


class Point(NamedTuple):
    """A method on a cell."""

    at: At
    summary: Summary
    size: Any  # width or log mean volume
    joint: Any


def family(method: str) -> str:
    """Kind of a method, for its marker.

    >>> family("gnf+aci"), family("group+agaci"), family("ewma")
    ('learned filter', 'adaptive (wrapped)', 'conditional covariance')
    """
    method_ = TABLE.get(bare(method))
    kind = "filter" if method_ is None else method_.family
    if kind == "filter":
        return "learned filter" if method_ is not None and method_.learned else "filter, not learned"
    if kind == "published":
        return kind
    return "adaptive (wrapped)" if "+" in method else f"{kind} covariance"


def points_of(measured: Measured, size: str = "width_full") -> dict[str, list[Point]]:
    """Methods of every cell around their own mean, else the gpvar backbone's."""
    found: dict[str, list[Point]] = {}
    methods = list(dict.fromkeys(key[2] for key in measured.summaries))
    for cell in dict.fromkeys(key[0] for key in measured.summaries):
        for run in measured.variants(methods, [At(cell=cell)]):
            at = run.joined(At(cell=cell))
            summary = measured.find(at)
            numbers = [summary.number(key) for key in (size, "joint")] if summary else [None]
            if summary and None not in numbers and np.isfinite(numbers[0].value):  # type: ignore[union-attr]
                found.setdefault(cell, []).append(Point(at, summary, *numbers))
    return found


def cell_order(cell: str) -> tuple[int, str, int]:
    """Key that sorts cells: data sets before simulations before files, then by name and size.

    >>> sorted(["metr-la-207", "grssf-a-30", "ett-7", "metr-la-20"], key=cell_order)
    ['ett-7', 'metr-la-20', 'metr-la-207', 'grssf-a-30']
    """
    base, _, size = cell.rpartition("-")
    kind = 2 if cell.startswith("file:") else int(cell.startswith("grssf"))
    return (kind, base, int(size)) if size.isdigit() else (kind, cell, 0)


def size_label(cell: str, size: str = "width_full") -> str:
    """Name of the axis of a size with its unit: readings are standardised, save simulated ones."""
    unit = "own units" if cell.startswith("grssf") else "sd of the sensor"
    return (
        f"mean full width per sensor ({unit})"
        if size == "width_full"
        else f"log of the mean volume^(1/N) (nats, {unit})"
    )


def shared_limit(points: Iterable[Point]) -> int:
    """Steps to which the test blocks of all points were cut; 0 where they differ or are whole."""
    limits = {point.at.limit_steps or 0 for point in points}
    return limits.pop() if len(limits) == 1 else 0


def told_once(points: Mapping[str, list[Point]]) -> tuple[dict[str, list[Point]], str]:
    """The points of all cells without the limit that they share in their labels, and words for the title instead."""
    limit = shared_limit(point for members in points.values() for point in members)
    if not limit:
        return dict(points), ""
    return {cell: _unlimited(members) for cell, members in points.items()}, f", cut to {limit} steps"


def _unlimited(members: list[Point]) -> list[Point]:
    return [point._replace(at=point.at._replace(limit_steps=None)) for point in members]


def headline(
    table: pd.DataFrame, protocol: str, cells: Iterable[str] | None = None, size: str = "width_full"
) -> Figure | None:
    """Width (or log mean volume) against joint coverage, one panel a cell; bars are standard deviations over seeds."""
    measured = Measured(table, protocol)
    points = points_of(measured, size)
    asked = sorted(points, key=cell_order) if cells is None else cells
    shown = {cell: points[cell] for cell in asked if len(points.get(cell, [])) > 1}
    if not shown:
        return None
    shown, cut = told_once(shown)
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(7.6 if columns == 1 else 12.8, 0.9 + 4.9 * rows)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        drawn = [
            _draw_cell(ax, cell, members, 1 - measured.alpha, size)
            for ax, (cell, members) in zip(axes, shown.items(), strict=False)
        ]
        for ax in axes[len(shown) :]:
            ax.set_visible(False)
        kinds = dict.fromkeys(family(str(point.at.method)) for members in shown.values() for point in members)
        looks = {kind: {"linestyle": "", **look} for kind, look in FAMILIES.items() if kind in kinds}
        name = "Width" if size == "width_full" else "Log mean volume"
        title = f"{name} against joint coverage (protocol {protocol}, alpha {measured.alpha:g}{cut}; bars: sd)"
        explain(figure, title, looks, 3 * columns, handlelength=None)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # labels are placed on the settled layout
        for ax, near in zip(axes, drawn, strict=False):
            if near:
                place = np.array([[point.joint.value, point.size.value] for point in near])
                place_labels(ax, place, [point.at.label for point in near])
        return figure


def _draw_cell(ax: Axes, cell: str, members: list[Point], target: float, size: str) -> list[Point]:
    """Points near the target with bars; the others are told in words. The points that were drawn."""
    limit = shared_limit(members)
    members = _unlimited(members) if limit else members
    near = [point for point in members if point.joint.value >= target - NEAR]
    far = [point for point in members if point.joint.value < target - NEAR]
    for point in near:
        look = {"markersize": 7.5, **FAMILIES[family(str(point.at.method))]}
        hollow: dict[str, Any] = {} if point.summary.at_target() else {"markerfacecolor": "white"}
        bars = {"xerr": point.joint.spread, "yerr": point.size.spread, "elinewidth": 0.8, "ecolor": "#aaaaaa"}
        ax.errorbar(point.joint.value, point.size.value, linestyle="", **look, **hollow, **bars, zorder=3)
    ax.axvspan(0, target - SLACK, color="#f3f3f3", zorder=0)
    values = [point.joint.value for point in near] or [target]
    low, high = min(*values, target - 0.012), max(*values, target + 0.02)
    room = 0.18 * (high - low)
    ax.set_xlim(low - room, high + room)
    if size == "width_full":  # widths compare as ratios, logs of volumes as differences
        ax.set_yscale("log")
        _widen(ax, [point.size.value for point in near])
    else:
        ax.margins(y=0.15)
    ax.set_xlabel("joint coverage (grey: below target, hollow markers)")
    ax.set_ylabel(size_label(cell, size))
    ax.set_title(f"{cell}, {len(members)} methods" + (f", cut to {limit} steps" if limit else ""))
    below = 0.0
    if far:
        words = ", ".join(f"{point.at.label} {point.size.value:.2f} @ {point.joint.value:.2f}" for point in far)
        lines = textwrap.fill(f"off the left (size @ coverage): {words}", 72)
        ax.text(0.01, 0.01, lines, transform=ax.transAxes, fontsize=8, color=MISS, va="bottom")
        below = 0.03 + 0.04 * (1 + lines.count("\n"))
        _make_room_below(ax, below)
    ax.axvline(target, ymin=below, color=INK, linestyle="--", linewidth=1.0, zorder=1)  # not through the words
    return near


def _make_room_below(ax: Axes, share: float) -> None:
    """Lower the bottom of an axis so that this share of its height is free of points."""
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(np.array(ax.get_ylim()))
    ax.set_ylim(bottom=float(scale.inverted().transform(low - (high - low) * share / (1.0 - share))))


def _widen(ax: Axes, values: list[float], factor: float = 1.25) -> None:
    """Plain numbers on a logarithmic axis with room on both sides."""
    if not values:
        return
    low, high = min(values) / factor, max(values) * factor
    ax.set_ylim(low, high)
    plain_ticks(ax.yaxis, low, high)


def plain_ticks(axis: Axis, low: float, high: float) -> None:
    """A handful of round numbers on a logarithmic axis."""
    steps = [m * 10.0**e for e in range(-4, 6) for m in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)]
    ticks = [step for step in steps if low <= step <= high]
    while len(ticks) > 7:
        ticks = ticks[::2]
    axis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def scale(table: pd.DataFrame, protocol: str) -> Figure | None:
    """Width against the number of sensors, one panel a data set; crosses where coverage is below target."""
    points, cut = told_once(points_of(Measured(table, protocol)))
    families = _by_size(points)
    if not families:
        return None
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.6 * len(families), 4.8)
        axes = figure.subplots(1, len(families), squeeze=False)[0]
        looks = _line_looks(families)
        for ax, (name, methods) in zip(axes, families.items(), strict=True):
            for method, members in methods.items():
                sizes, widths = zip(*((n, point.size.value) for n, point in members), strict=True)
                spreads = [point.size.spread or 0.0 for _, point in members]
                ax.errorbar(sizes, widths, yerr=spreads, label=method, linewidth=1.4, elinewidth=0.8, **looks[method])
                under = [(n, point.size.value) for n, point in members if not point.summary.at_target()]
                if under:
                    ax.plot(*zip(*under, strict=True), "x", color=MISS, markersize=11, markeredgewidth=1.8, zorder=4)
            ax.set_xscale("log")
            ax.set_yscale("log")
            every = sorted({n for members in methods.values() for n, _ in members})
            ax.xaxis.set_major_locator(matplotlib.ticker.FixedLocator(every))
            ax.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
            ax.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
            _widen(ax, [point.size.value for members in methods.values() for _, point in members], 1.12)
            ax.set_xlabel("sensors N")
            ax.set_ylabel(size_label(name))
            ax.set_title(name)
        shown = {method: {"markersize": 7, **look} for method, look in looks.items()}
        cross: dict[str, Any] = {"linestyle": "", "marker": "x", "color": MISS, "markersize": 9, "markeredgewidth": 1.8}
        columns, gap = (2, "\n") if len(families) == 1 else (4, " ")  # one panel is narrower than the title
        title = f"Width against the number of sensors{gap}(protocol {protocol}{cut})"
        explain(figure, title, shown | {"joint coverage below target": cross}, columns)
        return figure


def explain(
    figure: Figure, title: str, looks: Mapping[str, Mapping[str, Any]], columns: int, handlelength: float | None = 3.2
) -> None:
    """Add the title, and below a legend of these looks in at most so many columns."""
    handles = [matplotlib.lines.Line2D([], [], label=name, **look) for name, look in looks.items()]
    columns = min(len(handles), columns)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=handlelength)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)


def _by_size(points: Mapping[str, list[Point]]) -> dict[str, dict[str, list[tuple[int, Point]]]]:
    """Methods of the paper's lines that were run on two or more sizes of a data set, by data set and size."""
    grouped: dict[str, dict[str, dict[int, Point]]] = {}
    for members in points.values():
        for point in members:
            if str(point.at.method) in PROMINENT:
                size = int(next(iter(point.summary.seeds.values()))["n"])
                methods = grouped.setdefault(without_size(str(point.at.cell)), {})
                methods.setdefault(point.at.label, {})[size] = point
    several = {
        base: {name: sorted(found.items(), key=lambda pair: pair[0]) for name, found in lines.items() if len(found) > 1}
        for base, lines in grouped.items()
        if base
    }
    return {base: methods for base, methods in several.items() if methods}


def _line_looks(families: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found = dict.fromkeys(name for methods in families.values() for name in methods)
    places = {name: i for i, name in enumerate(PROMINENT)}
    names = sorted(found, key=lambda name: places.get(name, len(places)))
    return {name: LINES[i % len(LINES)] for i, name in enumerate(names)}
