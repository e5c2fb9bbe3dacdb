"""The examples of docs/coming-from.md run as they stand, and every adapter is imported only when asked for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import jointset.adapters

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=["regressor", "live model", "long forecast", "xarray"])
def test_an_example_runs(block, capsys):
    exec(compile(block, PAGE.name, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out


def test_adapters_are_imported_when_they_are_asked_for():
    code = "import sys, jointset.adapters; print(*{'sklearn', 'pandas', 'sktime'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "\n"
    with pytest.raises(AttributeError, match="no attribute 'Forecaster'"):
        jointset.adapters.Forecaster  # noqa: B018


@pytest.mark.parametrize(("package", "name"), [("sklearn", "JointRegressor"), ("sktime", "JointForecaster")])
def test_without_its_package_an_adapter_says_what_to_install(package, name, monkeypatch):
    from jointset.errors import InputError

    for module in [module for module in sys.modules if module.startswith("jointset.adapters.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(vars(jointset.adapters), name, raising=False)  # kept since it was last asked for
    with pytest.raises(InputError, match=rf"{name} needs the package {package}.*pip install 'jointset\[{package}\]'"):
        getattr(jointset.adapters, name)
