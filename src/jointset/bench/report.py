"""The report of a benchmark: one HTML page that needs no network, from the folder `jointset bench` filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointset.bench.report_audits import Shown, audits_shown
from jointset.bench.report_groups import METRICS, Group, Panel, panels, reference
from jointset.bench.report_traces import EXACT, axis, by_clock, course, digits, stamped, stored_trace, stretches_for
from jointset.bench.report_words import opening, verdict
from jointset.bench.results import read_results, read_runs
from jointset.bench.tables.measured import SLACK
from jointset.contracts import Array
from jointset.errors import require
from jointset.pages.shell import render_page, write_text
from jointset.support.how_far import each, part, tell

if TYPE_CHECKING:
    import pandas as pd

PIECE = 2000  # rows taken from a table at a time
SCRIPTS = ("elements.js", "page.js", "table.js", "scales.js", "charts.js", "figures.js", "course.js")


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a results folder, by default to `report.html` in it; gives its path."""
    page = Path(folder) / "report.html" if out is None else Path(out)
    write_text(page, render(folder))
    return page


def render(folder: str | Path) -> str:
    """The page of a results folder as text."""
    with part(1, 4):
        rows = rows_of(read_results(folder))
    shown, audits = panels(rows), audits_shown(folder)
    require(bool(rows or audits), f"no finished results in {folder}: `jointset bench --out {folder}` writes them")
    with part(2, 4):
        verdicts = [verdict(panel) for panel in each(shown)]
    with part(3, 4):
        data = page_data(folder, shown, audits)
    words = {
        "opening": opening(shown),
        "verdicts": verdicts,
        "slack": 100 * SLACK,
        "audits": audits,
        "runs": [provenance(run) for run in read_runs(folder)],
        "facts": facts(rows),
        "created": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }
    return render_page("benchmark", words, SCRIPTS, data)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries."""
    pieces = [table[first : first + PIECE] for first in range(0, len(table), PIECE)]
    records = (row for piece in each(pieces) for row in piece.to_dict("records"))
    return [{str(name): value for name, value in row.items()} for row in records]


def page_data(folder: str | Path, shown: Sequence[Panel], audits: Sequence[Shown]) -> dict[str, Any]:
    """Everything the page's tables and figures show, as plain numbers and words."""
    groups = [group for panel in shown for group in panel.groups]
    found, done = Traces(folder, sum(bool(group.rows) for group in groups)), 0
    listed = []
    for place, panel in enumerate(shown):
        for label, group in zip(panel.labels, panel.groups, strict=True):
            other = reference(panel, group)
            listed.append(
                {
                    "panel": place,
                    "label": label,
                    "method": group.method,
                    "backbone": group.backbone,
                    "family": group.family,
                    "note": group.note,
                    "reached": group.at_target,
                    "reference": other is not None and other == group,
                    "mean": [digits(group.mean(metric), EXACT) for metric in METRICS],
                    "spread": [digits(group.spread(metric), EXACT) for metric in METRICS],
                    "seeds": [[row["seed"], *(digits(row[metric], EXACT) for metric in METRICS)] for row in group.rows],
                    "errors": [[row["seed"], str(row["error"] or "no message")] for row in group.failed],
                    "trace": found.add(place, group),
                }
            )
            done += 1
            tell(done, len(groups))
    return {
        "metrics": METRICS,
        "panels": [
            {
                "name": panel.name,
                "short": panel.short,
                "cell": panel.cell,
                "protocol": panel.protocol,
                "alpha": panel.alpha,
                "steps": panel.largest("n_test"),
            }
            for panel in shown
        ],
        "groups": listed,
        "traces": found.traces,
        "axes": found.axes,
        "sensors": found.sensors,
        "clocks": found.clocks,
        "audits": [{"title": audited.title, "curves": audited.curves} for audited in audits],
    }


class Traces:
    """The traces of a page. What methods of a cell share (times, names of sensors) is kept once."""

    def __init__(self, folder: str | Path, expected: int) -> None:
        self.folder, self.bins = folder, stretches_for(expected)
        self.traces: list[dict[str, Any]] = []
        self.axes: list[list[int]] = []
        self.sensors: list[list[str]] = []
        self.clocks: list[list[list[int]]] = []
        self._stored: tuple[str, dict[str, dict[str, Array]]] = ("", {})

    def add(self, panel: int, group: Group) -> int | None:
        """Place of the trace of a group's first seed that has one; None where none was stored."""
        for row in group.rows:
            trace = self._of_task(str(row["task"])).get(group.method)
            if trace is not None and {"score", "radius", "inside"} <= trace.keys():
                found = course(trace, group.alpha, self.bins)
                found |= {
                    "seed": row["seed"],
                    "panel": panel,
                    "times": stamped(trace.get("timestamps"), found["worst"]),
                }
                times = axis(trace.get("timestamps"), found["steps"], self.bins)
                found["axis"] = None if times is None else _place(self.axes, times)
                clock = by_clock(trace)
                found["clock"] = None if clock is None else clock[0] | {"rows": _place(self.clocks, clock[1])}
                names = [str(name) for name in trace.get("sensors", ())]
                found["sensors"] = _place(self.sensors, names)
                self.traces.append(found)
                return len(self.traces) - 1
        return None

    def _of_task(self, task: str) -> dict[str, dict[str, Array]]:
        if self._stored[0] != task:
            self._stored = (task, stored_trace(self.folder, task))
        return self._stored[1]


def provenance(run: Mapping[str, object]) -> dict[str, str]:
    """One invocation as words: what a dictionary holds becomes `key value, key value`."""
    words = {}
    for key, value in run.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name} {one}" for name, one in value.items() if one not in (None, ""))
        elif isinstance(value, (list, tuple)):
            value = ", ".join(map(str, value))
        if value not in (None, ""):
            words[str(key).replace("_", " ")] = str(value)
    return words


def facts(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the rows themselves say about how they were made."""
    if not rows:
        return {}
    seeds = sorted({int(row["seed"]) for row in rows})
    span = f"{seeds[0]} to {seeds[-1]}" if seeds == list(range(seeds[0], seeds[-1] + 1)) else ", ".join(map(str, seeds))
    words = {"seeds": str(seeds[0]) if len(seeds) == 1 else span}
    for key in ("version", "commit", "device"):
        words[key] = ", ".join(sorted({str(row[key]) for row in rows if row[key]}))
    started = sorted(str(row["started"]) for row in rows if row["started"])
    words["started"] = " to ".join(dict.fromkeys([*started[:1], *started[-1:]]))
    return {key: value for key, value in words.items() if value}


def _place(kept: list[Any], value: object) -> int:
    if value not in kept:
        kept.append(value)
    return kept.index(value)
