"""Cells: a data set, a number of sensors and a protocol by name, ready to fit; any file of readings likewise.

`metr-la-20` is METR-LA cut to 20 sensors, `metr-la` all of them, `grssf-b-60` a simulated network, and
`file:PATH?n=20&graph=edges.csv` a file of your own. Whatever was repaired or approximated stands in the cell's notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jointset.contracts import Array
from jointset.datasets.notes import graph_notes, reading_notes, time_notes
from jointset.datasets.origins import Source, Treatment, file_source, named_source
from jointset.datasets.preprocess import Missing, Preprocess, Repairs, without_sentinels
from jointset.datasets.protocols import Protocol, block_slices, choose_sensors, default_protocol, protocol_named
from jointset.errors import require, require_known
from jointset.graph import is_symmetric, symmetrize, without_loops
from jointset.inputs.adjacency import correlation_knn, haversine_kernel, road_kernel
from jointset.inputs.fleet import Notice, without_dead
from jointset.inputs.graph_files import read_graph
from jointset.panel import Panel

RULES = ("source", "knn", "haversine", "road", "none")


@dataclass(frozen=True, eq=False)
class Cell:
    """Readings ready to fit, with everything that was done to them.

    panel: preprocessed readings of the chosen sensors, their graph attached · raw: the same sensors and steps in
    physical units, as the source gives them · blocks: steps of train, validation (`table`: pilot; `fit`: none),
    calibration and test, in time order · repairs: what preprocessing did to each block · notes: what a user should
    know.
    """

    name: str
    protocol: str
    seed: int
    panel: Panel
    raw: Panel = field(repr=False)
    blocks: Mapping[str, slice]
    preprocess: Preprocess = field(repr=False)
    repairs: Mapping[str, Repairs] = field(repr=False)
    notes: tuple[str, ...] = ()
    unit: str = ""

    @property
    def scale(self) -> Array:
        """Standard deviation (N,) of every sensor's readings in the training block, in physical units."""
        train = self.blocks["train"]
        return np.nanstd(np.where(self.observed(train), self.raw.values[train], np.nan), axis=0)

    def observed(self, steps: slice) -> Array:
        """Which readings of these steps are the source's own (T, N): neither missing nor filled in."""
        values = self.raw.values[steps]
        return ~(np.isnan(values) | np.isin(values, self.preprocess.sentinels))

    @property
    def scaled(self) -> bool:
        """Whether the panel is in the units that filters and means are fitted in; else predictors standardise."""
        return self.protocol != "fit"

    @property
    def fitting(self) -> Panel:
        """The training block in the units that filters and means are fitted in."""
        if self.scaled:
            return self.train
        shift, scale = self.train.level_and_scale()
        return self.train.with_values((self.train.values - shift) / scale)

    def block(self, name: str) -> Panel:
        """The preprocessed readings of one block."""
        require_known(name, self.blocks, f"no block {name!r} in protocol {self.protocol}")
        return self.panel[self.blocks[name]]

    @property
    def train(self) -> Panel:
        """The training block."""
        return self.block("train")

    @property
    def calibration(self) -> Panel:
        """The calibration block."""
        return self.block("calibration")

    @property
    def test(self) -> Panel:
        """The test block, cut as the protocol says."""
        return self.block("test")


def cell(
    name: str,
    protocol: str | None = None,
    seed: int = 0,
    missing: Missing | None = None,
    *,
    graph: str | Path | None = None,
    sentinels: Sequence[float] | None = None,
) -> Cell:
    """The cell of a name; `graph` (a rule of RULES or a file) and `sentinels` replace those of the data set.

    protocol: `text`, `table` or `fit` (see `jointset.datasets.protocols`); by default `fit` for a file, else `text`.

    `file:PATH?key=value&...` reads any file: n (sensors to keep), graph, missing, layout, time (the column), sentinels
    (`-99,-1`), log (yes), directed (yes), drop (a sensor to leave out; may be given again), drop_dead (yes: leaves out
    what is constant or empty in training), ignore_unknown (yes: leaves out edges to sensors without readings), rename
    (a CSV file of old,new) and day_first (yes).
    `missing="mask"` leaves gaps in, zeros of traffic speeds among them.

    >>> small = cell("grssf-a-30")
    >>> small.panel.n_sensors, [*small.blocks], small.test.T
    (30, ['train', 'validation', 'calibration', 'test'], 800)
    """
    require(seed >= 0, f"the seed must be a whole number >= 0, got {seed}")
    own_file = name.startswith("file:")
    source = file_source(name) if own_file else named_source(name, seed)
    replaced: dict[str, Any] = {} if graph is None else {"graph": str(graph)}
    if sentinels is not None:
        replaced["sentinels"] = tuple(sentinels)
    source = source._replace(treatment=source.treatment._replace(**replaced))
    name = name if own_file else name.strip().lower()
    return build_cell(source, name, protocol or default_protocol(name), seed, source.missing or missing)


def build_cell(source: Source, name: str, protocol: str, seed: int, missing: Missing | None = None) -> Cell:
    """Choose sensors, preprocess, attach the graph, split; gaps are filled in the paper's protocols, else left open."""
    rules, treatment = protocol_named(protocol), source.treatment
    require(
        rules.printed or missing != "fill",
        f"protocol {protocol} leaves gaps as they are: leave missing=fill out, or ask for protocol text",
    )
    zeros = treatment.zeros and missing == "mask"
    missing = missing or ("fill" if rules.printed else "mask")
    panel = _without_codes(source.panel, treatment.sentinels)
    blocks = block_slices(rules, panel)
    told = [*source.notes]
    if treatment.drop_dead:
        panel = without_dead(panel, panel[blocks["train"]], told.append)
    n = panel.n_sensors if source.n is None else source.n
    require(n <= panel.n_sensors, f"{panel.n_sensors} sensors are left, n={n} asks for more: lower n")
    chosen = np.arange(n) if n == panel.n_sensors else choose_sensors(rules, panel, n, seed, treatment.by)
    graphed = _with_fixed_graph(source.panel, treatment, told.append)
    raw = graphed if n == graphed.n_sensors else graphed.select([panel.sensors[i] for i in chosen])
    del panel, graphed

    ends = [block.stop for block in blocks.values()]
    codes = (*treatment.sentinels, *((0.0,) if zeros else ()))
    if treatment.prepared:
        steps = Preprocess.identity(raw.sensors)
    else:
        options: dict[str, Any] = {"missing": missing, "log": treatment.log, "scale": rules.printed}
        steps = Preprocess.fit(raw[blocks["train"]], sentinels=codes, **options)
    values = steps.apply(raw.values, ends)
    values.flags.writeable = False  # so that the panel need not copy it
    prepared = raw.with_values(values)
    prepared, graph_told = _with_symmetric_graph(prepared, blocks["train"], treatment, rules)
    repairs = dict(zip(blocks, steps.repairs(raw.values, ends), strict=False))
    notes = (
        *told,
        *time_notes(raw),
        *reading_notes(raw, repairs, blocks, steps, zeros=treatment.zeros),
        *graph_told,
    )
    raw = raw.with_graph(prepared.adjacency)
    kept = MappingProxyType(blocks), steps, MappingProxyType(repairs)
    return Cell(name, protocol, seed, prepared, raw, *kept, notes, source.unit)


# ---------------------------------------------------------------------- graph


def _with_fixed_graph(panel: Panel, treatment: Treatment, notice: Notice) -> Panel:
    """The panel of all sensors with the graph that needs no readings: its own, a file's, or a kernel of places."""
    rule = treatment.graph
    if rule in (None, "source"):
        require(rule is None or panel.adjacency is not None, f"the source has no graph: choose {', '.join(RULES[1:])}")
        return panel
    if rule in ("knn", "none"):
        return panel.with_graph(None)
    if rule == "road":
        require(panel.distances is not None, "graph=road needs road distances, the source has none: use graph=knn")
        return panel.with_graph(road_kernel(np.asarray(panel.distances)), directed=True)
    if rule == "haversine":
        require(panel.coordinates is not None, "graph=haversine needs coordinates, the source has none: use graph=knn")
        return panel.with_graph(haversine_kernel(np.asarray(panel.coordinates)))
    assert rule is not None
    require(
        Path(rule).suffix != "" or Path(rule).exists(),
        f"unknown graph rule {rule!r}: choose one of {', '.join(RULES)}, or give a file",
    )
    options: dict[str, Any] = {"directed": treatment.directed, "fleet": treatment.fleet, "notice": notice}
    adjacency = read_graph(Path(rule).expanduser(), panel.sensors, **options)
    return panel.with_graph(adjacency, directed=True)


def _with_symmetric_graph(
    panel: Panel, train: slice, treatment: Treatment, rules: Protocol
) -> tuple[Panel, tuple[str, ...]]:
    """The preprocessed panel with its final graph, symmetric, in a paper's protocol without self loops; notes on it."""
    rule = treatment.graph or ("source" if panel.adjacency is not None else "knn" if rules.printed else "none")
    if rule == "knn":
        panel = panel.with_graph(correlation_knn(panel.values[train]))
    directed = False
    if panel.adjacency is not None:
        A = panel.adjacency
        directed = not is_symmetric(A)
        adjacency = symmetrize(A) if directed or rules.printed else A
        panel = panel.with_graph(without_loops(adjacency) if rules.printed else adjacency)
    return panel, graph_notes(panel, rule, directed=directed)


def _without_codes(panel: Panel, codes: Sequence[float]) -> Panel:
    """The panel with sentinel codes as gaps; the panel itself where there are none."""
    if not any((panel.values == code).any() for code in codes):
        return panel
    return panel.with_values(without_sentinels(panel.values, codes))
