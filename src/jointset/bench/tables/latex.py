"""One table as LaTeX: booktabs rules, long tables over several pages, messages in a column of paragraphs."""

from __future__ import annotations

from jointset.bench.tables.model import Entry, Number, Table

COLUMNS = 14  # side by side; wider tables go into blocks
LONG = 40  # rows from which a table runs over pages
PARAGRAPH = "4.5cm"  # width of a column of messages
MESSAGE = 90  # characters of a message; the other formats hold all of it
SIGNS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SIGNS |= {character: f"\\{character}" for character in "&%$#_{}"}
SIGNS |= {"±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "°": r"$^\circ$", "–": "--", "∞": r"$\infty$"}
SIGNS |= {"†": r"$^\dagger$", "<": r"$<$", ">": r"$>$", "|": r"$|$", "≥": r"$\ge$", "≤": r"$\le$", "…": r"\dots{}"}


def latex(table: Table) -> str:
    """A floating table for booktabs, or a longtable; wide tables hold several blocks, one below the other."""
    blocks = table.blocks(COLUMNS, [1] * (len(table.labels) + len(table.columns)))
    return (_pages if len(table.rows) > LONG else _floating)(table, blocks)


def _floating(table: Table, blocks: list[Table]) -> str:
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table}[htbp]"]
    lines += [rf"\caption{{{escape(table.title)}}}", rf"\label{{tab:{table.name}}}"]
    lines += [r"\centering\scriptsize", r"\setlength{\tabcolsep}{3pt}"]
    tabulars = [[rf"\begin{{tabular}}{{{_sides(block)}}}", *_head(block), *_body(block)] for block in blocks]
    lines += ["\n\\\\[4pt]\n".join("\n".join([*part, r"\bottomrule", r"\end{tabular}"]) for part in tabulars)]
    if table.notes:
        notes = r" \\ ".join(escape(note) for note in table.notes)
        lines.append("\\\\[2pt]\n\\parbox{\\linewidth}{\\footnotesize " + notes + "}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _pages(table: Table, blocks: list[Table]) -> str:
    """Blocks that break between rows and repeat their head on every page; they share one number."""
    lines = [r"% needs \usepackage{booktabs,longtable}", r"\begingroup\scriptsize", r"\setlength{\tabcolsep}{3pt}"]
    title = escape(table.title)
    for i, block in enumerate(blocks):
        more = rf"\caption[]{{{title} (continued)}}\\"
        first = rf"\caption{{{title}}}\label{{tab:{table.name}}}\\"
        lines += [r"\addtocounter{table}{-1}"] if i else []
        lines += [rf"\begin{{longtable}}{{{_sides(block)}}}", more if i else first, *_head(block), r"\endfirsthead"]
        lines += [more, *_head(block), r"\endhead", r"\bottomrule", r"\endfoot", *_body(block), r"\end{longtable}"]
    if table.notes:
        lines.append("\\noindent\\footnotesize " + "\\par\\noindent\n".join(escape(note) for note in table.notes))
    return "\n".join([*lines, r"\par\endgroup"]) + "\n"


def _sides(table: Table) -> str:
    return "l" * len(table.labels) + "".join(f"p{{{PARAGRAPH}}}" if one.messages else "r" for one in table.columns)


def _head(table: Table) -> list[str]:
    """The names of groups and columns between rules."""
    first, lines = len(table.labels), [r"\toprule"]
    if any(column.group for column in table.columns):
        groups = table.groups()
        titles = [(table.columns[members[0]].group, len(members)) for members in groups]
        heads = [rf"\multicolumn{{{size}}}{{c}}{{{escape(title)}}}" for title, size in titles]
        lines.append(" & ".join([*[""] * first, *heads]) + r" \\")
        rules = [(first + members[0] + 1, first + members[-1] + 1) for members in groups]
        lines.append("".join(rf"\cmidrule(lr){{{low}-{high}}}" for low, high in rules))
    names = [*table.labels, *(column.name for column in table.columns)]
    return [*lines, " & ".join(map(escape, names)) + r" \\", r"\midrule"]


def _body(table: Table) -> list[str]:
    kinds = [*[False] * len(table.labels), *(column.messages for column in table.columns)]
    return [" & ".join(_set(*pair) for pair in zip(row, kinds, strict=True)) + r" \\" for row in table.rows]


def _set(entry: Entry, message: bool) -> str:
    """An entry; messages are cut at a word."""
    if message and isinstance(entry, str) and len(entry) > MESSAGE:
        entry = entry[:MESSAGE].rpartition(" ")[0].rstrip(" ,;:") + " …"
    if not isinstance(entry, Number):
        return "--" if entry is None else escape(entry)
    shown = entry.digits_shown().replace("inf", r"\infty").replace("nan", r"\mbox{--}")
    spread = rf"{{\scriptstyle\pm{entry.spread_shown()}}}" if entry.spread_shown() else ""
    arrow = {"over": r"\,\uparrow", "under": r"\,\downarrow", "": ""}[entry.mark]
    number = f"${shown}{spread}{arrow}$" + escape(entry.suffix)
    wrapped = {"best": r"\textbf{\boldmath " + number + "}", "second": r"\underline{" + number + "}", "": number}
    return wrapped[entry.rank]


def escape(words: str) -> str:
    """Words with the characters that LaTeX reads as commands made harmless."""
    return "".join(SIGNS.get(character, character) for character in words)
