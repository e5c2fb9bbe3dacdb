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


def test_every_block_of_the_pages_is_a_module_for_type_checkers():
    spec = importlib.util.spec_from_file_location("page_blocks", Path(__file__).with_name("page_blocks.py"))
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = script.blocks_of_pages()
    assert {"README_1.py", "quickstart_2.py", "horizons_1.py"} <= {*found}
    for name, text in found.items():
        compile(text, name, "exec")
        assert ("def example(" in text) == (name.rpartition("_")[0] in script.SHORT)
