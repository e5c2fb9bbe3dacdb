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


RUN = """
import json, sys
from typer.testing import CliRunner
from jointset.cli import app
done = [CliRunner().invoke(app, words, input="[0, 0, 0, 0, 0, 0, 0, 0]") for words in json.loads(sys.argv[1])]
print(json.dumps([(one.exit_code, one.stdout, one.stderr) for one in done]))
"""


def process(place: Path, program: str, *arguments: str, found: bool = True) -> Any:
    """A program, ended well, in a process that finds the package, or does not."""
    paths = [str(place)] * found + [os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, env=environment)
    assert done.returncode == 0, done.stderr
    return done


def jointset(place: Path, *commands: str, found: bool = True) -> list[tuple[int, str, str]]:
    """Exit code, output and messages of commands, all in one process."""
    done = process(place, RUN, json.dumps([command.split() for command in commands]), found=found)
    return [tuple(one) for one in json.loads(done.stdout.splitlines()[-1])]


MADE = (
    "methods --json",
    "fit panel.npz --out model --method walk:box+aci",
    "fit panel.npz --out learned --method drift --steps 7 --seed 3",
    "bench --cells file:panel.npz --methods walk,walk+aci,static:box --out b",
    "bench --cells file:panel.npz --methods drift,drift+aci --seeds 2 --limit-steps 50 --out seeds",
    "fit panel.npz --out no --method drift --recipe fast",
)
READ = (
    *("stream model", "audit model later.npz --json", "report b"),
    *("stream learned", "audit learned later.npz --json", "report seeds"),
)


@pytest.mark.slow
def test_a_method_of_another_package_works_in_every_command(place: Path) -> None:
    """Models and tables made in one process are read in another; without the package they are refused."""
    (listed, *made, refused), read = jointset(place, *MADE), jointset(place, *READ)
    (walk,) = (row for row in json.loads(listed[1]) if row["name"] == "walk")
    assert walk["paper"] == "Random walk" and walk["family"] == "filter"
    assert walk["geometries"] == ["ellipsoid", "box", "lean"]
    for code, printed, told in (*made, *read):
        assert code == 0 and printed, told
    assert "walk+aci" in made[2][1] and "drift+aci" in made[3][1]
    assert refused[0] == 2 and "drift has no setting 'recipe'" in refused[2]
    stored = json.loads((place / "learned" / "model.json").read_text())["parts"]["filter"]["fields"]
    assert (stored["steps"], stored["seed"]) == (7, 3) and stored["pull"] != 1.0
    assert json.loads(read[1][1]) and json.loads(read[4][1])
    assert "walk+aci" in (place / "b" / "report.html").read_text()
    assert "drift+aci" in (place / "seeds" / "report.html").read_text()
    ((code, _, told),) = jointset(place, "predict model", found=False)
    assert code == 2 and "unknown part 'Walk'" in told and "not installed" in told


def test_a_method_of_another_package_is_held_to_the_contract(place: Path) -> None:
    """And one that cannot be loaded is told, once."""
    checks = "from jointset.checks import check_predictor\nfor name in ('walk:box+aci', 'drift'): check_predictor(name)"
    done = process(place, checks)
    assert done.stderr.count("'broken' (walk_method:NOTHING) cannot be loaded") == 1


def test_what_is_no_method_or_takes_a_name_is_told_and_left_out() -> None:
    other = Method("kalman", GraphLGSSM, covariance="another")
    for wrong, words in ((other, "is there already"), (7, "is no Method"), (Method("a:b", GraphLGSSM), "plain name")):
        with pytest.warns(UserWarning, match=words):
            assert with_others(OWN, [wrong]) == with_others(OWN, [])
    assert with_others(OWN, [Method("mine", GraphLGSSM)])["mine"].geometries == ("ellipsoid", "box", "lean")
