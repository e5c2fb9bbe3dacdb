"""Result rows gathered for the report: one group a method and setting with its seeds inside, one panel a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from jointset.bench.results import SPENT, UNIT
from jointset.bench.tables.measured import coverage_mark
from jointset.catalogue import TABLE, bare
from jointset.contracts import Array
from jointset.datasets.protocols import default_protocol
from jointset.paper_rows import CATALOGUE

METRICS = (
    *("joint", "worst_window", "worst_hour", "gap_100_p90", "off_30", "longest_misses"),
    *("width", "width_full", "log_volume", "log_mean_volume", "marginal", "winkler", "joint_score", "infinite_share"),
    *SPENT,
)


class Group(NamedTuple):
    """One method in one setting: `rows` its seeds that went well, `failed` those that did not, both by seed."""

    cell: str
    protocol: str
    backbone: str
    method: str
    alpha: float
    limit_steps: int
    recipe: str
    pilot: str
    rows: tuple[Mapping[str, Any], ...]
    failed: tuple[Mapping[str, Any], ...]

    def mean(self, metric: str) -> float:
        """Mean of a number over the seeds that have it; NaN where none has."""
        values = self._known(metric)
        return float(values.mean()) if len(values) else math.nan

    def spread(self, metric: str) -> float:
        """Standard deviation over seeds (n - 1); NaN where fewer than two have the number or one is infinite."""
        values = self._known(metric)
        return float(values.std(ddof=1)) if len(values) > 1 and np.isfinite(values).all() else math.nan

    def _known(self, metric: str) -> Array:
        values = np.array([row.get(metric) for row in self.rows], dtype=float)
        return values[~np.isnan(values)]

    @property
    def at_target(self) -> bool:
        """Whether mean joint coverage reaches 1 - alpha, less half a percentage point."""
        return coverage_mark(self.mean("joint"), self.alpha) != "under"

    @property
    def note(self) -> str:
        """What is to be known of its rows."""
        return next((str(row["note"]) for row in self.rows if row["note"]), "")

    @property
    def family(self) -> str:
        """static, conditional, filter or published."""
        known = TABLE.get(bare(self.method))
        return "filter" if known is None else known.family


class Panel(NamedTuple):
    """Groups that may be compared: one cell, protocol, miss rate and limit.

    name: tells the panel from all others · short: its cell, without folders · labels: tell its groups apart.
    """

    name: str
    short: str
    cell: str
    protocol: str
    alpha: float
    limit_steps: int
    groups: tuple[Group, ...]
    labels: tuple[str, ...]

    @property
    def done(self) -> list[tuple[str, Group]]:
        """The groups with at least one result, by label."""
        return [(label, group) for label, group in zip(self.labels, self.groups, strict=True) if group.rows]

    def largest(self, column: str) -> int:
        """Largest whole number of a column, such as `n` or `n_test`; 0 where nothing went well."""
        return max((int(row[column]) for group in self.groups for row in group.rows), default=0)


def panels(rows: Iterable[Mapping[str, Any]]) -> list[Panel]:
    """The panels of result rows (see `jointset.bench.results.COLUMNS`), in the order of cells and methods."""
    gathered: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        gathered.setdefault(tuple(row[key] for key in UNIT if key != "seed"), []).append(row)
    by_panel: dict[tuple[Any, ...], list[Group]] = {}
    for key, members in gathered.items():
        seeds = sorted(members, key=lambda row: row["seed"])
        went_well = tuple(row for row in seeds if row["status"] == "ok")
        failed = tuple(row for row in seeds if row["status"] != "ok")
        group = Group._make((*key, went_well, failed))
        by_panel.setdefault((group.cell, group.protocol, group.alpha, group.limit_steps), []).append(group)
    names = short_names([key[0] for key in by_panel])
    alphas, limits = {key[2] for key in by_panel}, {key[3] for key in by_panel}
    found = []
    for (cell, protocol, alpha, limit), groups in by_panel.items():
        several = len({key[1] for key in by_panel if key[0] == cell}) > 1
        marks = [protocol] if several or protocol != default_protocol(cell) else []
        marks += [f"target {100 * (1 - alpha):g} %"] if len(alphas) > 1 else []
        marks += [f"first {limit:,} steps"] if limit and len(limits) > 1 else []
        name = names[cell] + (f" ({', '.join(marks)})" if marks else "")
        groups.sort(key=lambda group: PLACE.get(group.method, len(PLACE)))
        found.append(Panel(name, names[cell], cell, protocol, alpha, limit, tuple(groups), labels(groups)))
    return found


PLACE = {entry.name: place for place, entry in enumerate(CATALOGUE)}


def labels(groups: Sequence[Group]) -> tuple[str, ...]:
    """A name for each group: its method, with backbone or recipe where the method alone does not tell them apart.

    The block of a shape is told wherever it is not the protocol's own.
    """
    named = []
    for group in groups:
        same = [other for other in groups if other.method == group.method]
        marks = [group.backbone] if len({other.backbone for other in same}) > 1 else []
        marks += [group.recipe or "default recipe"] if len({other.recipe for other in same}) > 1 else []
        marks += [f"shape from {group.pilot}"] if group.pilot else []
        named.append(f"{group.method} ({', '.join(marks)})" if marks else group.method)
    return tuple(named)


def short_names(cells: Iterable[str]) -> dict[str, str]:
    """Cells by a name fit for a title: `file:PATH?options` without its folders, unless two files share the name.

    >>> short_names(["metr-la-20", "file:/data/a.csv?graph=/data/edges.csv"])
    {'metr-la-20': 'metr-la-20', 'file:/data/a.csv?graph=/data/edges.csv': 'a.csv'}
    """
    paths = {cell: cell.removeprefix("file:").partition("?")[0] for cell in cells}
    found = {cell: PurePath(path).name or cell if cell.startswith("file:") else cell for cell, path in paths.items()}
    names = list(found.values())
    return {cell: name if names.count(name) == 1 else cell for cell, name in found.items()}


def reference(panel: Panel, group: Group) -> Group | None:
    """The static row to compare a group with: on the same backbone where there is one."""
    rows = [other for other in panel.groups if other.method == "static" and other.rows and not other.pilot]
    same = [other for other in rows if other.backbone == group.backbone]
    return next(iter(same or rows), None)
