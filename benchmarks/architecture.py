"""Draws docs/images/architecture.svg from the imports in src/: the layers, their modules, and who imports from whom.

    python benchmarks/architecture.py

The layers are those that tests/test_layers.py keeps; a test there fails when this picture is not that of the source.
"""

import sys
from collections import Counter
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from test_layers import LAYERS, imports_of, layer_of, modules

PICTURE = ROOT / "docs" / "images" / "architecture.svg"
LEFT, WIDTH, LINE, GAP = 150, 760, 17, 26


def counted() -> tuple[list[list[str]], Counter]:
    """Names of every layer, packages as one, and how many modules of a layer import from another."""
    found = modules(ROOT / "src" / "jointset")
    names: list[list[str]] = [[] for _ in LAYERS]
    pairs: Counter = Counter()
    for module, path in found.items():
        here = layer_of(module)
        shown = max((p for p in list(LAYERS.values())[here].split() if f"{module}.".startswith(f"{p}.")), key=len)
        names[here] = list(dict.fromkeys([*names[here], "jointset" if shown == "__init__" else shown]))
        pairs.update({(here, layer_of(other)) for other in imports_of(path.read_text(), found)})
    return names, pairs


def drawn() -> str:
    """The picture: a box a layer, arrows to the layers it imports from, as thick as there are modules that do."""
    names, pairs = counted()
    boxes, lines, y = [], [], 20
    edges = []
    for title, members in zip(LAYERS, names, strict=True):
        text = wrap(" · ".join(sorted(members)), 104)
        height = 30 + LINE * len(text)
        edges.append((y, y + height))
        boxes.append(
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{height}" rx="7" fill="#eef3f8" stroke="#7b93ab"/>'
        )
        boxes.append(f'<text x="{LEFT + 14}" y="{y + 21}" font-weight="bold">{escape(title)}</text>')
        for i, part in enumerate(text):
            boxes.append(f'<text x="{LEFT + 14}" y="{y + 40 + LINE * i}" fill="#333">{escape(part)}</text>')
        y += height + GAP
    for (here, other), count in sorted(pairs.items()):
        if here == other:
            continue
        start, end = sum(edges[here]) / 2, sum(edges[other]) / 2
        reach = LEFT - 18 * abs(here - other)
        style = f'fill="none" stroke="#35618e" stroke-opacity="0.55" stroke-width="{0.6 + count**0.5 / 2:.1f}"'
        lines.append(
            f'<path d="M{LEFT},{start:.0f} C{reach},{start:.0f} {reach},{end:.0f} {LEFT - 4},{end:.0f}" {style} '
            f'marker-end="url(#tip)"><title>{count} modules</title></path>'
        )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {y}" font-family="sans-serif" '
        'font-size="12.5"><defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#35618e"/></marker></defs>'
        '<rect width="100%" height="100%" fill="white"/>'
    )
    return "\n".join([head, *boxes, *lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn())
    print(PICTURE)
