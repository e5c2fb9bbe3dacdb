"""Makes the notebooks of this folder from the scripts beside them: cells, what they print, and what they draw.

Usage: `python docs/tutorials/make.py [NAME ...]`. A cell begins with `# %%`, one of text with `# %% [markdown]`.
"""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def cells_of(script: str) -> list[tuple[str, str]]:
    """Kind and source of every cell."""
    found = []
    for kind, body in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", script, re.S | re.M):
        text = re.sub(r"^# ?", "", body, flags=re.M) if kind else body
        found.append(("markdown" if kind else "code", text.strip("\n")))
    return found


def run_cells(cells: list[tuple[str, str]], name: str = "") -> tuple[list[list[dict[str, Any]]], list[bytes]]:
    """What every cell prints and draws, run one after the other in one name space; pictures are files beside it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    scope: dict[str, Any] = {"__name__": "tutorial"}
    outputs: list[list[dict[str, Any]]] = []
    pictures: list[bytes] = []
    for kind, source in cells:
        shown: list[dict[str, Any]] = []
        if kind == "code":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(source, "tutorial", "exec", dont_inherit=True), scope)
            if printed.getvalue():
                shown.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
            for number in plt.get_fignums():
                pictures.append(png_of(plt.figure(number)))
                data = {"text/html": [f'<img alt="what the cell draws" src="{name}-{len(pictures)}.png">']}
                shown.append({"output_type": "display_data", "metadata": {}, "data": data})
            plt.close("all")
        outputs.append(shown)
    return outputs, pictures


def png_of(figure: Any) -> bytes:
    """A figure as PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=80, metadata={"Software": None})
    return picture.getvalue()


def lines(text: str) -> list[str]:
    """Lines with their ends, as notebooks keep them."""
    return text.splitlines(keepends=True)


def notebook_of(cells: list[tuple[str, str]], outputs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """A notebook of format 4.5."""
    made = []
    for number, ((kind, source), shown) in enumerate(zip(cells, outputs, strict=True)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines(source)}
        made.append(cell | {"execution_count": None, "outputs": shown} if kind == "code" else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    for path in sorted(HERE.glob("*.py")):
        if path.name != "make.py" and (len(sys.argv) == 1 or path.stem in sys.argv[1:]):
            cells = cells_of(path.read_text(encoding="utf-8"))
            outputs, pictures = run_cells(cells, path.stem)
            text = json.dumps(notebook_of(cells, outputs), indent=1, ensure_ascii=False)
            path.with_suffix(".ipynb").write_text(text + "\n", encoding="utf-8")
            for number, picture in enumerate(pictures, 1):
                path.with_name(f"{path.stem}-{number}.png").write_bytes(picture)
            print(path.stem)
