"""Renderers: one table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable

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
    first, heads, takers = len(table.labels), [*table.labels], []  # type: tuple[int, list[str], list[tuple[int, str]]]
    takers = [(i, "value") for i in range(first)]
    for i, column in enumerate(table.columns, start=first):
        name = f"{column.group} {column.name}".strip()
        numbers = [row[i] for row in table.rows if isinstance(row[i], Number)]
        heads.append(name)
        takers.append((i, "value"))
        if any(number.spread is not None for number in numbers if isinstance(number, Number)):
            heads.append(f"{name} sd")
            takers.append((i, "spread"))
        if any(_marks(number) for number in numbers if isinstance(number, Number)):
            heads.append(f"{name} mark")
            takers.append((i, "mark"))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_bare(row[i], part) for i, part in takers] for row in table.rows)
    return out.getvalue()


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
