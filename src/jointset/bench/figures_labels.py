"""Labels beside points that cover neither each other nor the points, with a thin line where they stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patheffects import withStroke

from jointset.contracts import Array

DISTANCES = (9, 16, 24, 34, 46, 60, 76, 94, 114, 136)  # points between a marker and its label
ANGLES = tuple(np.deg2rad([45, 135, -45, -135, 0, 180, 70, 110, -70, -110, 20, 160, -20, -160, 90, -90]))
POINT = 5.0  # half the side of the room a marker takes
APART = 20  # points from which a line leads to the label


def place_labels(ax: Any, points: Array, names: Sequence[str], size: float = 8.5) -> None:
    """Write each name near its point (data coordinates), inside the axes; the layout of the figure must be settled."""
    figure = ax.figure
    scale = figure.dpi / 72.0
    renderer = figure.canvas.get_renderer()
    at = ax.transData.transform(points)
    room = ax.get_window_extent(renderer)
    taken = [_box(x, y, 2 * POINT * scale, 2 * POINT * scale) for x, y in at]
    taken += [tuple(text.get_window_extent(renderer).extents) for text in ax.texts]  # words that stand there already
    crowd = [
        float(np.hypot(*(at - point).T).min(where=np.arange(len(at)) != i, initial=1e9)) for i, point in enumerate(at)
    ]
    for i in np.argsort(crowd, kind="stable"):  # the most crowded choose first
        probe = ax.text(0, 0, names[i], fontsize=size)
        extent = probe.get_window_extent(renderer)
        probe.remove()
        offset, far, box = _free_place(at[i], extent.width + 3 * scale, extent.height + 1 * scale, taken, room, scale)
        taken.append(box)
        lead = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3} if far else None
        ax.annotate(
            names[i],
            points[i],
            tuple(offset),
            textcoords="offset points",
            fontsize=size,
            ha="center",
            va="center",
            arrowprops=lead,
            zorder=4,
            path_effects=[withStroke(linewidth=2.4, foreground="white")],
        )


def _box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _free_place(
    point: Array, width: float, height: float, taken: list[tuple[float, float, float, float]], room: Any, scale: float
) -> tuple[Array, bool, tuple[float, float, float, float]]:
    """Offset in points, whether it is far, and box in pixels of the nearest place that covers least."""
    best, least = None, np.inf
    for distance in DISTANCES:
        for angle in ANGLES:
            step = np.array([np.cos(angle), np.sin(angle)]) * distance * scale
            middle = point + step + np.array([np.sign(step[0]) * (abs(np.cos(angle)) > 0.3) * width / 2, 0.0])
            box = _box(middle[0], middle[1], width, height)
            inside = box[0] >= room.x0 and box[1] >= room.y0 and box[2] <= room.x1 and box[3] <= room.y1
            cost = sum(_overlap(box, other) for other in taken) + (0 if inside else 1e6)
            if cost < least:
                best, least = ((middle - point) / scale, distance >= APART, box), cost
            if cost == 0:
                break
        if least == 0:
            break
    assert best is not None
    return best


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)
