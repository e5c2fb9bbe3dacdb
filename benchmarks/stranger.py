"""The package as a stranger meets it, installed from its wheel without torch: five commands from a CSV file to a page.

    python benchmarks/stranger.py FOLDER_OF_THE_ENVIRONMENT'S_COMMANDS

Prints the size of the environment, how long the import and each command take, and checks the code of a user with mypy.
"""

import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from table import show

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "generate readings.csv --n 12 --length 3000 --graph edges.csv",
    "doctor",
    "fit readings.csv --graph edges.csv --out model",
    "predict model",
    "report model",
)


def timed(words: list[str], folder: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return time.perf_counter() - start


def import_seconds(folder: str) -> float:
    code = "import time; start = time.process_time(); import jointset; print(time.process_time() - start)"
    found = [subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True) for _ in range(7)]
    return statistics.median(float(one.stdout) for one in found[1:])


def needed(name: str, found: frozenset[str] = frozenset()) -> frozenset[str]:
    """A package and all that it needs, without extras."""
    found |= {canonicalize_name(name)}
    for text in importlib.metadata.requires(name) or ():
        other = Requirement(text)
        if canonicalize_name(other.name) not in found and (
            other.marker is None or other.marker.evaluate({"extra": ""})
        ):
            found = needed(other.name, found)
    return found


def megabytes(packages: Iterable[str]) -> float:
    """Size of the files of installed packages, compiled ones included."""
    files = {file.locate() for name in packages for file in importlib.metadata.files(name) or ()}
    return sum(file.lstat().st_size for file in map(Path, files) if file.is_file()) / 1e6


def main(commands: Path) -> None:
    place = find_spec("jointset").origin
    assert "site-packages" in place and find_spec("torch") is None, f"not the wheel alone: {place}"
    with tempfile.TemporaryDirectory() as folder:
        rows = [("import jointset", f"{import_seconds(folder):.2f} s", "processor time, median of six; limit 0.30 s")]
        rows += [(one, f"{timed([commands / 'jointset', *one.split()], folder):.1f} s", "") for one in COMMANDS]
        assert (Path(folder) / "model" / "report.html").stat().st_size > 10_000
        strict = [sys.executable, "-m", "mypy", "--strict", str(ROOT / "tests" / "typed" / "user_code.py")]
        rows.append(("mypy --strict on a user's code", f"{timed(strict, folder):.1f} s", ""))
    packages = needed("jointset")
    rows.append(
        ("size on disk", f"{megabytes(packages):.0f} MB", f"the {len(packages)} packages it needs, itself among them")
    )
    show("from the wheel, without torch", rows)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main(Path(sys.argv[1]).absolute())
