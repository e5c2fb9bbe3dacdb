"""Where the readings of a cell come from: a data set by name, or a file of your own, and how they are treated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jointset.datasets.notes import data_warnings
from jointset.datasets.preprocess import Missing
from jointset.datasets.protocols import Size
from jointset.errors import InputError, require, require_known, suggest
from jointset.inputs.fleet import AS_IT_IS, Fleet, read_renames
from jointset.panel import Panel

FILE_OPTIONS = (
    *("n", "graph", "missing", "layout", "time", "sentinels", "log", "directed"),
    *("drop", "drop_dead", "ignore_unknown", "rename", "day_first"),
)
SWITCHES = ("log", "directed", "drop_dead", "ignore_unknown", "day_first")
YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class Treatment(NamedTuple):
    """How the readings of a source enter a cell."""

    graph: str | None = None  # a rule of cells.RULES or a graph file; None: the source's own graph, else knn
    by: Size = "magnitude"  # what makes a sensor one of the busiest
    log: bool = False
    sentinels: tuple[float, ...] = ()  # codes that mean missing
    zeros: bool = False  # whether 0 means missing too; only missing="mask" acts on it
    directed: bool = False  # whether the rows of an edge list are one-way
    prepared: bool = False  # simulated: the readings stay as they are
    drop_dead: bool = False  # whether sensors that are constant or empty in training are left out
    fleet: Fleet = AS_IT_IS  # how a file's sensors were renamed and dropped: a graph file may have them all


TREATMENTS = {
    "metr-la": Treatment("source", sentinels=(-99.0,), zeros=True),
    "pems-bay": Treatment("source", zeros=True),
    "aqi": Treatment("knn"),
    "elec": Treatment("knn", log=True),
    "elec-uci": Treatment("knn", log=True),
    "ett": Treatment("knn"),
    "solar": Treatment("knn"),
    "jena": Treatment("knn"),
    "loop-seattle": Treatment("knn", by="variance"),
}


class Source(NamedTuple):
    """Readings before they become a cell: all sensors, how many to keep (None: all), and how to treat them."""

    panel: Panel
    n: int | None
    treatment: Treatment
    notes: tuple[str, ...] = ()
    unit: str = ""
    missing: Missing | None = None  # what a file's options say of gaps


def named_source(name: str, seed: int) -> Source:
    """Readings of a data set by name; what its loader warns of becomes notes."""
    from jointset.datasets import registry

    base, n = name_parts(name, registry.names())
    entry = registry.dataset(base)
    if entry.generate is not None:
        told = "simulated: readings stay in their own units, in which the truth is known"
        sized = base if n is None else f"{base}-{n}"
        return Source(registry.load(sized, seed=seed), None, Treatment("source", prepared=True), (told,))
    with data_warnings() as told_by_loader:
        panel = registry.load(base)
    if n is not None and n > panel.n_sensors:
        part = f"of its {entry.shape[1]} " if panel.n_sensors < entry.shape[1] else ""
        raise InputError(f"{base} has {panel.n_sensors} {part}sensors here, not {n}: ask for {base}-{panel.n_sensors}")
    treatment = TREATMENTS.get(base, Treatment())
    codes = dict.fromkeys((*treatment.sentinels, *entry.sentinels))
    notes = tuple(filter(None, (entry.notes, *told_by_loader)))
    return Source(panel, n, treatment._replace(sentinels=tuple(codes)), notes, entry.unit)


def name_parts(name: str, known: Sequence[str]) -> tuple[str, int | None]:
    """Data set and number of sensors (None: all) of a cell's name.

    >>> name_parts("metr-la-20", ["metr-la"]), name_parts("metr-la", ["metr-la"])
    (('metr-la', 20), ('metr-la', None))
    """
    plain = name.strip().lower()
    if plain in known:
        return plain, None
    match = re.fullmatch(r"(.+)-([1-9]\d*)", plain)
    if match is None or match[1] not in known:
        raise InputError(f"unknown cell {name!r}: {suggest(plain, known, 'or file:PATH for a file of your own')}")
    return match[1], int(match[2])


def file_source(name: str) -> Source:
    """Readings of `file:PATH?options`."""
    path, options = file_parts(name)
    renames = read_renames(Path(options["rename"]).expanduser()) if "rename" in options else {}
    fleet = Fleet(renames, options.get("drop", ()), options.get("ignore_unknown", False))
    notes: list[str] = []
    reading = {"layout": options.get("layout", "auto"), "time_column": options.get("time")}
    reading["day_first"] = options.get("day_first", False)
    panel = Panel.read(path, directed=True, fleet=fleet, notice=notes.append, **reading)
    n = options.get("n")
    require(n is None or n <= panel.n_sensors, f"{path} has {panel.n_sensors} sensors, n={n} asks for more: lower n")
    keys = ("graph", "sentinels", "log", "directed", "drop_dead")
    treatment = Treatment(**{key: options[key] for key in keys if key in options}, fleet=fleet)
    return Source(panel, n, treatment, tuple(notes), missing=options.get("missing"))


def file_parts(name: str) -> tuple[Path, dict[str, Any]]:
    """Path and options of a file cell.

    >>> file_parts("file:speeds.csv?n=20&sentinels=-99,-1&log=yes")[1]
    {'n': 20, 'sentinels': (-99.0, -1.0), 'log': True}
    """
    path, _, query = name.removeprefix("file:").partition("?")
    require(path != "", "no path: write file:PATH, such as file:speeds.csv?n=20")
    options: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        key, equals, text = part.partition("=")
        require_known(key, FILE_OPTIONS, f"unknown option {key!r} of a file cell")
        require(equals == "=" and text != "", f"option {key!r} of a file cell has no value: write {key}=...")
        options[key] = (*options.get(key, ()), text) if key == "drop" else _option(key, text)
    return Path(path).expanduser(), options


def _option(key: str, text: str) -> Any:
    try:
        if key == "n":
            require(int(text) > 0, f"n={text}: ask for at least one sensor")
            return int(text)
        if key == "sentinels":
            return tuple(float(code) for code in text.split(","))
        return YES[text.lower()] if key in SWITCHES else text
    except (ValueError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        wanted = {"n": "a whole number", "sentinels": "numbers such as -99,-1"}.get(key, "yes or no")
        raise InputError(f"{key}={text} in a file cell: write {wanted}") from None
