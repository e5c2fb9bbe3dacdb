"""Do the tests bite? Small faults are put into the core, one at a time, and the tests nearest to each must notice.

A fault is one changed expression or one statement left out, drawn with a seed from all that the core offers. It is put
into a copy of the tree in a folder of its own. Faults that no test notices are printed, to be judged by a reader.
"""

import argparse
import ast
import copy
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded
import pandas  # noqa: F401  loaded here, and so in every fork
import pytest
import scipy.stats  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/jointset")
CALIBRATION = ("tests/calibration",)
KALMAN = ("tests/filters/test_riccati.py", "tests/filters/test_kalman.py", "tests/filters/test_gaps.py")
LEARNED = ("tests/filters/test_gnf.py", "tests/filters/test_training.py")
NEAREST = {  # modules of the core -> their nearest tests, the quickest first; the doctests of a module always run
    "laws": ("tests/test_lowrank.py", "tests/test_laws.py", "tests/test_bures.py"),
    "algebra/lowrank": ("tests/test_lowrank.py", "tests/test_laws.py"),
    "scores": ("tests/test_regions.py", "tests/contracts/test_sets.py"),
    "regions": ("tests/test_regions.py", "tests/contracts/test_sets.py"),
    "calibration/": CALIBRATION,
    "calibration/cost_agaci": ("tests/experiments/test_table_rows.py",),
    "calibration/auto": ("tests/calibration/test_auto.py",),
    "calibration/by_clock": ("tests/calibration/test_by_clock.py",),
    "calibration/clock_course": ("tests/calibration/test_by_clock.py",),
    "calibration/contina": ("tests/calibration/test_contina_rescp.py",),
    "calibration/rescp": ("tests/calibration/test_contina_rescp.py",),
    "calibration/late": ("tests/calibration/test_late.py",),
    "calibration/own_bands": ("tests/test_own_bands.py",),
    "calibration/tails": ("tests/calibration/test_tails.py",),
    "calibration/window": ("tests/calibration/test_contract.py", "tests/calibration/test_coverage.py"),
    "calibration/shared_level": ("tests/contracts/test_sets.py", "tests/experiments/test_coverage.py"),
    "filters/": (*KALMAN, *LEARNED),
    "filters/pool": ("tests/test_pooling.py",),
    "filters/remembered": ("tests/test_pooling.py", "tests/filters/test_default.py"),
    "filters/scaled": ("tests/filters/test_scaled.py",),
    "filters/residual": ("tests/residuals", "tests/contracts/test_filters.py"),
    "filters/static": ("tests/residuals", "tests/contracts/test_filters.py"),
    "filters/kalman": KALMAN,
    "filters/riccati": KALMAN,
    "joint_predictor": ("tests/test_predictor.py", "tests/test_oracle.py", "tests/contracts/test_sets.py"),
    "trust": ("tests/test_trust.py",),
    "streaming": ("tests/test_stream.py",),
    "predicting/": ("tests/test_predictor.py", "tests/contracts/test_sets.py", "tests/test_cli.py"),
    "predicting/calibrating": ("tests/test_predictor.py", "tests/contracts/test_sets.py", "tests/test_outliers.py"),
    "predicting/explaining": ("tests/test_explained.py", "tests/test_attribution.py", "tests/test_predictor.py"),
    "predicting/integrated_time": ("tests/audits/test_dependence.py",),
    "predicting/limits": ("tests/test_own_bands.py", "tests/test_cli.py"),
    "predicting/promise": ("tests/test_fit_verdict.py",),
    "predicting/reuse": ("tests/experiments/test_reused_rows.py",),
    "predicting/saving": ("tests/test_save_every.py",),
    "predicting/stored_models": ("tests/test_tampered.py", "tests/test_folders.py"),
    "predicting/attribution": ("tests/test_attribution.py", "tests/test_explained.py"),
    "calibration/gap_levels": ("tests/test_gap_levels.py", "tests/test_partial.py"),
    "horizons/": ("tests/horizons",),
    "algebra/lean": ("tests/test_lean.py",),
    "inputs/": ("tests/test_reading.py", "tests/test_panel.py", "tests/test_stream.py"),
    "inputs/adjacency": ("tests/test_adjacency.py",),
    "inputs/communities": ("tests/test_communities.py",),
    "inputs/fleet": ("tests/test_fleet.py",),
    "inputs/graph_files": ("tests/test_graph.py", "tests/test_reading.py"),
    "inputs/labelled_arrays": ("tests/test_labelled_arrays.py",),
    "inputs/labels": ("tests/test_labels.py",),
    "inputs/live_cells": ("tests/test_stream.py",),
    "inputs/live_rows": ("tests/test_stream.py",),
    "inputs/row_clock": ("tests/test_stream.py",),
    "inputs/sensor_places": ("tests/test_sensor_places.py",),
    "inputs/jumps": ("tests/live/test_jumps.py",),
    "inputs/times": ("tests/test_reading.py",),
    "live/": ("tests/serve/test_service.py", "tests/serve/test_store.py", "tests/serve/test_hostile.py"),
    "live/formats": ("tests/serve/test_formats.py", "tests/serve/test_single_readings.py"),
    "live/line_protocol": ("tests/serve/test_single_readings.py", "tests/serve/test_hostile.py"),
    "live/feed": ("tests/serve/test_security.py", "tests/serve/test_page.py"),
    "live/joining": ("tests/serve/test_single_readings.py", "tests/serve/test_hostile.py"),
    "live/mqtt": ("tests/serve/test_mqtt.py", "tests/serve/test_hostile.py"),
    "live/replaying": ("tests/serve/test_replay.py",),
    "live/security": ("tests/serve/test_security.py",),
    "live/sending": ("tests/serve/test_sending.py",),
    "live/ways_out": ("tests/serve/test_sending.py", "tests/serve/test_mqtt.py"),
    "live/webhooks": ("tests/serve/test_sending.py",),
    "live/displaced": ("tests/live/test_jumps.py",),
    "live/incidents": ("tests/live/test_incidents.py", "tests/live/test_alarms.py"),
    "inputs/outliers": ("tests/test_outliers.py",),
    "inputs/sensor_health": ("tests/test_sensor_health.py",),
    "predicting/clock_coverage": ("tests/test_clock_coverage.py",),
    "predicting/imputation": ("tests/test_imputation.py",),
    "live/alarms": ("tests/live/test_alarms.py", "tests/live/test_incidents.py"),
    "live/evidence": ("tests/live",),
    "predicting/membership": ("tests/test_membership.py",),
    "algebra/pooling": ("tests/test_pooling.py",),
    "residuals/correlations": ("tests/filters/test_var.py", "tests/contracts/test_filters.py"),
    "residuals/incomplete": ("tests/residuals", "tests/filters/test_gaps.py"),
}
LEFT_OUT = {"filters/kernels", "filters/step_graph"}  # run on a GPU alone
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


def core() -> dict[Path, tuple[str, ...]]:
    """Files of the core and their nearest tests: those of the longest name that fits."""
    found = {}
    for file in sorted((ROOT / PACKAGE).rglob("*.py")):
        module = file.relative_to(ROOT / PACKAGE).with_suffix("").as_posix()
        fits = [name for name in NEAREST if module == name or (module.startswith(name) and "/" in name)]
        if fits and module not in LEFT_OUT:
            found[file.relative_to(ROOT)] = NEAREST[max(fits, key=len)]
    return found


def noticed(tree: Path, fault: Fault, tests: tuple[str, ...], seconds: float) -> str | None:
    """What ended the tests in a tree with a fault: a failure, or their time; None where they all passed."""
    file = tree / fault.file
    sound = file.read_text()
    file.write_text(sound[: fault.start] + fault.text + sound[fault.stop :])
    try:
        return failure(tree, (str(fault.file), *tests), seconds)
    finally:
        file.write_text(sound)


def failure(tree: Path, tests: tuple[str, ...], seconds: float) -> str | None:
    """How tests ended that did not all pass; they run in a fork, so that libraries are loaded once for all faults."""
    process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(tree, tests))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return "out of time"
    printed = (tree / "printed").read_text().splitlines()
    failed = [line for line in printed if line.startswith(("FAILED", "ERROR"))]
    return (failed[0] if failed else f"exit code {process.exitcode}") if process.exitcode else None


def _run_tests(tree: Path, tests: tuple[str, ...]) -> None:
    with (tree / "printed").open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")  # for processes that tests start
    sys.path.insert(0, str(tree / "src"))
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:cov", "-m", "not slow", "--hypothesis-seed=0")
    sys.exit(int(pytest.main([*options, *tests])))


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
    parser.add_argument("--only", default="", help="files with this expression in their name or path")
    parser.add_argument("--seconds", type=float, default=240.0, help="time limit of the tests of one fault")
    asked = parser.parse_args()
    names = {file: (file.stem, file.relative_to(PACKAGE).as_posix()) for file in core()}
    nearest = {file: tests for file, tests in core().items() if any(re.search(asked.only, one) for one in names[file])}
    every = [fault for file in nearest for fault in faults(file, (ROOT / file).read_text())]
    drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    survivors = []
    for name, folder in (("JOINTSET_DATA", "data"), ("JOINTSET_PEERS", "peers")):
        os.environ.setdefault(name, str(ROOT.parent / "shared" / folder))
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, tree)
        for number, fault in enumerate(drawn, 1):
            begin = time.perf_counter()
            how = noticed(tree, fault, nearest[fault.file], asked.seconds)
            if how and (test := _test_of(how)) and _fails_anyway(tree, test, asked.seconds):
                sys.exit(f"{test} fails without any fault")
            survivors += [] if how else [told(tree, fault)]
            words = f"noticed by {how}" if how else "SURVIVED"
            spent = time.perf_counter() - begin
            print(f"{number}/{len(drawn)} {told(tree, fault)}  {words} ({spent:.0f} s)", flush=True)
    print(f"\n{len(drawn) - len(survivors)} of {len(drawn)} faults noticed, of {len(every)} in all; not noticed:")
    print("\n".join(survivors))


def _test_of(how: str) -> str:
    """The test in a line of pytest's summary; empty where the files could not even be read."""
    return how.removeprefix("FAILED ").partition(" - ")[0] if how.startswith("FAILED") else ""


@cache
def _fails_anyway(tree: Path, test: str, seconds: float) -> bool:
    return failure(tree, (test,), seconds) is not None


if __name__ == "__main__":
    main()
