"""What a benchmark has to do: cells and methods from words a user types, and the tasks that fill their rows.

A unit is one row: cell, protocol, backbone, method, seed, alpha, step limit, recipe and pilot block, of data as it is
now. A task is what is worked out together: the wraps of one base row, the geometries of one filter, all seeds that
train in one program, all rows around one learned mean that are not trained themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path

from jointset.catalogue import FILTERS, LEARNED, PUBLISHED, ROWS, TABLE, bare, without_wrap
from jointset.datasets.origins import file_parts
from jointset.datasets.protocols import default_protocol
from jointset.experiments.rows import pilot_block

OWN = "own"  # backbone of a row that has a mean of its own
LINEAR = "gpvar"  # the usual backbone
SEEDLESS = (LINEAR, "var")  # backbones that no seed changes


@dataclass(frozen=True)
class Settings:
    """What all tasks of a run share."""

    alpha: float = 0.1
    limit_steps: int = 0
    recipe: str = ""
    device: str = "cpu"
    pilot: str = ""  # block that shapes are fitted on; '': the protocol's own
    horizon: int = 0  # steps ahead that there are sets for; 0: the next one alone


@dataclass(frozen=True)
class Task:
    """Rows worked out together: every name for every seed on one cell around one mean."""

    cell: str
    protocol: str
    backbone: str
    names: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: Settings
    data: str = ""  # see `data_digest`

    @property
    def cell_seed(self) -> int:
        """Seed of the cell itself; 0 where the cell is the same for all seeds."""
        return self.seeds[0] if seeded_cell(self.cell, self.protocol) else 0

    @property
    def place(self) -> tuple[str, str, int]:
        """The cell that has to be at hand: tasks with the same one go well together."""
        return self.cell, self.protocol, self.cell_seed

    @property
    def slug(self) -> str:
        """File name without suffix: readable, and different for every other set of units."""
        bases, methods = ({*map(kind, self.names)} for kind in (without_wrap, bare))
        which = min(bases) if len(bases) == 1 else min(methods) if len(methods) == 1 else f"{len(bases)}-rows"
        seeds = f"s{self.seeds[0]}" + (f"-{self.seeds[-1]}" if len(self.seeds) > 1 else "")
        words = [self.cell.removeprefix("file:"), self.protocol, self.backbone, which, seeds]
        plain = "--".join(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-.")[-40:] for word in words)
        units = [(*unit[:-3], *filter(None, unit[-3:])) for unit in sorted(self.units)]  # the last three may be none
        return f"{plain}--{sha256(repr(units).encode()).hexdigest()[:8]}"

    @property
    def units(self) -> list[tuple]:
        """Keys of the rows, in the order of `jointset.bench.results.KEY`."""
        return [self.unit(name, seed) for seed in self.seeds for name in self.names]

    def unit(self, name: str, seed: int) -> tuple:
        """Key of one row."""
        s = self.settings
        how = (s.alpha, s.limit_steps, self.recipe_of(name), self.pilot_of(name), s.horizon)
        return (self.cell, self.protocol, self.backbone, name, seed, *how, self.data)

    def recipe_of(self, name: str) -> str:
        """The recipe, where the method is trained by one."""
        return self.settings.recipe if bare(name) in LEARNED else ""

    def pilot_of(self, name: str) -> str:
        """The block that the method's shape is fitted on, where it has one and it is not the protocol's own."""
        method = bare(name)
        if not self.settings.pilot or method not in ROWS:
            return ""
        block = pilot_block(method, self.protocol, self.settings.pilot)
        return "" if block == pilot_block(method, self.protocol) else block

    @property
    def weight(self) -> float:
        """Rough share of the work, in rows of a static method: for the order of tasks and the time left."""
        method = TABLE[bare(self.names[0])]
        training = 30.0 if self.backbone not in (OWN, *SEEDLESS) else 0.0
        each = method.cost * (len(self.seeds) if method.learned else 1)
        return training + each + 0.3 * (len(self.names) - 1)


def seeded_cell(cell: str, protocol: str) -> bool:
    """Whether a cell is another one for every seed: sensors drawn (`table`), or a simulation."""
    return protocol == "table" or cell.startswith("grssf-")


def graph_file(cell: str) -> Path | None:
    """The graph file that a file cell names."""
    from jointset.datasets.cells import RULES

    rule = file_parts(cell)[1].get("graph")
    return None if rule is None or rule in RULES else Path(rule).expanduser()


def data_digest(cell: str) -> str:
    """What tells a file cell from another of the same name: 12 digits of the SHA-256 of its file, graph and new names.

    Empty for other cells, and where a file cannot be read. Without the last two they are those of the file itself.
    """
    if not cell.startswith("file:"):
        return ""
    found = []
    try:
        own, options = file_parts(cell)
        names = Path(options["rename"]).expanduser() if "rename" in options else None
        for path in filter(None, (own, graph_file(cell), names)):
            with path.open("rb") as file:
                found.append(file_digest(file, "sha256").hexdigest())
    except OSError:
        return ""
    return (found[0] if len(found) == 1 else sha256(" ".join(found).encode()).hexdigest())[:12]


def tasks(
    cells: Iterable[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    *,
    protocols: Sequence[str | None] = (None,),
    backbones: Sequence[str] = (LINEAR,),
    settings: Settings | None = None,
    swap: bool = False,
    done: Iterable[tuple] = (),
    data: Mapping[str, str] | None = None,
) -> list[Task]:
    """Tasks that fill all rows that are not `done`, a cell after the other, the long ones first.

    Rows around a backbone run with every one of `backbones`; filters have a mean of their own, and with `swap` run
    around every backbone's mean besides. A protocol of None is the cell's default. `data`: digests of the
    cells, where they are known (`data_digest`).
    """
    settings, finished = settings or Settings(), set(done)
    planned: list[Task] = []
    for cell in cells:
        digest = data_digest(cell) if data is None else data.get(cell, "")
        for asked in protocols:
            protocol = asked or default_protocol(cell)
            whole = [
                Task(cell, protocol, mean, tuple(names), tuple(chosen), settings, digest)
                for mean, names in _means(methods, backbones, swap)
                for chosen in _together(names[0], mean, seeds, seeded_cell(cell, protocol))
            ]
            missing = [part for task in whole for part in _missing(task, finished)]
            planned += sorted(missing, key=lambda task: (task.cell_seed, -task.weight))
    return planned


def _means(methods: Sequence[str], backbones: Sequence[str], swap: bool) -> list[tuple[str, list[str]]]:
    """Backbone and names of the rows that share a fit: wraps of a base, a filter, or what a learned mean serves."""
    bases: dict[str, list[str]] = {}
    for name in methods:
        shared = bare(name) if bare(name) in FILTERS else without_wrap(name)
        bases.setdefault(shared, []).append(name)
    own = {base: names for base, names in bases.items() if base in FILTERS}
    around = bases if swap else {base: names for base, names in bases.items() if base not in own}
    groups = [(OWN, names) for names in own.values()]
    for backbone in backbones:
        apart = [base for base in around if backbone in SEEDLESS or base in LEARNED]
        groups += [(backbone, around[base]) for base in apart]
        rest = [name for base, names in around.items() if base not in apart for name in names]
        groups += [(backbone, rest)] if rest else []
    return groups


def _together(name: str, backbone: str, seeds: Sequence[int], seeded: bool) -> list[Sequence[int]]:
    """Seeds that make one task: all, where they train in one program or do not matter; else each alone."""
    method = bare(name)
    alone = seeded or method in PUBLISHED or (backbone not in (OWN, *SEEDLESS) and method not in LEARNED)
    return [[seed] for seed in seeds] if alone else [list(seeds)]


def _missing(task: Task, done: set[tuple]) -> list[Task]:
    """The task without rows that are done; several where its seeds lack different rows."""
    lacking: dict[tuple[str, ...], list[int]] = {}
    for seed in task.seeds:
        names = tuple(name for name in task.names if task.unit(name, seed) not in done)
        if names:
            lacking.setdefault(names, []).append(seed)
    return [replace(task, names=names, seeds=tuple(seeds)) for names, seeds in lacking.items()]
