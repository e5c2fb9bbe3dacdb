"""Cells, methods, backbones and protocols of a benchmark from words a user types: names, groups, lists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from jointset.catalogue import FAMILIES, METHODS, TABLE, bare, without_wrap
from jointset.datasets.origins import file_parts, name_parts
from jointset.errors import InputError, require, require_known, some, suggest
from jointset.experiments.rows import PILOTS
from jointset.methods import Name, parse, require_geometry
from jointset.paper_rows import CATALOGUE
from jointset.support.extras import installed, lack_of, require_extra

TRAFFIC = ("metr-la-20", "metr-la-207", "pems-bay-50", "pems-bay-325")
CELL_GROUPS = {
    "hero": ("metr-la-20", "pems-bay-50"),
    "scale": TRAFFIC,
    "nontraffic": ("aqi-12", "elec-20", "ett-7", "solar-20", "jena-20", "loop-seattle-20"),
    "grssf": tuple(f"grssf-{track}-30" for track in "abcde"),
    "available": (),  # those of all groups whose data is here, and what is here of the others
}
METHOD_GROUPS = {
    **{
        {"filter": "filters"}.get(family, family): tuple(name for name in METHODS if TABLE[name].family == family)
        for family in FAMILIES
    },
    "adaptive": tuple(entry.name for entry in CATALOGUE if "+" in entry.name),
    "all": tuple(entry.name for entry in CATALOGUE),
}
GRID = "grid"  # every geometry and wrap of every method; `grid:NAME` of one method or group


class Chosen(NamedTuple):
    """Cells or methods to run, and a sentence for those that were left out of a group."""

    names: list[str]
    left_out: list[str]


def cells_named(text: str) -> list[str]:
    """Cells of a comma-separated list of names, groups and `file:PATH?options`.

    >>> cells_named("hero,grssf-a-60,file:speeds.csv?sentinels=-99,-1&n=5")
    ['metr-la-20', 'pems-bay-50', 'grssf-a-60', 'file:speeds.csv?sentinels=-99,-1&n=5']
    """
    return list(dict.fromkeys(name for item in _items(text) for name in _cells_of(item)))


def cells_to_run(text: str) -> Chosen:
    """Cells of a list; those that only a group asks for are left out when their data is not here."""
    named = [item for item in _items(text) if item.lower() not in CELL_GROUPS]
    kept, left_out = [], []
    for name in cells_named(text):
        lack = "" if name in named else absence(name)
        if lack:
            left_out.append(f"{name} left out: {lack}")
        else:
            kept.append(name)
    return Chosen(kept, left_out)


def absence(name: str) -> str:
    """Why a cell of a group cannot be run as the paper has it, and what to do; empty where it can."""
    from jointset.datasets import registry

    base, n = name_parts(name, registry.names())
    state = registry.state(base)
    if state in ("complete", "generated"):
        return ""
    if state == "not here":
        return f"its data is not here, `jointset data fetch {base}` gets it"
    here = state.split()[0]
    return "" if n == int(here) else f"{state} are here, {base}-{here} runs on them"


def _cells_of(item: str) -> Sequence[str]:
    from jointset.datasets import registry

    if item.startswith("file:"):
        file_parts(item)
        return [item]
    group = item.lower()
    if group == "available":
        return _available()
    if group in CELL_GROUPS:
        return CELL_GROUPS[group]
    members = (name for names in CELL_GROUPS.values() for name in names)
    known = list(dict.fromkeys([*CELL_GROUPS, *members, *registry.names()]))
    try:
        name_parts(item, registry.names())
    except InputError:
        advice = suggest(group, known, "or file:PATH for a file of yours")
        raise InputError(f"unknown cell {item!r}: {advice}") from None
    return [group]


def _available() -> list[str]:
    """Cells of all groups whose data is here; a part of a data set under the number of sensors it has."""
    from jointset.datasets import registry

    found = []
    for name in dict.fromkeys(name for names in CELL_GROUPS.values() for name in names):
        base, _ = name_parts(name, registry.names())
        state = registry.state(base)
        if state in ("complete", "generated"):
            found.append(name)
        elif state != "not here":
            found.append(f"{base}-{state.split()[0]}")
    return found


def methods_named(text: str) -> list[str]:
    """Methods of a comma-separated list of names and groups, each once and under its shortest name.

    `static` is a group; its first row alone is `static:ellipsoid`. `grid:NAME` is every geometry and wrap of a
    method or of the methods of a group, `grid` of all.

    >>> methods_named("conditional,gnf:ellipsoid+aci,static:ellipsoid")
    ['ewma', 'rolling', 'time-of-day', 'local', 'msr', 'gnf+aci', 'static']
    """
    names = [name for item in _items(text) for name in _methods_of(item.lower())]
    return list(dict.fromkeys(_checked(name) for name in names))


def methods_to_run(text: str, here: bool = True) -> Chosen:
    """Methods of a list; those that only a group asks for are left out when a package they need is not here."""
    wanted = methods_named(text)
    needed = {name: TABLE[parse(name).method].package for name in wanted} if here else {}
    lacking = {name: package for name, package in needed.items() if package and not installed(package)}
    for item in (item.lower() for item in _items(text)):
        if item not in METHOD_GROUPS and not item.startswith(GRID) and (name := _checked(item)) in lacking:
            require_extra(lacking[name], name)
    why = [lack_of(package, "their training") for package in dict.fromkeys(lacking.values())]
    told = [f"{some([*lacking])} left out: {'; '.join(why)}"] if lacking else []
    return Chosen([name for name in wanted if name not in lacking], told)


def _methods_of(item: str) -> Sequence[str]:
    """Names of one item of a list."""
    head, _, what = item.partition(":")
    if head != GRID:
        return METHOD_GROUPS.get(item, (item,))
    members = [without_wrap(name) for name in METHOD_GROUPS.get(what or "all", (what.removesuffix(":ellipsoid"),))]
    unknown = [name for name in members if name not in METHODS]
    require(not unknown, f"unknown method in {item!r}: {suggest(what, [*METHOD_GROUPS, *METHODS])}")
    return [
        base + ("" if rule == TABLE[name].rule else f"+{rule}")
        for name in dict.fromkeys(members)
        for base in (name, *(f"{name}:{other}" for other in TABLE[name].geometries[1:]))
        for rule in dict.fromkeys((*GRID_RULES, TABLE[name].rule))
    ]


GRID_RULES = ("split", "aci", "agaci", "dtaci", "pid", "auto")  # of the recorded grid; others are asked for by name


def backbones_named(text: str) -> list[str]:
    """Mean backbones of a comma-separated list."""
    from jointset.backbones import BACKBONES

    return [_known(item, tuple(BACKBONES), "mean backbone") for item in _items(text)]


def pilot_named(text: str) -> str:
    """The block that shapes are fitted on; empty for the protocol's own."""
    return _known(text, PILOTS, "pilot block") if text else ""


def protocols_named(text: str | None) -> list[str] | list[None]:
    """Protocols of a comma-separated list; None is the default of each cell."""
    from jointset.datasets.protocols import PROTOCOLS

    if text is None:
        return [None]
    return [_known(item, tuple(PROTOCOLS), "protocol") for item in _items(text)]


def _known(item: str, known: Sequence[str], what: str) -> str:
    require_known(item.lower(), known, f"unknown {what} {item!r}")
    return item.lower()


def _checked(name: str) -> str:
    """The shortest form of a name, refused unless a predictor can be made of it."""
    known = list(dict.fromkeys([GRID, *METHOD_GROUPS, *METHODS]))
    method = bare(name)
    if method not in METHODS:
        raise InputError(f"unknown method {name!r}: {suggest(method, known)}")
    parts = parse(name)
    require_geometry(parts)
    usual = TABLE[method].geometries[0]  # what a bare name means
    geometry = None if parts.geometry == usual else parts.geometry
    return str(Name(method, geometry, None if parts.wrap == TABLE[method].rule else parts.wrap))


def _items(text: str) -> list[str]:
    """Parts of a comma-separated list; commas may stand in names of files and in their options (sentinels=-99,-1)."""
    items: list[str] = []
    pieces = text.split(",")
    while pieces:
        size = next((k for k in range(len(pieces), 1, -1) if _is_file(",".join(pieces[:k]))), 1)
        part, pieces = ",".join(pieces[:size]).strip(), pieces[size:]
        if items and items[-1].startswith("file:") and "?" in items[-1] and re.match(r"[-+.\d]", part):
            items[-1] += f",{part}"
        elif part:
            items.append(part)
    require(bool(items), f"nothing named in {text!r}: give a name or a comma-separated list of names")
    return list(dict.fromkeys(items))


def _is_file(item: str) -> bool:
    path, _, options = item.strip().removeprefix("file:").partition("?")
    return item.lstrip().startswith("file:") and "," not in options and os.path.isfile(os.path.expanduser(path))
