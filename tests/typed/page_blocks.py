"""The Python blocks of README and of the pages as files of a folder, for pyright.

`python tests/typed/page_blocks.py FOLDER`. Blocks of pages that take names as given become the bodies of functions that
say what these are.
"""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHORT = ("attribution", "benchmark", "horizons", "imputation", "training")  # pages that take names as given
GIVEN = """from numpy import ndarray

from jointset import JointPredictor, Panel
from jointset import StaticFilter as Walk
from jointset.contracts import Method


def example(
    predictor: JointPredictor, panel: Panel, train: Panel, calibration: Panel, test: Panel,
    y: ndarray, row: ndarray, rows: ndarray,
) -> None:
"""


def blocks_of_pages() -> dict[str, str]:
    """Files by name, a block each."""
    found = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)
        for place, block in enumerate(blocks, 1):
            name = f"{page.stem.replace('-', '_')}_{place}.py"
            found[name] = GIVEN + textwrap.indent(block, "    ") if page.stem in SHORT else block
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in blocks_of_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
