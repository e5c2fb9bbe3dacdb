"""Tables of diagnostics: contraction rates, dependence, observability, theory audits, PIT and the two sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jointset.audits.stored import Audited
from jointset.bench.tables.build import decimals
from jointset.bench.tables.measured import absence
from jointset.bench.tables.model import Column, Entry, Number, Table
from jointset.paper import SIGMA_1, limits, printed, printed_places, printed_rows, where

SYNTHETIC = "synthetic"  # the paper's own simulated cell, which it does not describe in full
TRAFFIC = ("metr-la", "pems-bay")
RATES = ("rho_dG", "rho_DL", "rho_score", "rho_ind")


class Quantity(NamedTuple):
    """A diagnostic: its title, which is its key among the paper's numbers, where an audit keeps it, and decimals."""

    title: str
    path: str
    digits: int = 3
    key: str = ""  # among the paper's numbers, where it is not the title


class Diagnosis(NamedTuple):
    """A table with a row for every audited filter on a cell."""

    name: str
    title: str
    quantities: tuple[Quantity, ...]
    notes: tuple[str, ...] = ()


def _rates(*names: str) -> tuple[Quantity, ...]:
    return tuple(Quantity(name, f"{name}|theory.{name}") for name in names)


TAU = Quantity("tau_int", "tau_int.tau|tau_int", 1)
DIAGNOSES = (
    Diagnosis(
        "contraction",
        "Contraction rates by cell",
        _rates("sigma_1", "rho_tr", "rho_M0", "rho_snr", *RATES),
        (
            SIGMA_1,
            "The paper's measured rates are of the learned filter on traffic and of the linear one elsewhere; they "
            "stand beside ours only where the filter is the same kind.",
        ),
    ),
    Diagnosis(
        "tau-int",
        "Integrated autocorrelation time and effective calibration size",
        (
            TAU,
            Quantity("analytic", "tau_int.analytic", 1),
            Quantity("m / tau_int", "m_eff.bernstein|m_eff.m_over_tau|m_eff", 0, "m_over_tau"),
            Quantity("m_eff", "m_eff.geometric|m_eff.analytic", 0),
        ),
        ("The paper takes m = 3,500; ours is the number of calibration scores of the cell.",),
    ),
    Diagnosis(
        "observability",
        "Observability: percentiles of the response of the emitted laws to a change of state",
        tuple(Quantity(f"p{p}", f"observability.p{p}", 2) for p in (5, 10, 50, 90)),
    ),
    Diagnosis(
        "theory-audits",
        "Theory audits",
        (
            Quantity("Lipschitz mean", "lipschitz.mean"),
            Quantity("Lipschitz p50", "lipschitz.p50"),
            Quantity("Lipschitz p95", "lipschitz.p95"),
            Quantity("Lipschitz p99", "lipschitz.p99"),
            Quantity("lambda_min", "spectrum.lambda_min.min|spectrum.lambda_min", 4),
            Quantity("lambda_max", "spectrum.lambda_max.max|spectrum.lambda_max", 2),
            Quantity("condition p50", "spectrum.condition.p50|spectrum.condition", 1),
            Quantity("condition p99", "spectrum.condition.p99", 1),
            Quantity("|rho_M0 - rho_tr|", "theory.gap_rho_M0_rho_tr|theory.weighted_gap", 4),
            Quantity("trace ratio", "trace_ratio.ratio|trace_ratio", 2, "trace_ratio"),
            Quantity("plug-in joint", "plug_in.joint_difference", 4),
            Quantity("plug-in width", "plug_in.width_difference", 3),
        ),
    ),
    Diagnosis(
        "pit",
        "PIT: sensors whose values are uniform under the predicted law (Kolmogorov-Smirnov, Bonferroni)",
        (
            Quantity("sensors", "pit.sensors|pit.nodes", 0, "nodes"),
            Quantity("passing", "pit.passing|pit.pass", 0),
            Quantity("failing", "pit.failing", 0),
        ),
        ("The paper's aqi row is of 37 stations; the public data set has 12.",),
    ),
)


class Swept(NamedTuple):
    """A table with a row for every setting of a sweep."""

    name: str
    title: str
    setting: str
    settings: str  # where an audit keeps them


SWEEPS = (
    Swept("rank", "Rank of the learned covariance", "rank", "rank.ranks|rank.rank|rank.settings"),
    Swept("warmup", "Discarded warm-up steps", "t0", "warmup.t0|warmup.warmup|warmup.settings"),
)


def diagnosis_table(spec: Diagnosis, audits: Sequence[Audited], paper: bool) -> Table | None:
    """A row for every audited filter; with the paper's numbers, also those that were not run."""
    rows: list[tuple[Entry, ...]] = []
    shown = [one for one in audits if any(_measured(one, quantity) is not None for quantity in spec.quantities)]
    for one in shown:
        rows.append((one.cell, one.filter, *_pairs(spec, one, paper)))
    if paper:
        done = {(one.cell, one.kind) for one in shown}
        for row in printed_rows(spec.name):
            cell, _, filter_ = row.partition("|")
            kind = filter_ or ("gnf" if cell.startswith(TRAFFIC) else "kalman")
            if spec.name == "pit":
                kind = "gnf"
            if (cell, kind) not in done:
                rows.append((cell, kind, *_pairs(spec, Audited({"cell": cell, "filter": kind}, {}), paper)))
    if not rows:
        return None
    columns = [
        Column(name, quantity.title if paper else "")
        for quantity in spec.quantities
        for name in _names(spec, quantity, paper)
    ]
    return Table(spec.name, spec.title, ("cell", "filter"), tuple(columns), tuple(rows), _notes(spec, paper))


def _names(spec: Diagnosis, quantity: Quantity, paper: bool) -> list[str]:
    if not paper:
        return [quantity.title]
    return ["ours", "paper"] if _has_printed(spec, quantity) else ["ours"]


def _has_printed(spec: Diagnosis, quantity: Quantity) -> bool:
    key = quantity.key or quantity.title
    return any(key in printed(spec.name, row) for row in printed_rows(spec.name))


def _measured(one: Audited, quantity: Quantity) -> float | None:
    """The number of a quantity; some follow from others where an audit does not hold them."""
    found = one.number(quantity.path)
    if found is not None:
        return found
    if quantity.title == "failing":
        both = one.number("pit.sensors|pit.nodes"), one.number("pit.passing|pit.pass")
        return None if both[0] is None or both[1] is None else both[0] - both[1]
    if quantity.title == "analytic":  # (1 + rho) / (1 - rho) = m / m_eff
        both = one.number("m_eff.m"), one.number("m_eff.geometric")
        return None if both[0] is None or not both[1] else both[0] / both[1]
    if quantity.title == "|rho_M0 - rho_tr|":
        both = one.number("rho_M0|theory.rho_M0"), one.number("rho_tr|theory.rho_tr")
        return None if both[0] is None or both[1] is None else abs(both[0] - both[1])
    return None


def _pairs(spec: Diagnosis, one: Audited, paper: bool) -> Iterable[Entry]:
    """Ours and, where asked, the paper's value of every quantity."""
    for i, quantity in enumerate(spec.quantities):
        found = _measured(one, quantity)
        ours: Entry = None if found is None else Number(found, None, quantity.digits)
        if not one.audits and i == 0:
            ours = "not run" if one.cell == SYNTHETIC else absence(one.cell)
        yield ours
        if paper and _has_printed(spec, quantity):
            told = _printed(spec, one, quantity)
            yield None if told is None else Number(float(told), None, decimals(told))


def _printed(spec: Diagnosis, one: Audited, quantity: Quantity) -> str | None:
    """What the paper prints for a filter of the same kind; closed forms are of the graph, whatever the filter."""
    numbers = printed(spec.name, f"{one.cell}|{one.kind}") or printed(spec.name, one.cell)
    theirs = "gnf" if one.cell.startswith(TRAFFIC) or spec.name == "pit" else "kalman"
    if spec.name in ("contraction", "pit") and (quantity.title in RATES or spec.name == "pit") and one.kind != theirs:
        return None
    return numbers.get(quantity.key or quantity.title)


def _notes(spec: Diagnosis, paper: bool) -> tuple[str, ...]:
    told = [f"Paper: {where(spec.name)}."] if paper else []
    stated = limits(spec.name)
    if paper and stated:
        words = ", ".join(f"{key} at most {value}" for key, value in stated.items())
        told.append(f"The paper states limits in words: {words}.")
    return (*told, *spec.notes)


def ranges_table(audits: Sequence[Audited], paper: bool) -> Table | None:
    """Smallest and largest value of every rate over the audited cells."""
    rows: list[tuple[Entry, ...]] = []
    for quantity in (*_rates(*RATES), TAU):
        found = [value for one in audits if (value := one.number(quantity.path)) is not None]
        ours: list[Entry] = [Number(end(found), None, quantity.digits) if found else None for end in (min, max)]
        if not found and paper:
            ours[0] = "not run"
        told = printed("diagnostics", quantity.title)
        theirs = [Number(float(told[key]), None, decimals(told[key])) for key in ("low", "high")] if paper else []
        if found or paper:
            rows.append((quantity.title, *ours, Number(len(found), None, 0), *theirs))
    if not rows:
        return None
    columns = (*(Column(name, "ours") for name in ("from", "to", "audits")),)
    columns += (Column("from", "paper"), Column("to", "paper")) if paper else ()
    notes = (f"Paper: {where('diagnostics')}.",) if paper else ()
    return Table("diagnostics", "Diagnostics over all audited cells", ("diagnostic",), columns, tuple(rows), notes)


def sweep_table(spec: Swept, audits: Sequence[Audited], paper: bool) -> Table | None:
    """A row for every setting; the paper's numbers are of the learned filter on METR-LA-20."""
    found = {(one.cell, one.filter): swept(one, spec) for one in audits}
    volumes = {(one.cell, one.filter): _volumes(one, spec) for one in audits}
    rows: list[tuple[Entry, ...]] = [
        (*place, f"{setting:g}", *_swept(spec, place, f"{setting:g}", numbers, paper), volumes[place].get(setting))
        for place, settings in found.items()
        for setting, numbers in settings.items()
    ]
    if paper:
        for cell in printed_rows(spec.name):
            done = {
                setting for (name, filter_), s in found.items() if name == cell and "gnf" in filter_ for setting in s
            }
            gone = [place for place in printed_places(spec.name, cell) if float(place) not in done]
            rows += [(cell, "gnf", place, *_swept(spec, (cell, "gnf"), place, None, paper), None) for place in gone]
    if not rows:
        return None
    names = ("width", "paper width", "diff %", "joint", "paper joint") if paper else ("width", "joint")
    names = (*names, "log-vol")
    labels = ("cell", "filter", spec.setting)
    notes = [f"Paper: {where(spec.name)}."] if paper else []
    for one in audits:
        change = one.number(f"{spec.name}.max_relative_change")
        if change is not None:
            notes.append(f"{one.cell}, {one.filter}: the width changes by at most {100 * change:.2f} %.")
    return Table(spec.name, spec.title, labels, tuple(Column(name) for name in names), tuple(rows), tuple(notes))


def swept(one: Audited, spec: Swept) -> dict[float, tuple[float, float]]:
    """Width and joint coverage by setting; a warm-up of 1 keeps every score, which the paper calls 0."""
    settings, widths, joints = (
        one.series(path) for path in (spec.settings, f"{spec.name}.width_full", f"{spec.name}.joint")
    )
    if spec.name == "warmup":
        settings = [0.0 if setting == 1 else setting for setting in settings]
    return {s: (w, j) for s, w, j in zip(settings, widths, joints, strict=False)}


def _volumes(one: Audited, spec: Swept) -> dict[float, Entry]:
    """Log-volume by setting, where an audit holds it."""
    return {
        s: Number(v, None, 3) for s, v in zip(swept(one, spec), one.series(f"{spec.name}.log_volume"), strict=False)
    }


def _swept(
    spec: Swept, place: tuple[str, str], setting: str, numbers: tuple[float, float] | None, paper: bool
) -> tuple[Entry, ...]:
    width: Entry = absence(place[0]) if numbers is None else Number(numbers[0], None, 3)
    joint: Entry = None if numbers is None else Number(numbers[1], None, 3)
    if not paper:
        return width, joint
    told = printed(spec.name, place[0], setting) if "gnf" in place[1] else {}
    theirs = [
        Number(float(told[key]), None, decimals(told[key])) if key in told else None for key in ("width", "joint")
    ]
    change = Number(100 * (numbers[0] / float(told["width"]) - 1), None, 1, signed=True) if numbers and told else None
    return width, theirs[0], change, joint, theirs[1]
