"""The table of stored parts: complete, true, and enough to open every model in a process that made none."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import jointset
from jointset import GPVAR, GraphLGSSM, InputError, JointPredictor, StaticFilter, generate_grssf
from jointset.filters.kept import KeptFilter
from jointset.methods import load_predictor, predictor_for
from jointset.parts import PARTS
from jointset.storage import _NAMES, fits, pack, storable, stored_class, unpack

PANEL = generate_grssf("A", n=8, seed=3, length=700).panel
CODE = """
import json, sys, jointset
from jointset import JointPredictor
found = {}
for i, path in enumerate(sys.argv[1:]):
    opened = (jointset.load if i % 2 else JointPredictor.load)(path)
    found[path] = [end.tolist() for end in opened.predict().bounds]
print(json.dumps(found))
"""


def test_the_table_holds_every_storable_class_and_no_other() -> None:
    for module in pkgutil.walk_packages(jointset.__path__, "jointset."):
        if module.name.endswith((".__main__", ".kernels")):  # kernels need triton
            continue
        try:
            importlib.import_module(module.name)
        except InputError:
            if not module.name.startswith("jointset.adapters."):  # those may be of a library that is not there
                raise
    marked = {name: cls for cls, name in _NAMES.items() if cls.__module__.startswith("jointset.")}
    assert {name: (cls.__module__, cls.__name__) for name, cls in marked.items()} == PARTS
    assert all(stored_class(name) is cls for name, cls in marked.items())


def test_both_ways_to_load_open_a_model_in_a_process_that_made_none(tmp_path: Path) -> None:
    """Every method is opened so by the contract suite; here as users write it."""
    expected = {}
    for method in ("ewma:box+agaci", "copula+aci"):
        predictor, folder = predictor_for(method).fit(PANEL[:350]).calibrate(PANEL[350:690]), tmp_path / method[:4]
        predictor.run(PANEL[690:], regions=False)
        predictor.save(folder)
        expected[str(folder)] = [end.tolist() for end in predictor.predict().bounds]
    done = subprocess.run([sys.executable, "-c", CODE, *expected], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == expected  # bit for bit: JSON keeps every digit of a float


def test_a_class_of_another_package_may_not_take_a_name_of_ours() -> None:
    with pytest.raises(InputError, match="'ACI' is the name of a part of jointset"):
        storable(type("ACI", (), {}))


def test_only_a_marked_class_is_stored_whatever_its_name() -> None:
    with pytest.raises(TypeError, match="cannot store a Split"):
        pack(type("Split", (), {})(), {})


def test_what_stands_for_a_filter_in_a_folder_must_be_one() -> None:
    for inner in (GraphLGSSM(), "kalman"):
        arrays: dict[str, np.ndarray] = {}
        tree = pack(KeptFilter(inner, np.arange(2), 3), arrays)  # type: ignore[arg-type]
        if isinstance(inner, str):
            with pytest.raises(InputError, match="inner"):
                unpack(tree, arrays)
        else:
            assert isinstance(unpack(tree, arrays).inner, GraphLGSSM)


def test_a_row_around_the_exported_backbone_is_the_usual_row(tmp_path: Path) -> None:
    usual, given = (
        JointPredictor(one).fit(PANEL[:350]).calibrate(PANEL[350:])
        for one in (StaticFilter(), StaticFilter(backbone=GPVAR()))
    )
    np.testing.assert_array_equal(usual.predict().bounds, given.predict().bounds)
    given.save(tmp_path)
    parts = json.loads((tmp_path / "model.json").read_text())["parts"]
    backbone = parts["filter"]["fields"]["backbone"]
    assert backbone["class"] == "GPVARBackbone" and backbone["fields"]["model"]["class"] == "GPVAR"  # as ever
    np.testing.assert_array_equal(load_predictor(tmp_path).predict().bounds, usual.predict().bounds)


def test_a_named_type_is_the_class_behind_it():
    """From numpy 2.5 on `NDArray` is a name given with `type`."""
    extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    named = extensions.TypeAliasType("Rows", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,))[np.float64]
    assert fits(np.zeros(3), named) and fits(None, named | None) and not fits(3.0, named)
    with pytest.raises(InputError, match="level must be an array, got 3"):
        unpack(3, {}, "level", named)
