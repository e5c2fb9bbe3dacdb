"""Where torch is not installed, all that learns nothing works, and what learns says in one line what to install."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointset import GNF, DefaultFilter, JointPredictor, NodeNet, Panel
from jointset.backbones import BACKBONES
from jointset.bench.names import methods_to_run
from jointset.bench.runner import require_device
from jointset.catalogue import TABLE
from jointset.errors import InputError
from jointset.methods import predictor_for
from jointset.writing import write_edges, write_panel

HINT = "needs the package torch, which is not installed: pip install 'jointset[learn]'"
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Absent())
"""
EVERY = """
import jointset
from jointset.catalogue import TABLE
from jointset.methods import predictor_for

panel = jointset.Panel.read("readings.csv", graph="edges.csv")
for name, method in TABLE.items():
    if not method.package:
        predictor = predictor_for(name).fit(panel[:300]).calibrate(panel[300:500])
        predictor.save("models/" + name)
        run = jointset.load("models/" + name).run(panel[500:])
        print(name, run.joint > 0, abs(predictor.update(panel.values[500]).score - run.score[0]) < 1e-9)
"""


@pytest.fixture(scope="module")
def panel():
    """Five sensors on a ring, hourly."""
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=(560, 5)), axis=0) * 0.1 + rng.normal(size=(560, 5))
    ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    return Panel(values, tuple("abcde"), timestamps=3600 * np.arange(560), adjacency=ring)


@pytest.fixture(scope="module")
def bare(tmp_path_factory, panel):
    """A way to run Python as if torch were not installed, in a folder with readings and a graph."""
    folder, start = tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("start")
    (start / "sitecustomize.py").write_text(ABSENT)  # in child processes too
    write_panel(panel, folder / "readings.csv")
    write_edges(panel, folder / "edges.csv")
    path = os.pathsep.join([str(start), str(Path(__file__).parents[1] / "src")])

    def run(*words, **options):
        environment = os.environ | {"PYTHONPATH": path, "JOINTSET_CACHE": str(folder / "cache")}
        return subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, **options
        )

    run.folder = folder
    return run


@pytest.fixture
def no_torch(monkeypatch):
    """Torch cannot be found in this process."""
    monkeypatch.setitem(sys.modules, "torch", None)


def command(bare, *words, **options):
    return bare("-c", "from jointset.cli import main; main()", *words, **options)


def test_every_method_that_learns_nothing(bare):
    done = bare("-c", EVERY)
    assert done.returncode == 0, done.stderr
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(answers) == {name for name, method in TABLE.items() if not method.package}
    assert set(answers.values()) == {"True True"}


def test_fit_predict_stream_and_bench(bare, panel):
    done = command(bare, "fit", "readings.csv", "--graph", "edges.csv", "--out", "model")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "quick" in line] == [
        f"note: the method default {HINT}; this is quick"
    ]
    assert json.loads(command(bare, "predict", "model", "--json").stdout)["bounds"].keys() == set("abcde")
    rows = panel.to_pandas()[-3:].reset_index(drop=True).to_csv(index=False)
    streamed = command(bare, "stream", "model", input=rows)
    assert len(streamed.stdout.splitlines()) == 3, streamed.stderr
    asked = ["bench", "--cells", "file:readings.csv?graph=edges.csv", "--jobs", "1", "--limit-steps", "20"]
    done = command(bare, *asked, "--methods", "adaptive", "--out", "results")
    assert done.returncode == 0, done.stderr
    assert "group+agaci" in done.stdout and "gnf" not in done.stdout
    assert f"left out: their training {HINT}" in done.stderr and "'gnf+aci'" in done.stderr


def test_what_learns_is_refused_before_anything_is_read_or_written(bare):
    done = command(bare, "fit", "absent.csv", "--out", "learned", "--method", "default")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: default {HINT}\n")
    done = command(bare, "bench", "--cells", "ett-7", "--methods", "filters,gnf+aci", "--out", "other")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: gnf+aci {HINT}\n")
    assert not (bare.folder / "learned").exists() and not (bare.folder / "other").exists()


def test_a_learned_model_is_used_without_torch(bare, panel):
    learned = DefaultFilter(net=replace(NodeNet(), width=4), steps=2)
    predictor = JointPredictor(learned).fit(panel[:450]).calibrate(panel[450:])
    predictor.save(bare.folder / "default")
    found = json.loads(command(bare, "predict", "default", "--json").stdout)
    assert found["radius"] == pytest.approx(predictor.predict().radius, rel=1e-9)


@pytest.mark.usefixtures("no_torch")
def test_in_python(panel):
    for name, method in TABLE.items():
        if method.package:
            with pytest.raises(InputError, match=name):
                predictor_for(name)
    for part in (GNF(), NodeNet(), *(BACKBONES[name]() for name in ("gru", "transformer", "stgnn"))):
        with pytest.raises(InputError, match=r"jointset\[learn\]"):
            part.fit(panel)
    with pytest.raises(InputError, match=r"--device cuda needs .* torch"):
        require_device("cuda")
    assert methods_to_run("gnf", here=False).names == ["gnf"]  # workers elsewhere may have it


def test_torch_is_an_extra():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert not [line for line in project["dependencies"] if line.startswith("torch")]
    assert [line for line in project["optional-dependencies"]["learn"] if line.startswith("torch")]
