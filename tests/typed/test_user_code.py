"""The code that is type-checked from a user's side runs, and the package says that it is typed."""

import importlib.util
from pathlib import Path

import jointset


def test_what_is_typed_also_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("user_code", Path(__file__).with_name("user_code.py"))
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    code.all_of_it(tmp_path)


def test_the_package_says_that_it_is_typed():
    assert Path(jointset.__file__).with_name("py.typed").is_file()
