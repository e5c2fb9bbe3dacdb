"""The examples of docs/extending.md run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=["filter", "rule", "data set"])
def test_an_example_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len([line for line in block.splitlines() if line.strip()]) <= 36
    exec(compile(block, PAGE.name, "exec"), {"__name__": "example"})
