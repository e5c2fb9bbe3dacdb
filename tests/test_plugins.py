"""A method of another package, found by its entry point, works wherever a name does, and its models load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jointset import GraphLGSSM, generate_grssf
from jointset.catalogue import OWN, with_others
from jointset.contracts import Method
from jointset.writing import write_panel

WALK = '''
from dataclasses import dataclass, replace

import numpy as np

from jointset import DenseLaw
from jointset.contracts import Array, Method
from jointset.storage import storable


@storable
@dataclass(frozen=True)
class Walk:
    """The mean is the last reading, the covariance that of the steps."""

    covariance: Array | None = None

    def fit(self, panel):
        return replace(self, covariance=np.cov(np.diff(panel.values, axis=0).T))

    def start(self):
        return np.zeros(len(self.covariance))

    def law(self, state):
        return DenseLaw(state, self.covariance)

    def step(self, state, y):
        return np.where(np.isnan(y), state, y)

    def run(self, values, state):
        states = [state]
        for y in values:
            states.append(self.step(states[-1], y))
        return self.law(np.array(states[:-1]).reshape(-1, len(state))), states[-1]


METHOD = Method("walk", Walk, mean="last reading", covariance="one covariance of the steps", paper="Random walk")


@storable
@dataclass(frozen=True)
class Drift(Walk):
    """A walk whose pull to zero is learned by a few steps down the gradient, from a start drawn with the seed."""

    seed: int = 0
    steps: int | None = None
    pull: float = 1.0

    def fit(self, panel):
        before, after = panel.values[:-1], panel.values[1:]
        pull = np.random.default_rng(self.seed).uniform(0.2, 0.8)
        for _ in range(self.steps or 40):
            pull += 0.5 * np.mean(before * (after - pull * before)) / np.mean(before**2)
        return replace(self, pull=float(pull), covariance=np.cov((after - pull * before).T))

    def law(self, state):
        return DenseLaw(self.pull * state, self.covariance)


LEARNED = Method("drift", Drift, mean="pulled to zero", tuned="least squares", learned=True, cost=2.0)
'''
POINTS = "[jointset.methods]\nwalk = walk_method:METHOD\ndrift = walk_method:LEARNED\nbroken = walk_method:NOTHING\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as an installer would leave it, and readings to use it on."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "walk_method.py").write_text(WALK)
    about = folder / "walk_method-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: walk-method\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    panel = generate_grssf("A", n=8, seed=3, length=1400).panel
    write_panel(panel[:1100], folder / "panel.npz")
    write_panel(panel[1100:], folder / "later.npz")
    return folder


MAIN = "from jointset.cli import main; main()"


def jointset(place: Path, *arguments: str, told: str = "", found: bool = True, program: str = MAIN) -> Any:
    """A command in a process that finds the package, or does not."""
    paths = [str(place)] * found + [os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment, input=told)


@pytest.mark.slow
def test_a_method_of_another_package_works_in_every_command(place: Path) -> None:
    listed = jointset(place, "methods", "--json")
    (walk,) = (row for row in json.loads(listed.stdout) if row["name"] == "walk")
    assert walk["paper"] == "Random walk" and walk["family"] == "filter"
    assert walk["geometries"] == ["ellipsoid", "box", "lean"]
    assert "'broken' (walk_method:NOTHING) cannot be loaded" in listed.stderr
    fitted = jointset(place, "fit", "panel.npz", "--out", "model", "--method", "walk:box+aci")
    assert fitted.returncode == 0, fitted.stderr
    reading = json.dumps([0.0] * 8)
    streamed = jointset(place, "stream", "model", told=f"{reading}\n{reading}\n")
    assert streamed.returncode == 0 and len(streamed.stdout.splitlines()) >= 2, streamed.stderr
    audited = jointset(place, "audit", "model", "later.npz", "--json")
    assert audited.returncode == 0 and json.loads(audited.stdout), audited.stderr
    bench = jointset(place, "bench", "--cells", "file:panel.npz", "--methods", "walk,walk+aci,static:box", "--out", "b")
    assert bench.returncode == 0 and "walk+aci" in bench.stdout, bench.stderr
    report = jointset(place, "report", "b")
    assert report.returncode == 0 and "walk+aci" in (place / "b" / "report.html").read_text(), report.stderr
    alone = jointset(place, "predict", "model", found=False)
    assert alone.returncode == 2 and "unknown part 'Walk'" in alone.stderr and "not installed" in alone.stderr


@pytest.mark.slow
def test_a_learned_filter_of_another_package_works_in_every_command(place: Path) -> None:
    refused = jointset(place, "fit", "panel.npz", "--out", "no", "--method", "drift", "--recipe", "fast")
    assert refused.returncode == 2 and "drift has no setting 'recipe'" in refused.stderr, refused.stderr
    fitted = jointset(place, "fit", "panel.npz", "--out", "learned", "--method", "drift", "--steps", "7", "--seed", "3")
    assert fitted.returncode == 0, fitted.stderr
    stored = json.loads((place / "learned" / "model.json").read_text())["parts"]["filter"]["fields"]
    assert (stored["steps"], stored["seed"]) == (7, 3) and stored["pull"] != 1.0
    streamed = jointset(place, "stream", "learned", told=json.dumps([0.0] * 8))
    assert streamed.returncode == 0, streamed.stderr
    audited = jointset(place, "audit", "learned", "later.npz", "--json")
    assert audited.returncode == 0 and json.loads(audited.stdout), audited.stderr
    options = ["--methods", "drift,drift+aci", "--seeds", "2", "--limit-steps", "50"]
    bench = jointset(place, "bench", "--cells", "file:panel.npz", *options, "--out", "seeds")
    assert bench.returncode == 0 and "drift+aci" in bench.stdout, bench.stderr
    report = jointset(place, "report", "seeds")
    assert report.returncode == 0 and "drift+aci" in (place / "seeds" / "report.html").read_text(), report.stderr


@pytest.mark.parametrize("method", ["walk:box+aci", "drift"])
def test_a_method_of_another_package_is_held_to_the_contract(place: Path, method: str) -> None:
    program = f"from jointset.checks import check_predictor; check_predictor({method!r})"
    checked = jointset(place, program=program)
    assert checked.returncode == 0, checked.stderr


def test_what_is_no_method_or_takes_a_name_is_told_and_left_out() -> None:
    other = Method("kalman", GraphLGSSM, covariance="another")
    for wrong, words in ((other, "is there already"), (7, "is no Method"), (Method("a:b", GraphLGSSM), "plain name")):
        with pytest.warns(UserWarning, match=words):
            assert with_others(OWN, [wrong]) == with_others(OWN, [])
    assert with_others(OWN, [Method("mine", GraphLGSSM)])["mine"].geometries == ("ellipsoid", "box", "lean")
