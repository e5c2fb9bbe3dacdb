"""The notebooks are those of their scripts, every cell runs, and the last one draws."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
SPEC = importlib.util.spec_from_file_location("tutorials_make", FOLDER / "make.py")
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)

SCRIPTS = sorted({*FOLDER.glob("*.py")} - {FOLDER / "make.py"})


def cells(notebook: Path) -> list[tuple[str, str]]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in content["cells"]]


def test_there_are_four():
    assert len(SCRIPTS) == len([*FOLDER.glob("*.ipynb")]) == 4


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_ends_in_a_picture(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    written = cells(script.with_suffix(".ipynb"))
    assert written == make.cells_of(script.read_text(encoding="utf-8")), "python docs/tutorials/make.py"
    shown, pictures = make.run_cells(written)
    assert len(pictures) == len([*FOLDER.glob(f"{script.stem}-*.png")])
    assert [one["output_type"] for one in shown[-1]] == ["display_data"]
    printed = [one for outputs in shown for one in outputs if one["output_type"] == "stream"]
    assert len(printed) >= 2


def test_cells_are_cut_where_the_script_says():
    script = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1\n\n\n# %%\nprint(x)  # %% not here\n"
    found = make.cells_of(script)
    assert found == [("markdown", "# Title\n\nWords."), ("code", "x = 1"), ("code", "print(x)  # %% not here")]
    (_, _, (said,)), _ = make.run_cells(found)
    assert said["text"] == ["1\n"]
