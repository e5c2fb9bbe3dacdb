"""Modules import only from their own layer and from those below it, lazily or not."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
LAYERS = {  # lowest first: a module belongs where the longest of its prefixes stands
    "inputs": "contracts abilities score_abilities errors late_names support parts storage inputs graph panel",
    "laws": "laws algebra",
    "means and filters": "backbones residuals filters",
    "scores, regions, calibration": "distances regions regions_composite scores calibration",
    "predictor": "trust runs predicting horizons joint_predictor",
    "live and experiments": """streaming next_set plot planes writing datasets catalogue paper_rows published methods
        door experiments adapters checks __init__""",
    "live": "live",
    "bench, audits, report": "terminal paper pages bench audits report",
    "commands": "commands cli __main__",
}

ALLOWED = {  # who may look up, and why
    ("support.folders", "__init__"): "the version that wrote a folder, asked for while writing",
    ("joint_predictor", "published.older"): "folders of older versions, which few have, opened when met",
}


def layer_of(module):
    """Position of the layer a module stands in."""
    fits = [
        (len(prefix), place)
        for place, prefixes in enumerate(LAYERS.values())
        for prefix in prefixes.split()
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    assert fits, f"{module} stands in no layer: name it in LAYERS"
    return max(fits)[1]


def modules(root):
    """Files of a package by module name, without the name of the package itself."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports_of(source, known):
    """Modules of the package that a source imports when it runs; those for type checkers alone are left out."""
    return [_module(name, known) for name in _imported(source)]


@cache
def _imported(source):
    """Dotted names of the package that a source imports, without that of the package."""
    names, todo = [], [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        else:
            todo.extend(part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr))
    return [name.partition(".")[2] for name in names if name.split(".")[0] == "jointset"]


def _module(name, known):
    """The module that a dotted name stands in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or "__init__"


def upward(found):
    """Imports from a layer above, as pairs of modules."""
    return {
        (module, other)
        for module, path in found.items()
        for other in imports_of(path.read_text(), found)
        if layer_of(other) > layer_of(module)
    }


@pytest.fixture(scope="module")
def package():
    return modules(SRC / "jointset")


def test_layers_only_point_down(package):
    assert upward(package) == set(ALLOWED)


@pytest.mark.parametrize(
    "line",
    ["from jointset import bench", "def f():\n    import jointset.audits.theory", "import jointset.cli"],
)
def test_a_new_import_from_above_is_found(line, tmp_path):
    for name in ("laws.py", "cli.py", "bench/__init__.py", "audits/theory.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(line if name == "laws.py" else "")
    assert len(upward(modules(tmp_path))) == 1


def test_no_module_is_longer_than_a_reader_takes_in():
    lengths = {str(file.relative_to(SRC)): len(file.read_text().splitlines()) for file in SRC.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 330} == {}


def test_the_picture_is_that_of_the_source():
    spec = importlib.util.spec_from_file_location("architecture", SRC.parent / "benchmarks" / "architecture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PICTURE.read_text() == script.drawn(), "run: python benchmarks/architecture.py"


def test_the_page_names_folders_and_lists_that_are_there():
    """Where to put what: every folder of the page, and every name that it says is in a module."""
    page = (SRC.parent / "docs" / "architecture.md").read_text()
    folders, lists = re.findall(r"`([\w/]+)/`", page), re.findall(r"`(\w+)` in `([\w.]+)`", page)
    assert len(set(folders)) > 10 and len(lists) > 10
    for folder in folders:
        assert (SRC / "jointset" / folder).is_dir() or folder == "src", folder
    for name, module in lists:
        assert hasattr(importlib.import_module(f"jointset.{module}"), name), f"{name} in {module}"
