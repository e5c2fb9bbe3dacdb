"""Renderers: one table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable
from typing import Any

from jointset.bench.tables.latex import latex
from jointset.bench.tables.model import REUSED, Entry, Number, Table
from jointset.errors import require_known

NAMED = 4  # methods named beside a message that they share
WIDE = 160  # characters of a line of text before a table is cut into blocks
ARROWS = {"over": "↑", "under": "↓", "": ""}
RANKS = {"best": "*", "second": "°", "": ""}
SUFFIXES = {"text": ".txt", "markdown": ".md", "latex": ".tex", "csv": ".csv"}


def render(table: Table, form: str) -> str:
    """The table in one of the forms of SUFFIXES, ending with a line break."""
    require_known(form, RENDERERS, f"unknown format {form!r}")
    return RENDERERS[form](table)


# ---------------------------------------------------------------------- text


def text(table: Table) -> str:
    """Columns of text under a title; wide tables go into blocks, one below the other, messages into a list below."""
    messages = _messages(table)
    table = table.only([i for i, column in enumerate(table.columns) if not column.messages])
    cells = [[_plain(entry) for entry in row] for row in table.rows]
    names = [*table.labels, *(column.name for column in table.columns)]
    widths = [max(len(name), *(len(row[i]) for row in cells), 0) + 2 for i, name in enumerate(names)]
    parts = [_text_block(block) for block in table.blocks(WIDE, widths)]
    lines = [table.title, "=" * min(len(table.title), WIDE), *"\n\n".join(parts).split("\n")]
    for note in (*messages, *table.notes):
        lines += textwrap.wrap(note, WIDE - 2, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines) + "\n"


def _messages(table: Table) -> list[str]:
    """Columns of messages as lines: each message once for a cell, with the methods it is about and how many rows."""
    first, lines = len(table.labels), []
    for i, column in enumerate(table.columns, start=first):
        rows = [row for row in table.rows if column.messages and row[i] is not None]
        about: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            method = _plain(row[first - 1])
            message = _plain(row[i]).removeprefix(f"{method.partition(' (')[0]}: ")
            about.setdefault((_plain(row[0]), message), []).append(method)
        for (cell, message), methods in about.items():
            names = [*dict.fromkeys(methods)]
            named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
            count = f", {len(methods)} rows" if len(methods) > 1 else ""
            lines.append(f"{column.name}: {cell}, {named}{count}: {message}")
    return lines


def _text_block(table: Table) -> str:
    first = len(table.labels)
    names = [*table.labels, *(column.name for column in table.columns)]
    cells = [[_plain(entry) for entry in row] for row in table.rows]
    widths = [max(len(name), *(len(row[i]) for row in cells), 0) for i, name in enumerate(names)]
    lines = [*_group_line(table, widths), "  ".join(_set(name, widths, i, first) for i, name in enumerate(names))]
    lines.append("  ".join("-" * width for width in widths))
    lines += ["  ".join(_set(cell, widths, i, first) for i, cell in enumerate(row)) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def _set(cell: str, widths: list[int], i: int, labels: int) -> str:
    return cell.ljust(widths[i]) if i < labels else cell.rjust(widths[i])


def _group_line(table: Table, widths: list[int]) -> list[str]:
    """The line above the column names; a group whose name is wider than its columns makes its last column wider."""
    first = len(table.labels)
    line = "".join(" " * (width + 2) for width in widths[:first])
    for members in table.groups():
        title = table.columns[members[0]].group
        room = sum(widths[first + i] for i in members) + 2 * (len(members) - 1)
        if len(title) > room:
            widths[first + members[-1]] += len(title) - room
            room = len(title)
        line += title.center(room, "-" if title else " ") + "  "
    return [line] if any(column.group for column in table.columns) else []


def _plain(entry: Entry) -> str:
    if not isinstance(entry, Number):
        return "-" if entry is None else entry
    shown = entry.digits_shown().replace("inf", "∞").replace("nan", "-")
    spread = f"±{entry.spread_shown()}" if entry.spread_shown() else ""
    return shown + spread + entry.suffix + ARROWS[entry.mark] + RANKS[entry.rank]


# ---------------------------------------------------------------------- Markdown


def markdown(table: Table) -> str:
    """A Markdown table under a heading; best at target in bold, second underlined."""
    names = [*table.labels, *(f"{column.group} {column.name}".strip() for column in table.columns)]
    sides = [":--"] * len(table.labels) + ["--:"] * len(table.columns)
    lines = [f"### {table.title}", "", *(_markdown_row(cells) for cells in (names, sides))]
    lines += [_markdown_row([_rich(entry) for entry in row]) for row in table.rows]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _rich(entry: Entry) -> str:
    if not isinstance(entry, Number) or not entry.rank:
        return _plain(entry)
    shown = _plain(entry._replace(rank=""))
    return f"**{shown}**" if entry.rank == "best" else f"<u>{shown}</u>"


# ---------------------------------------------------------------------- CSV


def comma_separated(table: Table) -> str:
    """All digits, one line a row; spreads and marks in columns of their own. Notes are left to the other formats."""
    columns = _columns(table)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([head for head, _, _ in columns])
    writer.writerows([_bare(row[i], part) for _, i, part in columns] for row in table.rows)
    return out.getvalue()


def _columns(table: Table) -> list[tuple[str, int, str]]:
    """Names of columns without a look of their own: where each comes from, and what it takes of a number there."""
    columns = [(name, i, "value") for i, name in enumerate(table.labels)]
    for i, column in enumerate(table.columns, start=len(table.labels)):
        name = f"{column.group} {column.name}".strip()
        numbers = [entry for entry in (row[i] for row in table.rows) if isinstance(entry, Number)]
        columns.append((name, i, "value"))
        columns += [(f"{name} sd", i, "spread")] * any(number.spread is not None for number in numbers)
        columns += [(f"{name} mark", i, "mark")] * any(_marks(number) for number in numbers)
    return columns


def as_data(table: Table) -> dict[str, Any]:
    """The table as plain data, with the columns of its CSV form: numbers are numbers, and nothing is None."""
    columns = _columns(table)

    def taken(entry: Entry, part: str) -> Any:
        if isinstance(entry, Number) and part != "mark":
            return entry.value if part == "value" else entry.spread
        return _bare(entry, part) or None

    rows = [{head: taken(row[i], part) for head, i, part in columns} for row in table.rows]
    return {"name": table.name, "title": table.title, "rows": rows, "notes": list(table.notes)}


def _bare(entry: Entry, part: str) -> str:
    if not isinstance(entry, Number):
        return (entry or "") if part == "value" else ""
    if part == "value":
        count = entry.digits == 0 and float(entry.value).is_integer()
        return "" if entry.value != entry.value else str(int(entry.value)) if count else repr(float(entry.value))
    if part == "spread":
        return "" if entry.spread is None or entry.spread != entry.spread else repr(float(entry.spread))
    return _marks(entry)


def _marks(number: Number) -> str:
    """Words for the marks of a number; `reused`: a shape fitted on the calibration rows."""
    return " ".join(filter(None, (number.rank, number.mark, "reused" if number.suffix == REUSED else "")))


RENDERERS: dict[str, Callable[[Table], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}
