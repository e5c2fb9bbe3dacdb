"""From a described table and measured rows to a table of numbers, beside the paper's where asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jointset.bench.tables.grids import BEST_BACKBONE, BEST_NON_FILTER, GRAPH_AWARE, Grid, Measure
from jointset.bench.tables.measured import At, Measured, Summary, absence, coverage_mark
from jointset.bench.tables.model import REUSED, Column, Entry, Number, Table
from jointset.bench.tables.places import Places
from jointset.paper import where

PAPER_ALPHA = 0.1
MESSAGE = 32  # characters of an error message in a cell; the notes hold all of it
SEED_NOTE = "mean ± sample standard deviation over seeds"
MARKS = (
    "At target: joint ≥ 1 - alpha - 0.005. ↓ under it; ↑ over-coverage, joint ≥ 1 - alpha + 0.013 (where the arrows "
    "of the paper's hero tables begin; its other tables leave some such values unmarked). Best at target: * in text, "
    "bold elsewhere; second: ° in text, underlined elsewhere."
)

PAPERS_BEST = "The paper's: group+agaci on metr-la-20, per-group-factor+aci on pems-bay-50."


class Place(NamedTuple):
    """A place of the table with what was measured there."""

    at: At
    summary: Summary | None


def build(grid: Grid, measured: Measured, paper: bool) -> Table | None:
    """The table of a grid; None where there is nothing to show."""
    places = Places(grid, measured, paper)
    if not places.rows or not places.columns:
        return None
    spots = {(row, column): row.joined(column) for row in places.rows for column in places.columns}
    found = {key: Place(at, places.find(at)) for key, at in spots.items()}
    ranks = _ranks(grid, [*found.values()])
    rows = []
    for row in places.rows:
        entries = [_entries(places, found[row, column], ranks) for column in places.columns]
        rows.append((*_labels(grid, row, paper), *(entry for part in entries for entry in part)))
    columns = [Column(name, _group(key)) for key in places.columns for name in _names(grid, paper)]
    title = f"{grid.title} (protocol {measured.protocol}, alpha {measured.alpha:g})"
    notes = (*_reading(grid, [*found.values()], paper), *_told(places, found), *grid.notes)
    return Table(
        f"{grid.name}-{measured.protocol}", title, _label_names(grid, paper), tuple(columns), tuple(rows), notes
    )


# ---------------------------------------------------------------------- labels


def _label_names(grid: Grid, paper: bool) -> tuple[str, ...]:
    names = [name for name in ("cell", "seed", "method") if getattr(grid.rows[0], name) is not None]
    return (*names, *(["in the paper"] if paper and "method" in names else []))


def _labels(grid: Grid, row: At, paper: bool) -> tuple[str, ...]:
    shown = {"cell": str(row.cell), "seed": str(row.seed), "method": row.label, "in the paper": paper_name(row.method)}
    return tuple(shown[name] for name in _label_names(grid, paper))


def paper_name(method: str | None) -> str:
    """A method's name in the paper, empty where it has none."""
    from jointset.paper_rows import CATALOGUE

    return next((entry.paper for entry in CATALOGUE if entry.name == method), "")


def _group(key: At) -> str:
    backbone = GRAPH_AWARE.get(str(key.backbone), f"{key.backbone} backbone")
    method = key.label if key.method else ""
    return ", ".join(filter(None, (method, key.cell or "", backbone if key.backbone else "")))


def _names(grid: Grid, paper: bool) -> list[str]:
    names = []
    for measure in grid.measures:
        names.append(measure.title)
        if paper and measure.printed:
            names.append(f"paper {measure.title}")
            if measure.difference:
                names.append("diff %" if measure.difference == "relative" else "diff")
    return names


# ---------------------------------------------------------------------- numbers


def _entries(places: Places, place: Place, ranks: dict[At, str]) -> list[Entry]:
    """Entries of all measures at one place; where nothing was measured, the first says why."""
    entries: list[Entry] = []
    printed = places.printed(place.at) if places.paper else {}
    for i, measure in enumerate(places.grid.measures):
        ours = _ours(places, place, measure, ranks)
        if i == 0 and ours is None:
            entries.append(_absent(places, place))
        else:
            entries.append(ours)
        if places.paper and measure.printed:
            entries.append(_theirs(printed, measure.printed))
            if measure.difference:
                entries.append(_difference(ours, printed.get(measure.printed), measure.difference))
    return entries


def _ours(places: Places, place: Place, measure: Measure, ranks: dict[At, str]) -> Number | None:
    at, summary = place
    if summary is None:
        return None
    if measure.key in ("versus_static", "volume_versus_static"):
        return _versus(places, place, measure)
    number = summary.number(measure.key, measure.digits, at.seed)
    if number is None:
        return None
    mark = summary.mark(at.seed) if measure.key == "joint" else ""
    rank = ranks.get(at, "") if measure.key == places.grid.rank_key else ""
    suffix = f" ({summary.backbone})" if at.backbone == BEST_BACKBONE and measure.key == places.grid.rank_key else ""
    if measure.key == "joint" and summary.note:
        suffix = REUSED
    return number._replace(mark=mark, rank=rank, suffix=suffix)


def _versus(places: Places, place: Place, measure: Measure) -> Number | None:
    """Relative width or difference of log mean volumes against the static covariance on the same cell and seeds."""
    static = places.measured.find(place.at._replace(method="static", backbone=None, variant=None))
    relative = measure.key == "versus_static"
    key = "width_full" if relative else "log_mean_volume"
    if static is None or place.summary is None or place.at.method == "static":
        return None
    both = place.summary.seeds.keys() & static.seeds.keys()  # seeds may be other sensors
    ours, theirs = (one.only(both).number(key, seed=place.at.seed) for one in (place.summary, static))
    if ours is None or theirs is None:
        return None
    change = 100 * (ours.value / theirs.value - 1) if relative else ours.value - theirs.value
    return Number(change, None, measure.digits, signed=True)


def _theirs(printed: dict[str, str], key: str) -> Entry:
    """A printed number with the decimals it is printed with."""
    if key not in printed:
        return f"{printed['width_marginal']} (marg)" if key == "width" and "width_marginal" in printed else None
    number = Number(float(printed[key]), None, decimals(printed[key]))
    if key == "joint":
        return number._replace(mark=coverage_mark(number.value, PAPER_ALPHA))
    if key == "width" and "std" in printed:
        return number._replace(spread=float(printed["std"]), spread_digits=decimals(printed["std"]))
    return number._replace(suffix=f" ({printed['backbone']})") if "backbone" in printed else number


def decimals(text: str) -> int:
    """Decimals of a number as printed.

    >>> decimals("3.60"), decimals("14")
    (2, 0)
    """
    return len(text.partition(".")[2])


def _difference(ours: Number | None, printed: str | None, kind: str) -> Number | None:
    """Ours less theirs: in per cent of theirs, or as it is."""
    if ours is None or printed is None:
        return None
    theirs = float(printed)
    if kind == "relative":
        return Number(100 * (ours.value / theirs - 1), None, 1, signed=True)
    return Number(ours.value - theirs, None, 3, signed=True)


def _absent(places: Places, place: Place) -> Entry:
    """Why there is no number at a place."""
    at, summary = place
    if summary is not None and summary.failed:
        message = summary.failed.get(at.seed) if at.seed is not None else next(iter(summary.failed.values()))
        return f"failed: {shortened(str(message))}"
    if places.none_at_target(at):
        return "none at target"
    return absence(str(at.cell)) if places.paper else None


def shortened(message: str) -> str:
    """A message short enough for a cell of a table."""
    return message if len(message) <= MESSAGE else message[: MESSAGE - 1].rstrip() + "…"


# ---------------------------------------------------------------------- ranks and notes


def _ranks(grid: Grid, places: list[Place]) -> dict[At, str]:
    """Best and second at target among places that agree in the fields the grid names."""
    ranks: dict[At, str] = {}
    if not grid.ranked:
        return ranks
    groups: dict[tuple[object, ...], list[Place]] = {}
    for place in places:
        if place.summary is not None and place.summary.at_target(place.at.seed):
            alike = tuple(getattr(place.at, field) for field in grid.ranked)
            groups.setdefault((*alike, place.at.limit_steps or 0), []).append(place)  # a quick look is another test
    for members in groups.values():
        sized = [(one.summary.number(grid.rank_key, seed=one.at.seed), one.at) for one in members if one.summary]
        ordered = sorted(((number.value, at) for number, at in sized if number is not None), key=lambda pair: pair[0])
        for (_, at), rank in zip(ordered if len(ordered) > 1 else [], ("best", "second"), strict=False):
            ranks[at] = rank
    return ranks


def _reading(grid: Grid, places: list[Place], paper: bool) -> list[str]:
    """How to read the numbers."""
    counts = sorted({len(place.summary.seeds) for place in places if place.summary and place.at.seed is None} - {0})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else ""
    lines = [f"Ours: {SEED_NOTE} ({seeds} seed{'s' * (seeds != '1')})."] if seeds else []
    if paper:
        lines.append(
            f"Paper: {where(grid.name)}. Difference: ours less the paper's, in per cent of it where it says %."
        )
    return [*lines, *([MARKS] if grid.ranked else [])]


def _told(places: Places, found: dict[tuple[At, At], Place]) -> list[str]:
    """Notes on what failed, what was cut short, which row is the best one, and what is to be known of rows."""
    failed, cut, best = [], set(), []
    notes = notes_on((f"{at.label} on {at.cell}", one.note) for at, one in found.values() if one is not None)
    for at, summary in found.values():
        if summary is None:
            continue
        seeds: dict[str, list[str]] = {}
        for seed, message in summary.failed.items():
            if at.seed in (None, seed):
                seeds.setdefault(message, []).append(str(seed))
        for message, of in seeds.items():
            which = f"seed{'s' * (len(of) > 1)} {', '.join(of)}"
            failed.append(f"{at.method} on {at.cell}, {which}, failed: {message}")
        if at.limit_steps:
            cut.add(f"{at.method}: a quick look, cut to {at.limit_steps} steps.")
        if at.method == BEST_NON_FILTER:
            best.append(f"{places.best_non_filter(at)} on {at.cell}")
    several = "; ".join(dict.fromkeys(best))
    told = [f"Best non-filter row at target: {several}. {PAPERS_BEST}"] if several else []
    return [*told, *dict.fromkeys(failed), *sorted(cut), *notes]


def notes_on(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A footnote for every note, with the rows that it is of."""
    of: dict[str, list[str]] = {}
    for name, note in rows:
        of.setdefault(note, []).append(name)
    return [f"{REUSED} {note}: {', '.join(dict.fromkeys(names))}." for note, names in of.items() if note]
