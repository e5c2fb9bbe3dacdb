"""A table as data: rows of numbers and words under named columns, with notes; how it looks is the renderers' affair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

REUSED = "†"  # after a coverage: the shape was fitted on the calibration rows


class Number(NamedTuple):
    """A number of a table.

    spread: standard deviation over seeds · digits: decimals shown · mark: `over` or `under` the coverage asked for ·
    rank: `best` or `second` of those at target · suffix: a unit or a word after it.
    """

    value: float
    spread: float | None = None
    digits: int = 3
    mark: str = ""
    rank: str = ""
    signed: bool = False
    suffix: str = ""
    spread_digits: int | None = None  # where they are not those of the value

    def digits_shown(self) -> str:
        """The number without spread, mark and suffix; infinities as a word the renderers replace."""
        if not math.isfinite(self.value):
            return "nan" if math.isnan(self.value) else "inf" if self.value > 0 else "-inf"
        return f"{self.value:{'+' if self.signed else ''}.{self.digits}f}"

    def spread_shown(self) -> str:
        """The spread, empty where there is none."""
        if self.spread is None or not math.isfinite(self.spread):
            return ""
        return f"{self.spread:.{self.digits if self.spread_digits is None else self.spread_digits}f}"


Entry = Number | str | None  # None: nothing to say, shown as a dash


class Column(NamedTuple):
    """A column: its name, the group it stands in (a cell, a backbone), whether it holds messages of any length."""

    name: str
    group: str = ""
    messages: bool = False


@dataclass(frozen=True)
class Table:
    """A table: `labels` names the leading columns of words, `columns` the rest; every row has an entry for each."""

    name: str  # stem of its files
    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        width = len(self.labels) + len(self.columns)
        wrong = [row for row in self.rows if len(row) != width]
        assert not wrong, f"{self.name}: a row of {len(wrong[0])} entries under {width} columns"

    def blocks(self, fits: int, widths: Sequence[int]) -> list[Table]:
        """The table cut between groups of columns into blocks not wider than `fits`; labels are repeated.

        widths: of all columns, labels first.
        """
        first, cuts, used = len(self.labels), [[]], 0  # type: tuple[int, list[list[int]], int]
        left = sum(widths[:first])
        for members in self.groups():
            size = sum(widths[first + i] for i in members)
            if cuts[-1] and left + used + size > fits:
                cuts.append([])
                used = 0
            cuts[-1] += members
            used += size
        return [self.only(cut) for cut in cuts]

    def groups(self) -> list[list[int]]:
        """Numbers of the columns, those of a group together."""
        groups: list[list[int]] = []
        for i, column in enumerate(self.columns):
            if groups and column.group and self.columns[groups[-1][-1]].group == column.group:
                groups[-1].append(i)
            else:
                groups.append([i])
        return groups

    def only(self, kept: Sequence[int]) -> Table:
        """The table with these of its columns, labels kept."""
        first = len(self.labels)
        rows = tuple((*row[:first], *(row[first + i] for i in kept)) for row in self.rows)
        return Table(self.name, self.title, self.labels, tuple(self.columns[i] for i in kept), rows, self.notes)
