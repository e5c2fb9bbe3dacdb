"""Figures of runs, drawn without global state; told apart by line style, marker and lightness, not by hue alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from jointset.contracts import Array
from jointset.joint_predictor import Run
from jointset.planes import most_correlated, section, shadow, telling_steps
from jointset.plot import DOT, INK, MISS, draw_scores

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelcolor": "#333333",
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
LOOKS: dict[str, dict[str, Any]] = {
    "gnf": {"color": "#1b7a3e", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    "kalman": {"color": "#0b3c6f", "linestyle": "-", "marker": "o"},
    "kalman-tuned": {"color": "#5aa2d8", "linestyle": "--", "marker": "s"},
    "static": {"color": "#d9780f", "linestyle": "-.", "marker": "^"},
    "kalman+aci": {"color": "#6b6b6b", "linestyle": ":", "marker": "D"},
}
SPARE: list[dict[str, Any]] = [
    {"color": color, "linestyle": line, "marker": marker}
    for color, line, marker in (
        ("#8c2d79", "-", "P"),
        ("#00857d", "--", "X"),
        ("#a04000", ":", "*"),
        ("#4b4bc8", "-.", "<"),
        ("#7a6a00", "-", ">"),
        ("#c2447a", "--", "p"),
        ("#1f1f1f", "-.", "h"),
    )
]
SIZES = (("width", "width", True), ("log_volume", "log-volume per sensor", False))  # widths compare as ratios
DPI = 130


def looks(names: list[str]) -> dict[str, dict[str, Any]]:
    """Line style, marker and colour of every method, no two alike for up to twelve; the known ones have their own."""
    taken = [LOOKS[name] for name in names if name in LOOKS]
    free = cycle([look for look in (*LOOKS.values(), *SPARE) if look not in taken] or SPARE)
    return {name: LOOKS[name] if name in LOOKS else next(free) for name in names}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure with a canvas of its own."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def halves(figure: Figure, widths: tuple[float, float]) -> Any:
    """Two figures side by side."""
    return figure.subfigures(1, 2, width_ratios=widths)


def score_figure(runs: Mapping[str, Run]) -> Figure:
    """Score and radius over time, one panel a method, misses marked."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 0.7 + 2.1 * len(runs))
        axes = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for ax, (name, run) in zip(axes, runs.items(), strict=True):
            draw_scores(ax, np.arange(len(run.score)), run, looks(list(runs))[name]["color"])
            seen = ~np.isnan(run.score)
            missed = int((seen & ~run.inside).sum())
            ax.set_title(
                f"{name}: {missed} of {seen.sum()} readings outside ({100 * missed / seen.sum():.1f} %)",
                parse_math=False,
            )
        axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, borderaxespad=0)
        axes[-1].set_xlabel("step of the test block")
        return figure


def pair_figure(runs: Mapping[str, Run], steps: int = 9) -> Figure:
    """Two sensors: the shadow of the joint set over all residuals, and the cut of single steps.

    The first run is drawn in both parts; the shadows of the other runs are added for comparison.
    """
    run = next(iter(runs.values()))
    pair = most_correlated(run)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 5.0)
        left, right = halves(figure, (1.0, 1.05))
        draw_shadows(left.subplots(), runs, pair)
        draw_cuts(right, run, pair, telling_steps(run, steps), columns=3)
        return figure


def draw_shadows(ax: Axes, runs: Mapping[str, Run], pair: tuple[int, int]) -> None:
    """Residuals of a pair and the projection of each method's set at the last step, both centred on the mean."""
    run = next(iter(runs.values()))
    residuals = (run.values - run.mean)[:, pair]
    missed = run.score > run.radius
    ax.plot(*residuals[~missed].T, ".", color=DOT, markersize=4, label="whole reading inside")
    outside = residuals[missed].T
    ax.plot(*outside, "x", color=MISS, markersize=4.5, markeredgewidth=1.0, alpha=0.8, label="whole reading outside")
    for name, look in looks(list(runs)).items():
        regions = runs[name].regions
        outline = shadow(regions.law[-1], runs[name].radius[-1], pair)._replace(center=np.zeros(2)).outline()
        ax.plot(*outline, color=look["color"], linestyle=look["linestyle"], linewidth=1.8, label=f"shadow, {name}")
    ax.set_aspect("equal", "datalim")
    ax.locator_params(nbins=5)
    ax.set_xlabel(f"{run.sensors[pair[0]]}: reading − mean", parse_math=False)
    ax.set_ylabel(f"{run.sensors[pair[1]]}: reading − mean", parse_math=False)
    ax.set_title("Shadow of the joint set")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, columnspacing=1.0, handletextpad=0.5)


def draw_cuts(figure: Figure | SubFigure, run: Run, pair: tuple[int, int], steps: range, columns: int) -> None:
    """One small picture a step: the cut through the other readings, and the reading of the pair."""
    law = run.regions.law
    cuts = [section(law[t], run.radius[t], pair, run.values[t]) for t in steps]
    axes = figure.subplots(-(-len(steps) // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, t, cut in zip(axes, steps, cuts, strict=False):
        draw_cut(ax, cut, run.values[t][list(pair)], bool(run.inside[t]))
        outside = "" if run.inside[t] else ", outside"
        ax.set_title(f"step {t}{outside}", fontsize=9.5, color=MISS if outside else INK, pad=3)
    for ax in axes[len(steps) :]:
        ax.set_visible(False)
    size = matplotlib.rcParams["axes.titlesize"]
    figure.suptitle(
        f"Two sensors, given the other {len(run.sensors) - 2}, step by step", x=0.03, ha="left", fontsize=size
    )
    figure.supxlabel(run.sensors[pair[0]], fontsize=matplotlib.rcParams["font.size"], color="#333333")
    figure.supylabel(run.sensors[pair[1]], fontsize=matplotlib.rcParams["font.size"], color="#333333")


def draw_cut(ax: Axes, cut: Any, reading: Array, inside: bool) -> None:
    """The cut as a filled ellipse and the reading of the pair: a dot inside it, a cross outside."""
    if cut.radius >= 0:
        outline = cut.outline()
        ax.fill(*outline, facecolor="#dbe6ef", edgecolor="#0b3c6f", linewidth=1.4)
    elif not inside:
        ax.text(0.5, 0.06, "no cut", transform=ax.transAxes, ha="center", fontsize=9, color="#555555")
    if inside:
        ax.plot(*reading, "o", color=INK, markersize=4.5)
    else:
        ax.plot(*reading, "x", color=MISS, markersize=7, markeredgewidth=1.8)
    ax.set_aspect("equal", "box")


def coverage_figure(runs: Mapping[str, Run], alpha: float, window: int = 200) -> Figure:
    """Rolling share of readings inside, with the range a set of exactly the target coverage would move in."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 3.6)
        ax = figure.subplots()
        window = min(window, max(10, min(len(run.score) for run in runs.values()) // 4))
        target, spread = 1.0 - alpha, 1.96 * np.sqrt(alpha * (1.0 - alpha) / window)
        ax.axhspan(100 * (target - spread), min(100.0, 100 * (target + spread)), color="#eeeeee", zorder=0)
        ax.axhline(100 * target, color=INK, linewidth=1.0, zorder=1)
        for name, look in looks(list(runs)).items():
            steps, share = rolling_share(runs[name], window)
            every = max(1, len(steps) // 8)
            line = {**look, "markersize": 5, "markevery": every, "linewidth": 1.7}
            ax.plot(steps, 100 * share, label=name, **line)
        low, high = ax.get_ylim()
        ax.set_ylim(min(low, 100 * (target - 1.3 * spread)), min(100.5, max(high, 100 * (target + 1.3 * spread))))
        ax.set_ylabel(f"inside, last {window} steps (%)")
        ax.set_xlabel("step of the test block")
        ax.margins(x=0.01)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(runs))
        return figure


def rolling_share(run: Run, window: int) -> tuple[Array, Array]:
    """Steps at which a window of scored readings ends, and the share inside each window."""
    seen = np.flatnonzero(~np.isnan(run.score))
    window = min(window, len(seen))
    total = np.concatenate([[0], np.cumsum(run.inside[seen])])
    return seen[window - 1 :], (total[window:] - total[:-window]) / window


def size_figure(runs: Mapping[str, Run]) -> Figure:
    """Mean width and mean log-volume of each method as dots."""
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 0.9 + 0.45 * len(runs))
        axes = figure.subplots(1, 2, sharey=True)
        places = np.arange(len(runs))[::-1]
        for ax, (key, title, span) in zip(axes, SIZES, strict=True):
            numbers = [run.summary()[key] for run in runs.values()]
            ends = _padded(numbers, span)
            ax.hlines(places, *ends, color="#e6e6e6", linewidth=1.0, zorder=0)
            for place, number, look in zip(places, numbers, looks(list(runs)).values(), strict=True):
                ax.plot(number, place, look["marker"], color=look["color"], markersize=8)
                ax.annotate(
                    f"{number:.3f}", (number, place), (0, 7), textcoords="offset points", ha="center", fontsize=9.5
                )
            ax.set_xlim(*ends)
            ax.set_ylim(-0.5, len(runs) - 0.2)
            ax.set_title(f"{title} (smaller is tighter)")
        axes[0].set_yticks(places, list(runs))
        return figure


def _padded(numbers: list[float], relative: bool) -> tuple[float, float]:
    """Ends of an axis around the numbers, at least a tenth wide: differences below that should look small."""
    low, high = min(numbers), max(numbers)
    least = 0.1 * abs(high) if relative else 0.1
    room = max(0.2 * (high - low), 0.5 * (least - (high - low)))
    return low - room, high + room


def overview_figure(run: Run, alpha: float, steps: int = 8) -> Figure:
    """One wide picture: score and radius over time, and two sensors of the set step by step."""
    with matplotlib.rc_context(STYLE | {"font.size": 12, "axes.titlesize": 12.5, "legend.fontsize": 11.5}):
        figure = new_figure(1600 / DPI, 600 / DPI)
        left, right = halves(figure, (1.0, 1.12))
        ax = left.subplots()
        draw_scores(ax, np.arange(len(run.score)), run, LOOKS["kalman"]["color"])
        target = f"target {100 * (1 - alpha):g} %"
        ax.set_title(f"All {len(run.sensors)} sensors in one score: {100 * run.joint:.1f} % inside, {target}")
        ax.set_xlabel("step")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, columnspacing=1.2, handletextpad=0.4)
        draw_cuts(right, run, most_correlated(run), telling_steps(run, steps), columns=4)
        return figure
