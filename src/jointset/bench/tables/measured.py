"""Rows of a benchmark folder summed up over seeds and looked up by place: what was run, what failed, what cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jointset.bench.results import FIGURES, SPENT
from jointset.bench.tables.model import Number
from jointset.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SLACK = 0.005  # at target: joint >= 1 - alpha - SLACK
OVER = 0.013  # over-coverage: joint >= 1 - alpha + OVER, where the arrows of the paper's tables begin (0.913)
ROUNDING = 1e-9
QUANTITIES = (*FIGURES, *SPENT, "n", "n_test")


class At(NamedTuple):
    """A place in a table; what is None is given by the other axis."""

    method: str | None = None
    cell: str | None = None  # data set and number of sensors, as in metr-la-207
    backbone: str | None = None  # None: the row's own mean, else gpvar
    seed: int | None = None
    variant: str | None = None  # recipe of training or block of a shape, where it is not the usual one
    limit_steps: int | None = None

    def joined(self, other: At) -> At:
        """The place with what it leaves open taken from the other."""
        return other._replace(**{name: mine for name, mine in self._asdict().items() if mine is not None})

    @property
    def label(self) -> str:
        """Method with what is not default in its training, its shape or its test block."""
        told = [self.variant] if self.variant else []
        told += [f"{self.limit_steps} steps"] if self.limit_steps else []
        return f"{self.method} ({', '.join(told)})" if told else str(self.method)


class Summary(NamedTuple):
    """One method on one cell: its rows by seed, and the message of every seed that failed."""

    seeds: Mapping[int, Mapping[str, float]]
    failed: Mapping[int, str]
    alpha: float
    backbone: str
    note: str = ""  # what is to be known of the rows

    def number(self, quantity: str, digits: int = 3, seed: int | None = None) -> Number | None:
        """Mean over seeds and sample standard deviation (None where seeds do not differ), or the value of one seed."""
        if seed is not None:
            found = self.seeds.get(seed, {}).get(quantity, math.nan)
            return None if math.isnan(found) else Number(found, None, digits)
        values = np.array([row[quantity] for row in self.seeds.values()])
        values = values[~np.isnan(values)]
        if not len(values):
            return None
        mean = float(values.mean())
        varies = math.isfinite(mean) and values.max() - values.min() > 1e-12 * abs(mean)  # some rows have no seed
        spread = float(values.std(ddof=1)) if varies else None
        return Number(mean, spread, digits)

    def only(self, seeds: Iterable[int]) -> Summary:
        """The summary with these of its seeds."""
        kept = {seed: row for seed, row in self.seeds.items() if seed in {*seeds}}
        return self._replace(seeds=kept)

    def at_target(self, seed: int | None = None) -> bool:
        """Whether the mean joint coverage reaches 1 - alpha, less the slack of the paper."""
        joint = self.number("joint", seed=seed)
        return joint is not None and coverage_mark(joint.value, self.alpha) != "under"

    def mark(self, seed: int | None = None) -> str:
        """`under`, `over` or nothing, by joint coverage."""
        joint = self.number("joint", seed=seed)
        return "" if joint is None else coverage_mark(joint.value, self.alpha)


def coverage_mark(joint: float, alpha: float) -> str:
    """`under`, `over` or nothing.

    >>> coverage_mark(0.894, 0.1), coverage_mark(0.895, 0.1), coverage_mark(0.913, 0.1)
    ('under', '', 'over')
    """
    if joint >= 1 - alpha + OVER - ROUNDING:
        return "over"
    return "" if joint >= 1 - alpha - SLACK - ROUNDING else "under"


class Measured:
    """The rows of one protocol and one alpha, summed up over seeds."""

    def __init__(self, table: pd.DataFrame, protocol: str, alpha: float = 0.1) -> None:
        self.protocol, self.alpha = protocol, alpha
        kept = table[(table["protocol"] == protocol) & np.isclose(table["alpha"].astype(float), alpha)]
        self.summaries = summed(kept)

    def __contains__(self, at: At) -> bool:
        return self.find(at) is not None

    def find(self, at: At) -> Summary | None:
        """What was measured at a place; a backbone left open is the row's own mean, else gpvar."""
        names = (at.backbone,) if at.backbone else ("own", "gpvar") if has_own_mean(str(at.method)) else ("gpvar",)
        for backbone in names:
            key = (str(at.cell), backbone, str(at.method), at.variant or "", at.limit_steps or 0)
            found = self.summaries.get(key)
            if found is not None and (at.seed is None or at.seed in {*found.seeds, *found.failed}):
                return found
        return None

    def variants(self, methods: Iterable[str], places: Iterable[At]) -> list[At]:
        """Ways in which the methods were run at any of the places: variants, and quick looks where nothing else is."""
        open_places = [*places]
        found = []
        for method in methods:
            keys = {(key[3], key[4]) for key in self.summaries if key[2] == method}
            runs = [At(method, variant=variant, limit_steps=limit) for variant, limit in sorted(keys)]
            runs = [run for run in runs if any(run.joined(place) in self for place in open_places)]
            whole = [run for run in runs if not run.limit_steps]
            found += whole or runs
        return found

    def seeds(self, cell: str) -> list[int]:
        """Seeds that any method was run with on a cell."""
        return sorted({seed for key, one in self.summaries.items() if key[0] == cell for seed in one.seeds})


def summed(table: pd.DataFrame) -> dict[tuple[str, str, str, str, int], Summary]:
    """Summaries by (cell, backbone, method, variant, limit_steps), in the order of the rows; one protocol and alpha."""
    gathered: dict[tuple[str, str, str, str, int], Summary] = {}
    for row in table.to_dict("records"):
        cell = full_name(row["cell"], int(row["n"]))
        key = (cell, row["backbone"], row["method"], variant_of(row), int(row["limit_steps"]))
        one = gathered.get(key, Summary({}, {}, float(row["alpha"]), row["backbone"]))
        gathered[key] = one = one._replace(note=one.note or row["note"])
        if row["status"] == "ok":
            one.seeds[int(row["seed"])] = {name: float(row[name]) for name in QUANTITIES}  # type: ignore[index]
        else:
            one.failed[int(row["seed"])] = " ".join(str(row["error"]).split())  # type: ignore[index]
    return gathered


def variant_of(row: Mapping[Any, Any]) -> str:
    """The recipe of a learned filter, or the block of a row's shape, where it is not the usual one; no row has both.

    >>> variant_of({"recipe": "paper", "pilot": ""}), variant_of({"recipe": "", "pilot": "train"})
    ('paper', 'shape from train')
    """
    return str(row["recipe"] or (row["pilot"] and f"shape from {row['pilot']}") or "")


@cache
def has_own_mean(method: str) -> bool:
    """Whether a method's centre is its own filter's and not a backbone's."""
    from jointset.catalogue import FILTERS, bare

    return bare(method) in FILTERS


@cache
def _parts(cell: str) -> tuple[str, int | None]:
    from jointset.datasets.origins import name_parts
    from jointset.datasets.registry import names

    try:
        return name_parts(cell, names())
    except InputError:
        return cell, None


def full_name(cell: str, n: int = 0) -> str:
    """Name of a cell with its number of sensors; files keep their name.

    >>> full_name("metr-la", 207), full_name("metr-la-20", 20), full_name("ett")
    ('metr-la-207', 'metr-la-20', 'ett-7')
    """
    from jointset.datasets.registry import dataset

    if cell.startswith("file:"):
        return cell
    base, asked = _parts(cell)
    if asked is None and not n:
        try:
            n = dataset(base).shape[1]
        except InputError:
            return cell
    return f"{base}-{asked or n}"


def without_size(cell: str) -> str:
    """The data set of a cell, or its file with all options but the number of sensors.

    >>> without_size("metr-la-20"), without_size("file:my-20.csv?n=10&log=yes"), without_size("file:my-20.csv")
    ('metr-la', 'file:my-20.csv?log=yes', 'file:my-20.csv')
    """
    if not cell.startswith("file:"):
        return cell.rpartition("-")[0]
    path, _, query = cell.partition("?")
    kept = "&".join(part for part in query.split("&") if part and not part.startswith("n="))
    return f"{path}?{kept}" if kept else path


def absence(cell: str) -> str:
    """Why there is no number of a cell: its data are not here, or it was not run."""
    from jointset.datasets.registry import dataset, state

    base, n = _parts(cell)
    try:
        here, largest = state(base), dataset(base).shape[1]
    except InputError:
        return "not run"
    share = here.partition(" of ")[0]
    lacking = here != "generated" and (n or 0) > (int(share) if share.isdigit() else largest)
    return "data not available" if here == "not here" or lacking else "not run"
