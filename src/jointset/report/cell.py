"""The picture of a cell: its network on the left, a week of readings of a few of its sensors on the right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from jointset.contracts import Array
from jointset.datasets.cells import Cell
from jointset.graph import Adjacency, weighted_edges
from jointset.inputs.sensor_places import layout
from jointset.plot import INK
from jointset.report.figures import STYLE, halves, new_figure

WEEK = 7 * 86_400
STEPS = 500  # drawn where there are no time stamps
SHOWN = 5
NODES = "viridis"
FILLED = "#d9780f"
MANY = 25  # sensors from which only those with readings on the right are named
SIDES = (
    *((8, 0, "left", "center"), (-8, 0, "right", "center"), (0, 8, "center", "bottom"), (0, -8, "center", "top")),
    *((7, 5, "left", "bottom"), (7, -5, "left", "top"), (-7, 5, "right", "bottom"), (-7, -5, "right", "top")),
)  # where a name may stand beside its dot: offset in points, alignment


class Colors(NamedTuple):
    """Colour of every sensor by the spread of its readings."""

    scale: Array  # (N,)
    norm: Normalize
    map: Any

    def of(self, i: int) -> Any:
        """Colour of one sensor."""
        return self.map(self.norm(self.scale[i]))


def cell_figure(cell: Cell) -> Figure:
    """Map (or layout) of the sensors coloured by scale, and the last week of training in physical units."""
    shown = telling_sensors(cell)
    colors = _colors(cell.scale)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(12.3, 5.4)
        left, right = halves(figure, (1.0, 1.2))
        draw_network(left, cell, shown, colors)
        draw_readings(right, cell, shown, colors)
        return figure


def telling_sensors(cell: Cell, count: int = SHOWN) -> list[int]:
    """A few sensors from the calmest to the most lively."""
    order = np.argsort(cell.scale, kind="stable")
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def last_week(cell: Cell) -> slice:
    """Steps of the training block's last week, or its last 500 where there is no cadence."""
    block, cadence = cell.blocks["train"], cell.raw.cadence
    steps = STEPS if not cadence else max(2, round(WEEK / cadence))
    return slice(max(block.start, block.stop - steps), block.stop)


def positions(cell: Cell) -> Array:
    """Places (N, 2) to draw the sensors at: east and north in degrees, or a layout of the graph."""
    places = cell.raw.coordinates
    if places is not None and np.isfinite(places).all():
        return np.stack([places[:, 1], places[:, 0]], axis=1)
    n = cell.panel.n_sensors
    return layout(np.zeros((n, n)) if cell.panel.adjacency is None else cell.panel.adjacency)


def draw_network(figure: Any, cell: Cell, shown: list[int], colors: Colors) -> None:
    """Sensors as dots, edges as lines that are darker the heavier they are."""
    ax, at = figure.subplots(), positions(cell)
    n, mapped = len(at), cell.raw.coordinates is not None
    edges = _draw_edges(ax, at, cell.panel.adjacency)
    ring = np.isin(np.arange(n), shown)
    size = np.clip(2000 / n, 14, 110)
    dots = ax.scatter(
        *at.T, s=np.where(ring, max(size, 40), size), c=colors.scale, norm=colors.norm, cmap=colors.map,
        zorder=3, edgecolors=np.where(ring, INK, "white").tolist(), linewidths=np.where(ring, 1.5, 0.5),
    )  # fmt: skip
    ax.set_aspect(1.0 / np.cos(np.radians(at[:, 1].mean())) if mapped else "equal", "datalim")
    ax.margins(0.1)
    _frame(ax, mapped)
    unit = f" ({cell.unit})" if cell.unit else ""
    label = f"standard deviation in training{unit}"
    figure.colorbar(dots, ax=ax, orientation="horizontal", shrink=0.7, aspect=40, pad=0.02, label=label)
    what = f"{n} sensor{'s' * (n != 1)}, {edges} edge{'s' * (edges != 1)}"
    name = Path(cell.name.removeprefix("file:").partition("?")[0]).name
    ax.set_title(f"{name[:30]}, protocol {cell.protocol}: {what}", parse_math=False)
    figure.figure.draw_without_rendering()  # places on the page are known only now
    others = [] if n > MANY else [i for i in range(n) if i not in shown]
    _name_sensors(ax, at, cell.panel.sensors, shown, others)


def _draw_edges(ax: Any, at: Array, adjacency: Adjacency | None) -> int:
    """Draw the edges, lighter where there are many; gives their number."""
    if adjacency is None:
        return 0
    ends, weights = weighted_edges(adjacency)
    once = ends[:, 0] < ends[:, 1]
    if not once.any():
        return 0
    (i, j), weight = ends[once].T, weights[once] / weights.max()
    order = np.argsort(weight)  # heavy ones on top
    lightness = min(1.0, np.sqrt(80 / len(order)))
    lines = LineCollection(
        [at[[a, b]] for a, b in zip(i[order], j[order], strict=True)],
        colors=[(0.35, 0.38, 0.42, 0.1 + 0.7 * lightness * w) for w in weight[order]],
        linewidths=0.4 + 1.5 * lightness * weight[order],
        zorder=1,
    )
    ax.add_collection(lines)
    return len(order)


def _name_sensors(ax: Any, at: Array, names: Sequence[str], shown: list[int], others: list[int]) -> None:
    """Names beside the dots where there is room for them; those with readings on the right always get theirs."""
    dots = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in ax.transData.transform(at)]
    frame, taken = ax.get_window_extent(), list(dots)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for i in [*shown, *others]:
        bold = i in shown
        text = ax.annotate(
            names[i], at[i], (0, 0), textcoords="offset points", parse_math=False, fontsize=8.5, zorder=4,
            path_effects=halo, color=INK if bold else "#666666", fontweight="bold" if bold else "normal",
        )  # fmt: skip
        crowding = []
        for side in SIDES:
            _put(text, side)
            box = text.get_window_extent()
            outside = box.x0 < frame.x0 or box.x1 > frame.x1
            crowding.append(100 * outside + sum(box.overlaps(other) for k, other in enumerate(taken) if k != i))
        best = int(np.argmin(crowding))
        _put(text, SIDES[best])
        if crowding[best] and not bold:
            text.remove()
        else:
            taken.append(text.get_window_extent())


def _put(text: Any, side: tuple[float, float, str, str]) -> None:
    text.set_position(side[:2])
    text.set_ha(side[2])
    text.set_va(side[3])


def _frame(ax: Any, mapped: bool) -> None:
    if mapped:
        ax.set_xlabel("longitude")
        ax.set_ylabel("latitude")
        ax.locator_params(nbins=5)
        return
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def draw_readings(figure: Any, cell: Cell, shown: list[int], colors: Colors) -> None:
    """One strip a sensor, the most lively on top; readings that were filled in are dotted."""
    steps = last_week(cell)
    times, dated = _times(cell, steps)
    observed = cell.observed(steps)
    raw, used = cell.raw.values[steps], cell.preprocess.invert(cell.panel.values[steps])
    axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for ax, i in zip(axes, reversed(shown), strict=True):
        ax.plot(times, np.where(observed[:, i], raw[:, i], np.nan), color=INK, linewidth=0.9)
        ax.plot(times, np.where(observed[:, i], np.nan, used[:, i]), ".", color=FILLED, markersize=3)
        ax.set_title(f"    {cell.panel.sensors[i]}", fontsize=9.5, parse_math=False, pad=3, fontweight="bold")
        place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
        ax.annotate("●", (0, 1), (1, 3), color=colors.of(i), va="baseline", fontsize=11, **place)
        ax.locator_params(axis="y", nbins=3)
        ax.margins(x=0.005)
    if dated:
        locator = AutoDateLocator(minticks=3, maxticks=9)
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        axes[-1].set_xlabel("step")
    filled = ", filled-in readings dotted" if not observed[:, shown].all() and cell.preprocess.missing == "fill" else ""
    span = "The last week of training" if dated else f"The last {len(times)} steps of training"
    if steps.start == cell.blocks["train"].start:
        span = "The training block"
    unit = f" ({cell.unit})" if cell.unit else ""
    size = matplotlib.rcParams["axes.titlesize"]
    figure.suptitle(f"{span}{filled}{unit}", x=0.03, ha="left", fontsize=size)


def _times(cell: Cell, steps: slice) -> tuple[Array, bool]:
    if cell.raw.timestamps is None:
        return np.arange(steps.start, steps.stop), False
    return cell.raw.timestamps[steps].astype("datetime64[s]"), True


def _colors(scale: Array) -> Colors:
    """Logarithmic where scales differ by more than a factor of twenty."""
    low, high = float(scale.min()), float(scale.max())
    norm = LogNorm(low, high) if 0 < low < high / 20 else Normalize(low, high if high > low else low + 1.0)
    return Colors(scale, norm, matplotlib.colormaps[NODES])
