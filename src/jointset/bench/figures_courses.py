"""Pictures of courses: coverage over time, sweeps of rank and warm-up, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jointset.abilities import ByRecipe
from jointset.audits.stored import Audited
from jointset.bench.figures_results import LINES, cell_order, explain, size_label
from jointset.bench.measures import rolling
from jointset.bench.plan import OWN
from jointset.bench.report_traces import rolling_window, stored_trace
from jointset.bench.tables.diagnostics import Swept, swept
from jointset.bench.tables.measured import full_name
from jointset.catalogue import FILTERS, LEARNED, PROMINENT
from jointset.contracts import Array
from jointset.methods import parse
from jointset.paper import printed, printed_places, printed_rows
from jointset.plot import INK
from jointset.report.figures import STYLE, new_figure

if TYPE_CHECKING:
    import pandas as pd

MOST = 5  # lines of a panel
RECIPES: dict[str, dict[str, Any]] = {
    "paper": {"color": "#777777", "linestyle": "--", "marker": "s"},
    "fast": {"color": "#0b3c6f", "linestyle": "-", "marker": "o"},
    "sharp": {"color": "#b2182b", "linestyle": "-.", "marker": "^"},
}


class Course(NamedTuple):
    """Steps (T,) of the test block that have readings, counted from 1, and whether they were inside (T,)."""

    steps: Array
    inside: Array


def coverage_over_time(folder: str | Path, table: pd.DataFrame, protocol: str) -> Figure | None:
    """Joint coverage of a few methods over the last 500 steps, one panel a cell, from the stored traces.

    In a test block of fewer than 1000 steps the window is a fifth of it; title or panels say how long it is.
    """
    shown = _courses(folder, table, protocol)
    if not shown:
        return None
    alpha = float(table["alpha"].iloc[0])
    names = [method for method in PROMINENT if any(method in members for members in shown.values())]
    looks = {name: LINES[i % len(LINES)] for i, name in enumerate(names)}
    windows = {cell: rolling_window(min(len(one.inside) for one in shown[cell].values())) for cell in shown}
    with matplotlib.rc_context(STYLE):
        columns = 1 if len(shown) <= 3 else 2
        height = -(-len(shown) // columns)
        figure = new_figure(9.6 if columns == 1 else 14.0, 1.1 + 2.7 * height)
        axes = figure.subplots(height, columns, squeeze=False).ravel()
        for ax, cell in zip(axes, sorted(shown, key=cell_order), strict=False):
            _draw_course(ax, shown[cell], looks, 1 - alpha, windows[cell])
            ax.set_title(cell if len(set(windows.values())) == 1 else f"{cell}, last {windows[cell]} steps")
        for ax in axes[len(shown) :]:
            ax.set_visible(False)
        for ax in axes[len(shown) - columns : len(shown)]:
            ax.set_xlabel("step of the test block")
        one = f"the last {min(windows.values())} steps" if len(set(windows.values())) == 1 else "a moving window"
        title = f"Joint coverage over {one} (protocol {protocol}; band: chance at the target)"
        explain(figure, title, {name: {"markersize": 6, **look} for name, look in looks.items()}, 5)
        return figure


def _courses(folder: str | Path, table: pd.DataFrame, protocol: str) -> dict[str, dict[str, Course]]:
    """Courses by cell and method: the first methods of PROMINENT that have a trace."""
    rows = table[(table["protocol"] == protocol) & (table["status"] == "ok") & table["backbone"].isin(["own", "gpvar"])]
    rows = rows[np.isclose(rows["alpha"].astype(float), float(table["alpha"].iloc[0]))] if len(table) else rows
    found: dict[str, dict[str, Course]] = {}
    for (cell, _), part in rows.groupby(["cell", "n"], sort=False):
        members: dict[str, Course] = {}
        for method in PROMINENT:
            tasks = dict.fromkeys(part.loc[part["method"] == method].sort_values(["limit_steps", "pilot"])["task"])
            traces = [stored_trace(folder, task).get(method, {}) for task in tasks if len(members) < MOST]
            courses = [_course(trace) for trace in traces if "inside" in trace]
            courses = [course for course in courses if len(course.steps)]
            if courses:
                members[method] = courses[0]
        if members:
            found[full_name(str(cell), int(part["n"].iloc[0]))] = members
    return found


def _course(trace: Mapping[str, Array]) -> Course:
    """The course of a trace; steps without a reading count neither way."""
    inside = np.asarray(trace["inside"], bool)
    seen = ~np.isnan(trace["score"]) if "score" in trace else np.ones(len(inside), bool)
    return Course(np.flatnonzero(seen) + 1, inside[seen])


def _draw_course(ax: Axes, members: Mapping[str, Course], looks: Mapping[str, Any], target: float, window: int) -> None:
    spread = 1.96 * np.sqrt(target * (1 - target) / window)
    ax.axhspan(target - spread, min(1.0, target + spread), color="#eeeeee", zorder=0)
    ax.axhline(target, color=INK, linestyle="--", linewidth=1.0, zorder=1)
    for i, (method, course) in enumerate(members.items()):
        share, steps = rolling(course.inside, window), course.steps[window - 1 :]
        every = max(1, len(steps) // 8)
        marks = {"markersize": 5, **looks[method], "markevery": (i * every // len(members), every)}
        ax.plot(steps, share, linewidth=1.4, **marks)
    ax.set_ylabel("joint coverage")
    ax.margins(x=0.01)


def sweep(spec: Swept, audits: Sequence[Audited], paper: bool = False) -> Figure | None:
    """Width and, below it, joint coverage over the settings of a sweep; a column for every cell, a line a filter."""
    cells: dict[str, dict[str, dict[float, tuple[float, float]]]] = {}
    for one in audits:
        found = swept(one, spec)
        if len(found) > 1:
            cells.setdefault(one.cell, {})[one.filter] = found
    for cell in printed_rows(spec.name) if paper else ():
        numbers = {float(s): printed(spec.name, cell, s) for s in printed_places(spec.name, cell)}
        told = {s: (float(v["width"]), float(v["joint"])) for s, v in numbers.items()}
        cells.setdefault(cell, {})["the paper (gnf)"] = told
    if not cells:
        return None
    names = list(dict.fromkeys(name for lines in cells.values() for name in lines))
    looks = {name: {"markersize": 7, **LINES[i % len(LINES)]} for i, name in enumerate(names)}
    with matplotlib.rc_context(STYLE):
        columns = min(len(cells), 3)
        height = -(-len(cells) // columns)
        figure = new_figure(max(6.8, 4.6 * columns), 0.6 + 5.0 * height)
        axes = figure.subplots(2 * height, columns, squeeze=False, height_ratios=(1.6, 1) * height)
        pairs = [(axes[2 * i, j], axes[2 * i + 1, j]) for i in range(height) for j in range(columns)]
        for ax in (ax for pair in pairs[len(cells) :] for ax in pair):
            ax.set_visible(False)
        for (upper, lower), cell in zip(pairs, sorted(cells, key=cell_order), strict=False):
            _draw_sweep(upper, lower, cells[cell], looks)
            upper.set_title(cell)
            upper.set_ylabel(size_label(cell).replace(" (", "\n("))
            lower.set_xlabel({"rank": "rank r of the covariance head", "warmup": "discarded steps t0"}[spec.name])
        explain(figure, f"{spec.title}: width and coverage", looks, 4)
        return figure


def _draw_sweep(upper: Axes, lower: Axes, lines: Mapping[str, Any], looks: Mapping[str, Any]) -> None:
    """The settings stand side by side at equal distances."""
    settings = sorted({setting for found in lines.values() for setting in found})
    for name, found in lines.items():
        xs = [settings.index(setting) for setting in found]
        upper.plot(xs, [width for width, _ in found.values()], **looks[name])
        lower.plot(xs, [joint for _, joint in found.values()], **looks[name])
    lower.axhline(0.9, color=INK, linestyle="--", linewidth=1.0)
    lower.set_ylabel("joint coverage")
    for ax in (upper, lower):  # a change of less than a tenth should look small
        low, high = ax.get_ylim()
        room = max(0.0, (0.1 * high - (high - low)) / 2)
        ax.set_ylim(low - room, high + room)
        ax.set_xticks(range(len(settings)), [f"{setting:g}" for setting in settings])


def courses_of_training(folder: str | Path, table: pd.DataFrame, protocol: str) -> Figure | None:
    """Training likelihood of the learned filters against optimiser steps, mean over the seeds trained together."""
    own = table[(table["protocol"] == protocol) & table["backbone"].eq(OWN) & table["status"].eq("ok")]
    curves: dict[str, Any] = {}
    bases = own["method"].map(lambda name: parse(name).method)
    for task, rows in own[bases.isin(LEARNED)].groupby("task", sort=False):
        for method, arrays in stored_trace(folder, str(task)).items():
            if len(arrays.get("curve", ())):
                base, row = parse(method).method, rows.iloc[0]
                told = f", at most {row['limit_steps']} steps" if row["limit_steps"] else ""
                made = FILTERS[base]()
                usual = made.recipe if isinstance(made, ByRecipe) else ""
                recipe = (row["recipe"] or usual) + told
                curves.setdefault(f"{base}|{row['cell']}|{recipe}", arrays["curve"])
    return learning_curves(curves, "training") if curves else None


def learning_curves(data: Mapping[str, Sequence[Sequence[float]]], block: str = "validation") -> Figure:
    """Likelihood on a block against optimiser steps; keys are `VARIANT|CELL|RECIPE`, values pairs (step, NLL)."""
    keys = [key.split("|") for key in data]
    variants, cells = (list(dict.fromkeys(key[i] for key in keys)) for i in (0, 1))
    spare = [look for look in LINES if look["marker"] not in "so^"]
    names = list(dict.fromkeys(key[2] for key in keys))
    looks = {name: RECIPES.get(name, spare[i % len(spare)]) for i, name in enumerate(names)}
    with matplotlib.rc_context(STYLE):
        figure = new_figure(max(3.9 * len(cells) + 0.4, 6.4), 3.1 * len(variants) + 0.8)
        axes = figure.subplots(len(variants), len(cells), squeeze=False, sharex=True)
        for i, variant in enumerate(variants):
            for j, cell in enumerate(cells):
                ax, here = axes[i, j], [name for name in names if f"{variant}|{cell}|{name}" in data]
                for name in here:
                    steps, loss = np.array(data[f"{variant}|{cell}|{name}"], dtype=float).T
                    every = max(1, len(steps) // 6)
                    ax.plot(steps, loss, linewidth=1.5, markevery=every, **{"markersize": 5, **looks[name]})
                ax.set_visible(bool(here))
                ax.set_title(f"{cell}, {variant}")
                if i == len(variants) - 1:
                    ax.set_xlabel("optimiser steps")
                if j == 0:
                    ax.set_ylabel(f"{block} NLL per sensor")
        reach = [step for curve in data.values() for step, _ in curve]
        if max(reach) > 20 * min(reach):
            axes[0, 0].set_xscale("log")  # shared by all
        title = "Learning curves (nats per sensor and step; lower is better)"
        explain(figure, title, {name: {"markersize": 6, **looks[name]} for name in names}, max(2, 2 * len(cells)))
        return figure
