"""`import jointset` brings nothing but the table of its names; each name brings what it needs, and nothing is lost."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import jointset
from jointset.late_names import places_of

HEAVY = {"torch", "pandas", "matplotlib", "typer", "fastapi", "pyarrow", "networkx", "safetensors", "rich"}
PACKAGES = ["jointset", "jointset.adapters", "jointset.backbones", "jointset.filters"]
AFTER = """
import json, sys
{code}
own = sum(name.partition(".")[0] == "jointset" for name in sys.modules)
print(json.dumps([own, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def imported(code):
    """How many modules of our own a line brings in a fresh interpreter, and which packages."""
    done = subprocess.run([sys.executable, "-c", AFTER.format(code=code)], capture_output=True, text=True, check=True)
    own, packages = json.loads(done.stdout)
    return own, {*packages}


def test_the_import_alone_brings_nothing():
    own, packages = imported("import jointset")
    assert own == 2 and not packages & (HEAVY | {"numpy", "scipy"})


@pytest.mark.parametrize("code", ["jointset.JointPredictor", "jointset.predictor, jointset.load, jointset.Panel"])
def test_what_everybody_asks_for_brings_little(code):
    own, packages = imported(f"import jointset; {code}")
    assert own <= 110 and not packages & (HEAVY | {"scipy"})


def test_commands_begin_without_numbers():
    _, packages = imported("import jointset.cli")
    assert not packages & ({"numpy", "scipy"} | HEAVY - {"typer", "rich"})


def test_every_public_name_is_there_in_a_fresh_interpreter():
    names = ", ".join(jointset.__all__)
    assert not imported(f"from jointset import {names}")[1] & {"torch", "typer", "fastapi"}
    imported(f"from jointset import *; {names}")
    modules = ", ".join(f"jointset.{name}" for name in jointset.MODULES[""].split())
    imported(f"import jointset; {modules}, jointset.filters.GNF, jointset.backbones.BACKBONES")


@pytest.mark.parametrize("name", PACKAGES)
def test_one_list_of_names_in_all_places(name):
    package = importlib.import_module(name)
    typed = next(node for node in ast.parse(Path(package.__file__).read_text()).body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in typed.body for alias in node.names}
    table = {found: f"{name}.{place}".rstrip(".") for found, place in places_of(package.MODULES).items()}
    assert seen.items() <= table.items()
    assert sorted(package.__all__) == sorted(seen)
    assert {*table} <= {*dir(package)}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there(name):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'predicter'"):
        _ = importlib.import_module(name).predicter
    with pytest.raises(ImportError, match="cannot import name 'Predictor'"):
        exec(f"from {name} import Predictor")


def test_every_name_of_the_audits_is_there():
    audits = importlib.import_module("jointset.audits")
    assert all(getattr(audits, name) is not None for name in places_of(audits.MODULES))


def test_the_function_is_never_hidden_by_a_module():
    for code in ("import jointset.joint_predictor", "import jointset.methods, jointset.door", "import jointset.cli"):
        imported(f"{code}; import jointset; assert jointset.predictor('ewma').alpha == 0.1; assert jointset.load")
