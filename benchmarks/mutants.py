"""Do the tests bite? Small faults are put into the core, one at a time, and the tests that reach each must notice.

A fault is one changed expression or one statement left out, drawn with a seed from all that the core offers. It is put
into a copy of the tree in a folder of its own. Which tests reach which line is measured once (`--reached` keeps it in a
file). Faults that no test notices are printed, to be judged by a reader.
"""

import argparse
import ast
import copy
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded
import coverage
import hypothesis  # noqa: F401  loaded here, and so in every fork
import matplotlib.pyplot  # noqa: F401
import networkx  # noqa: F401
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
import torch  # noqa: F401
import typer  # noqa: F401

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/jointset")
CORE = "^(laws|scores|regions.*|joint_predictor|trust|streaming)[.]py|^(calibration|filters|predicting)/"
CORE += "|^algebra/(law|lowrank|partial)"
FOLDERS = ("audits", "calibration", "contracts", "experiments", "filters", "horizons", "live", "published", "residuals")
ELSEWHERE = ("browser", "docs", "doctor", "import", "newcomer", "tutorials", "without_torch")  # start programs, mostly
FIRST = 25  # quick tests that most faults do not survive
LEFT_OUT = {"filters/kernels.py", "filters/step_graph.py"}  # run on a GPU alone
SWAPS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.USub: ast.UAdd, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
NAMES |= {"zeros": "ones", "ones": "zeros", "floor": "ceil", "ceil": "floor"}


class Fault(NamedTuple):
    """A piece of a source file (start and stop in characters) and what stands there instead."""

    file: Path
    start: int
    stop: int
    text: str


def faults(file: Path, source: str) -> Iterator[Fault]:
    """Every fault that a file offers."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _running(ast.parse(source)):
        for other in _changed(node):
            first, last = source.splitlines()[node.lineno - 1], source.splitlines()[node.end_lineno - 1]
            start = starts[node.lineno - 1] + len(first.encode()[: node.col_offset].decode())
            stop = starts[node.end_lineno - 1] + len(last.encode()[: node.end_col_offset].decode())
            text = ast.unparse(other)
            yield Fault(file, start, stop, f"({text})" if isinstance(other, ast.expr) else text)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run and matter: no annotation, decorator, docstring, message or import."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node
    hidden = {
        "annotation",
        "returns",
        "decorator_list",
        "type_params",
        "bases",
        "keywords" * isinstance(node, ast.ClassDef),
    }
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if field not in hidden and isinstance(child, ast.AST):
                yield from _running(child)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The faults of one node: another operator, number, name or condition, or nothing at all."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield _with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.IfExp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    if isinstance(node, ast.Name) and node.id in NAMES:
        yield _with(node, id=NAMES[node.id])
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _with(node, attr=NAMES[node.attr])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class Reach(NamedTuple):
    """Which tests reach a line of a file, and the seconds that each takes."""

    lines: dict[str, dict[str, list[str]]]  # file -> line -> tests; the line "" has all tests of the file
    seconds: dict[str, float]

    def tests(self, fault: Fault, source: str, most: float) -> list[str]:
        """The tests that reach a fault, the quickest first, as many as take `most` seconds together."""
        first, last = (source.count("\n", 0, place) + 1 for place in (fault.start, fault.stop))
        lines = self.lines.get(str(fault.file), {})
        near = {test for line in range(first, last + 1) for test in lines.get(str(line), [])}
        if not near and _runs_on_import(source, first):
            near = set(lines.get("", []))
        return self._within(near, self.seconds, most)

    def more(self, tests: list[str], most: float) -> list[str]:
        """These tests, and of their files as many whole as take `most` seconds: tests may look at what others made."""
        spent: Counter[str] = Counter()
        for test, seconds in self.seconds.items():
            spent[test.partition("::")[0]] += seconds
        files = self._within({test.partition("::")[0] for test in tests}, spent, most)
        return files + [test for test in tests if test.partition("::")[0] not in files]

    @staticmethod
    def _within(names: set[str], seconds: dict[str, float], most: float) -> list[str]:
        order = sorted(names, key=lambda name: (seconds.get(name, 0.0), name))
        spent = accumulate(seconds.get(name, 0.0) for name in order)
        return [name for name, total in zip(order, spent, strict=True) if total <= most]


def _runs_on_import(source: str, line: int) -> bool:
    """Whether a line stands outside the bodies of all functions: a constant, a field, a default."""
    inside = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return not any(node.body[0].lineno <= line <= node.body[-1].end_lineno for node in inside)


def reached(tree: Path, files: list[Path]) -> Reach:
    """Run the tests once without a fault and see which lines of `files` each of them reaches."""
    tops = [
        f"tests/{file.name}" for file in sorted((tree / "tests").glob("test_*.py")) if file.stem[5:] not in ELSEWHERE
    ]
    tests = [*(f"tests/{name}" for name in FOLDERS), *tops, *map(str, files)]
    how = failure(tree, ("--cov=jointset", "--cov-context=test", "--cov-report=", *tests), 3600.0)
    if how:
        sys.exit(f"the tests fail without any fault: {how}")
    data = coverage.CoverageData(str(tree / ".coverage"))
    data.read()
    seconds = json.loads((tree / "seconds").read_text())
    lines: dict[str, dict[str, list[str]]] = {}
    for file in files:
        found = data.contexts_by_lineno(str(tree / file))
        rows = {str(line): sorted({one.partition("|")[0] for one in who if one}) for line, who in found.items()}
        lines[str(file)] = rows | {"": sorted({test for who in rows.values() for test in who})}
    return Reach(lines, seconds)


def noticed(tree: Path, fault: Fault, tests: list[str], seconds: float) -> str | None:
    """What ended the tests in a tree with a fault: a failure, or their time; None where they all passed."""
    file = tree / fault.file
    sound = file.read_text()
    file.write_text(sound[: fault.start] + fault.text + sound[fault.stop :])
    try:
        return failure(tree, ("-p", "no:cov", *tests), seconds)
    finally:
        file.write_text(sound)


def failure(tree: Path, asked: tuple[str, ...], seconds: float) -> str | None:
    """How tests ended that did not all pass; they run in a fork, so that libraries are loaded once for all faults."""
    process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(tree, asked, seconds))
    process.start()
    process.join(10 * seconds)  # the tests limit their own processor time; this ends those that wait for ever
    process.kill()
    process.join()
    if process.exitcode in (-signal.SIGKILL, -signal.SIGXCPU):
        return "out of time"
    printed = (tree / "printed").read_text().splitlines()
    failed = [line for line in printed if line.startswith(("FAILED", "ERROR"))]
    return (failed[0] if failed else f"exit code {process.exitcode}") if process.exitcode else None


class Times:
    """A plugin of pytest that keeps the seconds of each test."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration


def _run_tests(tree: Path, asked: tuple[str, ...], seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    with (tree / "printed").open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")  # for processes that tests start
    sys.path.insert(0, str(tree / "src"))
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-m", "not slow", "--hypothesis-seed=0")
    times = Times()
    code = int(pytest.main([*options, *asked], plugins=[times]))
    (tree / "seconds").write_text(json.dumps(times.seconds))
    sys.exit(code)


def told(tree: Path, fault: Fault) -> str:
    """Where a fault stands, and the piece before and after."""
    source = (tree / fault.file).read_text()
    line = source.count("\n", 0, fault.start) + 1
    before = " ".join(source[fault.start : fault.stop].split())
    return f"{fault.file.relative_to(PACKAGE)}:{line}: {before}  ->  {fault.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="faults drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=CORE, help="files whose name or path fits; '' for all")
    parser.add_argument("--seconds", type=float, default=15.0, help="most that the tests of one fault take when sound")
    parser.add_argument("--reached", type=Path, help="a file with what the tests reach: read, or written if not there")
    asked = parser.parse_args()
    files = [Path(file) for file in sorted((ROOT / PACKAGE).rglob("*.py"))]
    names = {file.relative_to(ROOT / PACKAGE).as_posix(): file.relative_to(ROOT) for file in files}
    files = [file for name, file in names.items() if re.search(asked.only, name) and name not in LEFT_OUT]
    every = [fault for file in files for fault in faults(file, (ROOT / file).read_text())]
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    survivors, killers = [], set()
    for name, folder in (("JOINTSET_DATA", "data"), ("JOINTSET_PEERS", "peers")):
        os.environ.setdefault(name, str(ROOT.parent / "shared" / folder))
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, tree)
        if asked.reached and asked.reached.exists():
            reach = Reach(*json.loads(asked.reached.read_text()))
        else:
            reach = reached(tree, files)
            if asked.reached:
                asked.reached.write_text(json.dumps(reach))
        for number, fault in enumerate(drawn, 1):
            begin = time.perf_counter()
            tests = reach.tests(fault, (tree / fault.file).read_text(), asked.seconds)
            how = None
            for some in (tests[:FIRST], reach.more(tests, asked.seconds)) if tests else ():
                how = how or noticed(tree, fault, some, 4 * asked.seconds)
            survivors += [] if how else [told(tree, fault)]
            killers |= {how.removeprefix("FAILED ").partition(" - ")[0]} if how and how.startswith("FAILED") else set()
            words = f"noticed by {how}" if how else f"SURVIVED {len(tests)} tests"
            spent = time.perf_counter() - begin
            print(f"{number}/{len(drawn)} {told(tree, fault)}  {words} ({spent:.0f} s)", flush=True)
        if killers and (how := failure(tree, ("-p", "no:cov", *sorted(killers)), 3600.0)):
            sys.exit(f"fails without any fault: {how}")
    print(f"\n{len(drawn) - len(survivors)} of {len(drawn)} faults noticed, of {len(every)} in all; not noticed:")
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
