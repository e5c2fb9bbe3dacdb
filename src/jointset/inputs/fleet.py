"""A fleet that changed: columns renamed, left out or new, by one set of rules for files and live rows.

Columns are first renamed, then those to drop are left out, then the rest is matched with the sensors of the model where
there is one. A sensor without a column counts as missing in every row. A column that the model does not know is
refused, or ignored where that is asked for. What was done is told.
"""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jointset.errors import InputError, require, some, suggest
from jointset.support.files import existing_file, naming, text_rows

if TYPE_CHECKING:
    from jointset.panel import Panel

LISTED = 20  # names a notice shows
Notice = Callable[[str], None]


class Fleet(NamedTuple):
    """What is to be done with columns before they are read."""

    rename: Mapping[str, str] = {}  # columns called by the key are read as the value
    drop: tuple[str, ...] = ()  # names, before or after renaming
    ignore_unknown: bool = False
    left_out: tuple[str, ...] = ()  # of the model, when it was fitted: ignored where they come, with one notice

    def called(self, name: str) -> str | None:
        """What a column is read as; None where it is left out."""
        new = self.rename.get(name, name)
        return None if name in self.drop or new in self.drop else new


AS_IT_IS = Fleet()


def warn(text: str) -> None:
    """A notice as a warning: what functions do that are given no other way to tell."""
    warnings.warn(text, stacklevel=3)


def read_renames(path: str | Path) -> dict[str, str]:
    """New names by the old ones, from a CSV file of two columns, old and new; a header `old,new` may be there."""
    path = existing_file(path)
    names: dict[str, str] = {}
    with naming(path):
        for line, cells in text_rows(path):
            require(len(cells) == 2, f"line {line} has {len(cells)} cells: write old,new")
            old, new = (cell.strip() for cell in cells)
            if not names and (old.lower(), new.lower()) == ("old", "new"):
                continue
            require(old != "" and new != "", f"line {line} lacks a name: write old,new")
            require(names.get(old, new) == new, f"line {line} gives {old!r} a second name: keep one")
            names[old] = new
        require(bool(names), "only a header, no names: write lines old,new")
    return names


def names_listed(texts: Sequence[str]) -> tuple[str, ...]:
    """Names of comma-separated lists; one that holds a comma stands in double quotes.

    >>> names_listed(["a, b", '"c,d"'])
    ('a', 'b', 'c,d')
    """
    cells = (cell.strip() for row in csv.reader(texts, skipinitialspace=True) for cell in row)
    return tuple(dict.fromkeys(filter(None, cells)))


def kept_columns(names: Sequence[str], fleet: Fleet, notice: Notice) -> dict[int, str]:
    """What the columns are read as that are not left out, by place; a rename or drop that meets no column is told."""
    there = {*names, *(fleet.rename.get(name, name) for name in names)}
    unmet = [name for name in fleet.drop if name not in there]
    if unmet:
        notice(f"nothing to drop, no column is called {some(unmet, LISTED)}")
    if fleet.rename and not any(name in fleet.rename for name in names):
        notice("nothing to rename, no column has one of the old names")
    kept = {i: new for i, name in enumerate(names) if (new := fleet.called(name)) is not None}
    twice = [name for name, count in Counter(kept.values()).items() if count > 1]
    if twice:
        several = [names[i] for i, name in kept.items() if name == twice[0]]
        raise InputError(f"duplicated sensor {twice[0]!r} (columns {some(several)}): name every sensor once")
    require(bool(kept), f"all columns are left out ({some(names)}): keep at least one")
    return kept


def match_columns(names: Sequence[str], sensors: Sequence[str], fleet: Fleet, notice: Notice) -> dict[int, int]:
    """Place in the model of every column that counts, by its own place."""
    place = {name: i for i, name in enumerate(sensors)}
    kept = kept_columns(names, fleet, notice)
    strange = [name for name in kept.values() if name not in place]
    unknown = [name for name in strange if name not in fleet.left_out]
    if unknown and not fleet.ignore_unknown:
        raise InputError(unknown_sensor(unknown, sensors))
    found = {i: place[name] for i, name in kept.items() if name in place}
    require(bool(found), f"none of the columns ({some(names)}) is a sensor of the model: there are {some(sensors)}")
    if len(unknown) < len(strange):
        notice(ignored_as_in_fit([name for name in strange if name in fleet.left_out]))
    if unknown:
        notice(f"columns that the model does not know are ignored: {some(unknown, LISTED)}")
    absent = [name for name in sensors if place[name] not in set(found.values())]
    if absent:
        share = f"{len(absent)} of {len(sensors)} sensors"
        notice(f"{share} have no column and count as missing in every row: {some(absent, LISTED)}")
    return found


def ignored_as_in_fit(names: Sequence[str]) -> str:
    """The notice for sensors that were left out when the model was fitted."""
    return f"left out when the model was fitted, ignored: {some(names, LISTED)}"


def unknown_sensor(unknown: Sequence[str], sensors: Sequence[str]) -> str:
    """The message for names that the model does not know."""
    more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    advice = "--ignore-unknown leaves out what the model does not know, --rename FILE gives other names"
    return f"unknown sensor {unknown[0]!r}{more}: {suggest(unknown[0], sensors, advice)}"


def without_dead(panel: Panel, train: Panel, notice: Notice) -> Panel:
    """The panel without the sensors that are constant or empty in its training rows."""
    dead = train.constant_sensors()
    if not dead:
        return panel
    notice(f"left out, constant or empty in the {len(train):,} training rows: {some(dead, LISTED)}")
    return panel.drop(dead)
