"""docs/results.md, and the parts of README.md and docs/default.md that quote it, from docs/data/results.parquet.

    python benchmarks/results_page.py          # writes them; `make results` does this
    python benchmarks/results_page.py --check  # exit code 1 where they are not what the file gives

The prose is in benchmarks/pages/: templates in which every measured number is looked up (`row`, `best`) and every claim
that could turn false is checked (`holds`). Numbers of the audits are in docs/data/audits.json.
"""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from results_file import FILE, SINCE, read_file
from winners import MEASURE, Key, Standing, shape_of, standings, ties

from jointset.catalogue import TABLE
from jointset.methods import parse, rule_of
from jointset.paper import printed
from jointset.bench.tables.model import REUSED
from jointset.bench.tables.measured import SLACK, Summary, summed
from jointset.bench.names import GRID_RULES
from jointset.methods import FILTERS, METHODS

ROOT = Path(__file__).parents[1]
TEMPLATES, AUDITS = ROOT / "benchmarks" / "pages", ROOT / "docs" / "data" / "audits.json"
PICTURE = ROOT / "docs" / "images" / "results-headline.png"
PAGE = ROOT / "docs" / "results.md"
PARTS = {"readme": ROOT / "README.md", "default": ROOT / "docs" / "default.md"}  # pages of which some parts are made
PART = re.compile(r"(<!-- (\w+): made by `make results` -->\n).*?(<!-- end -->\n)", re.S)
REAL = ("metr-la-20", "metr-la-207", "aqi-12", "ett-7", "jena-20", "elec-20", "solar-12")
SIMULATED = tuple(f"grssf-{track}-30" for track in "abcde")
PLACES = [("table", cell) for cell in REAL[:2]] + [("text", cell) for cell in (*REAL, *SIMULATED)]
ALPHA = 0.1
MEANS = ("gpvar", "var", "gru", "transformer", "stgnn")
AUTHORS = {  # METR-LA-20, protocol `table`: what the authors' own code printed, ten seeds
    **{"static": "4.180 @ .904", "factor": "4.286 @ .915", "group+agaci": "3.457 @ .901"},
    **{"per-group-factor+aci": "4.024 @ .900", "ewma": "4.487 @ .903", "rolling": "4.571 @ .897"},
    **{"kalman": "5.086 @ .884", "gnf-node": "2.888 @ .906 (seed 0, 12 of 60 epochs)"},
    "gnf-node+aci": "2.825 @ .899 (seed 0, 12 of 60 epochs)",
}
Place = tuple[str, str]  # protocol and cell
GOALS = {  # of `default`, set before it was built: at most this width_full, log-volume, and width_full of boxes
    ("table", "metr-la-20"): (2.2, -1.1, 1.75),
    ("table", "metr-la-207"): (6.8, -0.9, 3.3),
    ("text", "metr-la-20"): (1.88, -1.15, 1.45),
    **{("text", "aqi-12"): (None, -0.48, 1.25), ("text", "ett-7"): (None, -0.22, 1.55)},
    **{("text", "jena-20"): (None, -3.3, 0.50), ("text", "elec-20"): (None, 0.03, 1.58)},
    ("text", "solar-12"): (None, -4.3, 0.24),
}
ORACLE = 0.02  # nats above the filter that has the true law
TITLES = {"log_mean_volume": "log mean volume", "width_full": "width_full"}


@dataclass(frozen=True)
class Row:
    """One method on one cell around one mean: means over its seeds, as numbers and as words."""

    method: str
    mean: str
    variant: str  # recipe of a learned filter, or block of a shape that is not the protocol's own
    summary: Summary

    @property
    def label(self) -> str:
        return f"`{self.method}`" + (f" ({self.variant})" if self.variant else "") + REUSED * bool(self.summary.note)

    @property
    def seeds(self) -> int:
        return len(self.summary.seeds)

    def number(self, quantity: str) -> float:
        found = self.summary.number(quantity)
        return float("nan") if found is None else found.value

    def words(self, quantity: str, digits: int = 3) -> str:
        """The mean, and the standard deviation over seeds where they differ."""
        found = self.summary.number(quantity)
        if found is None:
            return ""
        spread = "" if found.spread is None else f" ± {found.spread:.{digits}f}"
        return decimal(found.value, digits) + spread

    def __getattr__(self, quantity: str) -> str:
        if quantity not in ("width_full", "joint", "worst_window", "log_mean_volume", "log_volume"):
            raise AttributeError(quantity)
        return decimal(self.number(quantity))


def decimal(value: float, digits: int = 3) -> str:
    """A number as the page writes it.

    >>> decimal(-0.0001), decimal(float("-inf")), decimal(2.7685)
    ('0.000', '-∞', '2.768')
    """
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}f}".replace("-0." + "0" * digits, "0." + "0" * digits)


class Results:
    """The rows of the file, summed up by protocol and looked up by name."""

    def __init__(self, table: pd.DataFrame, runs: list[dict]) -> None:
        self.table, self.runs = table, runs
        parts = table[table["alpha"].eq(ALPHA)].groupby("protocol")
        self.summaries = {str(protocol): summed(part) for protocol, part in parts}
        self._of: dict[Place, dict[Key, Summary]] = {}
        for protocol, found in self.summaries.items():
            for key, one in found.items():
                self._of.setdefault((protocol, key[0]), {})[key] = one
        self._orders: dict[tuple[Place, str], list[Standing]] = {}

    def rows(self, place: Place) -> list[Row]:
        """All rows of a cell that went well."""
        return [Row(key[2], key[1], key[3], one) for key, one in self._of.get(place, {}).items() if one.seeds]

    def find(self, place: Place, method: str, mean: str = "", variant: str = "") -> Row | None:
        """A row; around its own mean, else the linear one, where none is named."""
        means = (mean,) if mean else ("own", "gpvar")
        default = FILTERS[parse(method).method]() if parse(method).method in FILTERS else None
        variant = variant or getattr(default, "recipe", "")
        rows = [one for one in self.rows(place) if one.method == method and one.variant == variant]
        return next((one for name in means for one in rows if one.mean == name), None)

    def row(self, place: Place, method: str, mean: str = "", variant: str = "") -> Row:
        """A row that is there."""
        found = self.find(place, method, mean, variant)
        if found is None:
            raise LookupError(f"no row {method} ({mean or 'own mean'}) of {place_name(place)} in {FILE}")
        return found

    def has(self, place: Place, *methods: str) -> bool:
        """Whether all these rows are there."""
        return all(self.find(place, method) is not None for method in methods)

    def order(self, place: Place, shape: str, kind: str = "any") -> list[Standing]:
        """Rows at target, the best first (`winners`); kind: any, learned, filter or other."""
        if (place, shape) not in self._orders:
            self._orders[place, shape] = standings(self._of.get(place, {}), place[1], place[0], shape)
        found = self._orders[place, shape]
        return [one for one in found if kind == "any" or kind in kinds(one.key[2])]

    def best(self, place: Place, shape: str = "ellipsoid", kind: str = "any") -> Row | None:
        """The winner of a cell."""
        found = self.order(place, shape, kind)
        return as_row(found[0]) if found else None

    def ratios(self, method: str, other: str, quantity: str) -> list[float]:
        """A quantity of one method over that of another, on every real cell of protocol `text` that has both."""
        cells = [cell for cell in REAL if self.has(("text", cell), method, other)]
        pairs = [(self.row(("text", cell), method), self.row(("text", cell), other)) for cell in cells]
        return [one.number(quantity) / two.number(quantity) for one, two in pairs]

    def worst(self) -> tuple[Row, Row]:
        """Of the rows at target on real cells the one with the lowest and the one with the highest worst 500 steps."""
        rows = [row for place in self.places if place[1] in REAL for row in self.rows(place)]
        kept = sorted((row for row in rows if row.summary.at_target()), key=lambda row: row.number("worst_window"))
        return kept[0], kept[-1]

    @property
    def drawn(self) -> tuple[str, ...]:
        """Simulated cells that there are rows of."""
        return tuple(dict.fromkeys(cell for _, cell in self.places if cell.startswith("grssf")))

    @cached_property
    def places(self) -> list[Place]:
        """Protocols and cells that there are rows of, in the order of the page, then all others."""
        there = {(protocol, key[0]) for protocol, found in self.summaries.items() for key in found}
        return [*(place for place in PLACES if place in there), *sorted(there - {*PLACES}, key=by_size)]


def by_size(place: Place) -> tuple[str, str, int]:
    """Order of protocols and cells: by name, then by the number of sensors.

    >>> sorted([("text", "grssf-a-120"), ("text", "grssf-a-60")], key=by_size)
    [('text', 'grssf-a-60'), ('text', 'grssf-a-120')]
    """
    protocol, cell = place
    name, _, size = cell.rpartition("-")
    return protocol, name, int(size) if size.isdigit() else 0


def kinds(method: str) -> set[str]:
    """What a row counts as: a filter (learned or not), or other."""
    base = parse(method).method
    if base not in FILTERS:
        return {"other"}
    return {"filter"} if base.startswith("kalman") else {"filter", "learned"}


def as_row(standing: Standing) -> Row:
    _, mean, method, variant, _ = standing.key
    return Row(method, mean, variant, standing.summary)


def holds(claim: bool, text: str) -> str:
    """The text, where its claim is true of the file; else the page cannot be made."""
    if not claim:
        raise ValueError(f"no longer true of {FILE.name}: {text!r}; rewrite it in {TEMPLATES}")
    return text


# ---------------------------------------------------------------------- tables


def table(titles: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    titles = [*titles]
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def place_name(place: Place) -> str:
    protocol, cell = place
    return cell if protocol == "text" else f"{cell}, `{protocol}`"


def winners_table(results: Results, shape: str) -> str:
    """The best row of every cell of the grid with its ties, and the best one without a filter."""
    lines = []
    for place in (place for place in results.places if place in PLACES):
        found = results.order(place, shape)
        if not found:
            lines.append([place_name(place), "none at target", *[""] * 7])
            continue
        best, *tied = (as_row(one) for one in ties(found))
        other = results.best(place, shape, "other")
        beside = "none at target" if other is None else f"{with_mean(other)} {other.words(MEASURE[shape])}"
        if kinds(best.method) == {"other"}:
            beside = "itself"
        sizes = (best.words(MEASURE[shape]), best.joint, best.worst_window)
        names = ", ".join(with_mean(one) for one in tied[:3]) + (f" and {len(tied) - 3} more" * (len(tied) > 3))
        lines.append([place_name(place), best.label, best.mean, best.seeds, *sizes, names, beside])
    titles = ("cell", "smallest at target", "mean", "seeds", TITLES[MEASURE[shape]], "joint", "worst 500")
    return table((*titles, "ties (within one sd)", "best without a filter"), lines)


def with_mean(row: Row) -> str:
    return row.label + (f" around {row.mean}" if row.mean not in ("own", "gpvar") else "")


def best_table(results: Results, shape: str, cells: tuple[str, ...]) -> str:
    """For every method and cell the smallest size at target over wraps and means; the smallest of a cell in bold."""
    places = [place for place in results.places if place[1] in cells]
    lines = []
    tops = {place: results.order(place, shape) for place in places}
    for method in METHODS:
        entries = []
        for place, found in tops.items():
            mine = [one for one in found if parse(one.key[2]).method == method]
            run = any(
                parse(row.method).method == method and shape_of(row.method) == shape for row in results.rows(place)
            )
            entry = decimal(mine[0].size) if mine else "–" if run else ""
            entries.append(f"**{entry}**" if mine and mine[0] is found[0] else entry)
        if any(entries):
            lines.append([f"`{method}`", *entries])
    return table(("method", *(place_name(place) for place in places)), lines)


def coverage_table(results: Results, cells: tuple[str, ...]) -> str:
    """Joint coverage and that of the worst 500 steps of every method in its usual shape without a wrap."""
    places = [place for place in results.places if place[1] in cells]
    lines = []
    for method in METHODS:
        fixed = method if TABLE[method].rule == "split" else f"{method}+split"
        found = [results.find(place, fixed) for place in places]
        entries = [
            ""
            if one is None
            else f"{mark(one)}{one.joint}{mark(one)}{REUSED * bool(one.summary.note)} / {one.worst_window}"
            for one in found
        ]
        if any(entries):
            lines.append([f"`{method}`", *entries])
    return table(("method", *(place_name(place) for place in places)), lines)


def mark(row: Row) -> str:
    return "**" if row.summary.at_target() else ""


def wraps_table(results: Results) -> str:
    """What each wrap does to the rows of real cells that were run under all: at target, worst 500 steps, size."""
    rows: dict[tuple, dict[str, Row]] = {}
    for place in results.places:
        for row in results.rows(place) if place[1] in REAL else ():
            name = parse(row.method)
            rows.setdefault((place, name._replace(wrap=None), row.mean, row.variant), {})[rule_of(name)] = row
    whole = [rules for rules in rows.values() if rules.keys() >= {*GRID_RULES}]
    lines = []
    for rule in GRID_RULES:
        kept = [rules for rules in whole if rules[rule].summary.at_target()]
        worst = pd.Series([rules[rule].number("worst_window") for rules in whole]).median()
        size = MEASURE["ellipsoid"]
        both = [rules for rules in kept if rules["split"].summary.at_target()]
        change = pd.Series([rules[rule].number(size) - rules["split"].number(size) for rules in both]).median()
        word = "none" if rule == "split" else f"`+{rule}`"
        of = f"{len(kept):,} of {len(whole):,} ({len(kept) / len(whole):.0%})" if whole else ""
        lines.append([word, of, decimal(worst), "" if rule == "split" else decimal(change)])
    return table(("wrap", "rows at target", "median of worst 500", "median change of log mean volume"), lines)


def means_table(results: Results) -> str:
    """The best row without a filter around each mean, by log mean volume."""
    real = [place for place in results.places if place[1] in REAL]
    lines = []
    for place in real:
        found = results.order(place, "ellipsoid", "other")
        tops = [next((one for one in found if one.key[1] == mean), None) for mean in MEANS]
        if sum(one is not None for one in tops) < 2:
            continue
        least = min((one for one in tops if one is not None), key=lambda one: one.size)
        words = ["" if one is None else f"{decimal(one.size)} `{one.key[2]}`" for one in tops]
        words = [f"**{word}**" if one is least else word for one, word in zip(tops, words, strict=True)]
        lines.append([place_name(place), *words])
    return table(("cell", *MEANS), lines) if lines else ""


def recipes_table(results: Results) -> str:
    """Learned filters that were trained by several recipes."""
    lines = []
    for place in results.places:
        rows = [row for row in results.rows(place) if "learned" in kinds(row.method) and row.mean == "own"]
        several = {row.method for row in rows if len({one.variant for one in rows if one.method == row.method}) > 1}
        for row in sorted(rows, key=lambda row: (row.method, row.variant)):
            if row.method in several and parse(row.method).wrap in (None, "aci"):
                sizes = [row.words(name) for name in ("log_mean_volume", "width_full", "joint")]
                lines.append([place_name(place), row.label, row.seeds, *sizes, row.worst_window])
    titles = ("cell", "filter", "seeds", "log mean volume", "width_full", "joint", "worst 500")
    return table(titles, lines) if lines else ""


def printed_table(results: Results) -> str:
    """Rows of METR-LA-20, protocol `table`, beside the paper's and the authors' code's."""
    lines = []
    for method in (*AUTHORS, "kalman-tuned", "diag-gru", "diag-gru+aci", "copula", "multidim-spci"):
        ours = results.find(("table", "metr-la-20"), method)
        theirs = printed("baselines", method, "metr-la-20")
        paper = f"{theirs['width']} @ {theirs['joint'].lstrip('0')}" if theirs else ""
        if ours is not None:
            size = f"{ours.words('width_full')} @ {ours.joint.lstrip('0')}"
            lines.append([ours.label, size, paper, AUTHORS.get(method, "")])
    return table(("METR-LA-20, `table`", "ours", "paper", "authors' code"), lines)


def cell_tables(results: Results, place: Place, rows: dict[str, int]) -> str:
    """The best rows of a cell, by shape."""
    parts = []
    for shape, count in rows.items():
        found = results.order(place, shape)
        tied = {one.key for one in ties(found)} if found else set()
        lines = []
        for standing in found[:count]:
            one = as_row(standing)
            sizes = [one.words(name) for name in ("log_mean_volume", "width_full", "joint")]
            clipped = one.number("infinite_share")
            share = f"{clipped:.1%}" if clipped else ""
            lines.append(
                [one.label + " =" * (len(tied) > 1 and standing.key in tied), one.mean, *sizes, one.worst_window, share]
            )
        titles = ("ellipsoids" if shape == "ellipsoid" else "boxes", "mean", "log mean volume", "width_full", "joint")
        parts.append(table((*titles, "worst 500", "clipped"), lines) if lines else f"No {shape} at target.")
    return "\n\n".join(parts)


def counts(results: Results, place: Place) -> str:
    """Sensors, test steps and rows of a cell in words."""
    found = results.table[results.table["protocol"].eq(place[0]) & results.table["cell"].eq(place[1])]
    fine, rows = found[found["status"].eq("ok")], results.rows(place)
    kept = sum(row.summary.at_target() for row in rows)
    words = (
        f"{fine['n'].iloc[0]} sensors, {fine['n_test'].iloc[0]:,} test steps, {len(rows):,} rows, {kept:,} at target"
    )
    return words + (f", {len(found) - len(fine):,} runs failed" if len(fine) < len(found) else "")


def runs_table(results: Results) -> str:
    """Every command with the number of rows it made, its commit, machine and day."""
    made = results.table["run"].value_counts()
    letters = {name: chr(ord("A") + i) for i, name in enumerate(machines(results))}
    merged: dict[tuple[str, str, str, str], int] = {}
    for place, run in enumerate(results.runs):
        key = (run["command"], run["commit"], letters[machine_words(run["machine"])], run["started"][:10])
        merged[key] = merged.get(key, 0) + int(made.get(place, 0))
    lines = [(f"`{command}`", f"{count:,}", *rest) for (command, *rest), count in merged.items()]
    return table(("command", "rows", "commit", "machine", "day"), lines)


def machines(results: Results) -> list[str]:
    return list(dict.fromkeys(machine_words(run["machine"]) for run in results.runs))


def machine_words(machine: dict) -> str:
    parts = [f"{machine['cores']} cores ({machine['cpu']})", *([machine["gpu"]] if machine.get("gpu") else [])]
    return ", ".join([*parts, *(f"{name} {machine[name]}" for name in ("python", "numpy", "torch") if name in machine)])


def failures(results: Results) -> list[str]:
    """Rows that failed, with their message."""
    bad = results.table[results.table["status"].ne("ok")]
    keys = ["protocol", "cell", "method", "backbone", "error"]
    groups = bad.groupby(keys, sort=False)["seed"].apply(list) if len(bad) else {}
    return [
        f"`{method}` ({mean}) on {place_name((protocol, cell))}, seeds {', '.join(map(str, seeds))}: {error}"
        for (protocol, cell, method, mean, error), seeds in groups.items()
    ]


def audits_table(audits: dict) -> str:
    lines = []
    for one in audits["rows"]:
        words = ["-" if x is None else f"{x:,.0f}" if abs(x) >= 30 else f"{x:.3g}" for x in one["values"]]
        lines.append([one["cell"], one["filter"], *words])
    return table(("cell", "filter", *audits["names"]), lines)


def default_table(results: Results) -> str:
    """Sizes of `default` under its rule and under ACI, beside the best other row at target, ellipsoids then boxes."""

    def ellipsoid(row: Row) -> str:
        return f"{row.log_mean_volume}, {row.log_volume}, {row.width_full} ({row.joint})"

    def box(row: Row) -> str:
        return f"{row.width_full} ({row.joint})"

    def other(place: Place, shape: str) -> str:
        found = next(one for one in results.order(place, shape) if parse(one.key[2]).method != "default")
        return f"{with_mean(as_row(found))} {decimal(found.size)}"

    lines = []
    for place in (place for place in PLACES if place[1] in REAL):
        words = [ellipsoid(results.row(place, f"default{rule}")) for rule in ("", "+aci")]
        boxes = [box(results.row(place, f"default:box{rule}")) for rule in ("", "+aci")]
        lines.append([place_name(place), *words, other(place, "ellipsoid"), *boxes, other(place, "box")])
    names = ("cell", "`default`", "`default+aci`", "best other", "`default:box`", "`default:box+aci`", "best other box")
    return table(names, lines)


def default_windows(results: Results) -> str:
    """Worst 500 steps, 100-step gap, lowest hour and joint score of `default` under ACI and under its rule."""
    quantities = {"worst_window": 3, "gap_100_p90": 3, "worst_hour": 3, "joint_score": 2}
    lines = []
    for place in (place for place in PLACES if place[1] in REAL):
        both = [results.row(place, f"default{rule}") for rule in ("+aci", "")]
        lowest = min(one["joint"] for one in both[1].summary.seeds.values())
        pairs = [
            ", ".join(decimal(row.number(quantity), digits) for row in both) for quantity, digits in quantities.items()
        ]
        lines.append([place_name(place), both[1].seeds, decimal(lowest), *pairs])
    titles = (
        "cell",
        "seeds",
        "lowest joint of a seed, `default`",
        "worst 500",
        "gap of 100 steps",
        "lowest hour",
        "joint score",
    )
    return table(titles, lines)


def instant_table(results: Results) -> str:
    """Sizes of `quick` under its rule and under ACI and of `var` beside the best simple row, one without a filter."""
    lines = []
    for place in (place for place in PLACES if place[0] == "text" and place[1] in REAL):
        simple = {shape: results.best(place, shape, "other") for shape in MEASURE}
        sizes = {"ellipsoid": ("quick", "quick+aci", "var+aci"), "box": ("quick:box", "quick:box+aci", "var:lean+aci")}
        cells = [place_name(place)]
        for shape, names in sizes.items():
            rows = [results.row(place, name) for name in names]
            cells += [f"{decimal(row.number(MEASURE[shape]))} ({row.joint})" for row in rows]
            other = simple[shape]
            cells.append("none" if other is None else f"{with_mean(other)} {decimal(other.number(MEASURE[shape]))}")
        lines.append(cells)
    names = ("cell", "`quick`", "`quick+aci`", "`var+aci`", "simple")
    return table((*names, "`quick:box`", "`quick:box+aci`", "`var:lean+aci`", "simple box"), lines)


def below_simple(results: Results, rule: str) -> str:
    """On which of the real cells of `text` `quick` under a rule is below the best simple row in volume and in width."""
    lost = []
    for place in (place for place in PLACES if place[0] == "text" and place[1] in REAL):
        pairs = [
            (results.row(place, f"quick{shape}{rule}"), results.best(place, kind, "other"), MEASURE[kind])
            for kind, shape in (("ellipsoid", ""), ("box", ":box"))
        ]
        if any(other is not None and row.number(of) >= other.number(of) for row, other, of in pairs):
            lost.append(place_name(place))
    return "on every cell" if not lost else f"on all cells but {', '.join(lost)}"


def since_table(results: Results, since: Results, shape: str, most: int = 8) -> str:
    """The smallest rows at target of those run again, each beside what it had in the grid on the same seeds."""
    of, lines = MEASURE[shape], []
    for place in since.places:
        for row in map(as_row, since.order(place, shape)[:most]):
            before = results.find(place, row.method, row.mean, row.variant)
            if before is None:
                continue
            seeds = row.summary.seeds.keys() & before.summary.seeds.keys()
            was, now = (sum(one.summary.seeds[seed][of] for seed in seeds) / len(seeds) for one in (before, row))
            moved = decimal(now / was) if shape == "box" else f"{now - was:+.3f}"
            lines.append([place_name(place), with_mean(row), len(seeds), decimal(was), decimal(now), moved, row.joint])
            lines[-1][-1] += f", {row.worst_window}"
    how = "ratio" if shape == "box" else "difference"
    return table(("cell", "row", "seeds", "in the grid", "now", how, "joint, worst 500"), lines)


def since_words(results: Results, since: Results) -> str:
    """How widths and coverage of the boxes that were run again have moved, seed by seed."""
    units = ["protocol", "cell", "backbone", "method", "recipe", "seed"]
    both = since.table.merge(results.table, on=units, suffixes=("", "_was"))
    both = both[both["method"].map(lambda name: shape_of(name) == "box") & both["joint"].ge(1 - ALPHA - SLACK)]
    ratio, moved = both["width_full"] / both["width_full_was"], both["joint"] - both["joint_was"]
    worst = (both["worst_window"] - both["worst_window_was"]).mean()
    return (
        f"Of {len(both)} single rows at target {100 * ratio.lt(1).mean():.1f} % are narrower, by "
        f"{100 * (1 - ratio.median()):.0f} % in the median; coverage moved by {moved.mean():+.4f} on average (standard "
        f"deviation {moved.std():.4f}), that of the worst 500 rows by {worst:+.4f}."
    )


def goals_table(results: Results, since: Results) -> str:
    """What was wanted of `default` and what it has under its rule and under ACI; bold where it was reached.

    Of the grid, then, on some cells, of rows run since.
    """

    def found(place: Place, rule: str, results: Results = results) -> str:
        row, box = results.row(place, f"default{rule}"), results.row(place, f"default:box{rule}")
        has = (row.number("width_full"), row.number("log_volume"), box.number("width_full"))
        pairs = zip(has, GOALS[place], strict=True)
        return ", ".join(bold(decimal(value), value <= goal) for value, goal in pairs if goal is not None)

    lines = []
    for place, goals in GOALS.items():
        names = zip(("width", "log-volume", "box"), goals, strict=True)
        named = ", ".join(f"{name} {decimal(goal, 2)}" for name, goal in names if goal is not None)
        again = [found(place, rule, since) if since.has(place, "default") else "–" for rule in ("", "+aci")]
        lines.append([place_name(place), named, found(place, ""), found(place, "+aci"), *again])
    for cell in ("grssf-a-30", "grssf-c-30"):
        place = ("text", cell)
        above = [
            results.row(place, f"default{rule}").number(MEASURE["ellipsoid"])
            - results.row(place, f"kalman{other}").number(MEASURE["ellipsoid"])
            for rule, other in (("", "+auto"), ("+aci", "+aci"))
        ]
        wanted = f"log mean volume above the Kalman filter with the true law {decimal(ORACLE, 2)}"
        lines.append([cell, wanted, *(bold(decimal(one), one <= ORACLE) for one in above), "–", "–"])
    return table(("cell", "at most", "`default`", "`default+aci`", "`default` now", "`default+aci` now"), lines)


def bold(word: str, reached: bool) -> str:
    return f"**{word}**" if reached else word


TABLES = (
    *(default_table, default_windows, goals_table, instant_table, below_simple),
    *(winners_table, best_table, coverage_table, wraps_table, means_table, recipes_table, printed_table),
    *(cell_tables, counts, runs_table, audits_table, since_table, since_words),
)

# ---------------------------------------------------------------------- pages


def rendered(results: Results, since: Results, name: str) -> str:
    """A template filled in."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    audits = json.loads(AUDITS.read_text())
    given = {function.__name__: function for function in (*TABLES, printed, machines, failures, holds, place_name)}
    looked_up = {"row": results.row, "has": results.has, "best": results.best, "target": f"{1 - ALPHA - SLACK:g}"}
    given |= looked_up | {"results": results, "since": since, "audits": audits, "real": REAL}
    text = environment.get_template(name).render(**given)
    return re.sub(r"\n{3,}", "\n\n", text)


def pages() -> dict[Path, str]:
    """All pages as the file gives them."""
    results, since = Results(*read_file()), Results(*read_file(SINCE))

    def part(found: re.Match) -> str:
        return found[1] + rendered(results, since, f"{found[2]}.md") + found[3]

    parts = {path: PART.sub(part, path.read_text()) for path in PARTS.values()}
    return {PAGE: rendered(results, since, "results.md")} | parts


def draw() -> None:
    """The picture of the page: methods of the paper and the node-wise filter on METR-LA, protocol `table`."""
    from jointset.paper_rows import CATALOGUE
    from jointset.bench.figures import headline

    rows = read_file()[0]
    figure = headline(rows[rows["method"].isin([entry.name for entry in CATALOGUE])], "table", REAL[:2])
    if figure is not None:
        figure.savefig(PICTURE, format="png")


def main() -> None:
    made = pages()
    if "--check" in sys.argv:
        stale = [path.name for path, text in made.items() if path.read_text() != text]
        sys.exit(f"not what {FILE.name} gives: {', '.join(stale)}; run `make results`" if stale else 0)
    for path, text in made.items():
        path.write_text(text)
    draw()


if __name__ == "__main__":
    main()
