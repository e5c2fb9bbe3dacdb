"""`stream --save-every N`: what a killed stream keeps, and a disk that fails for a while."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import GraphLGSSM, InputError, JointPredictor, generate_grssf
from jointset.cli import app

PANEL = generate_grssf("A", n=8, seed=3, length=400).panel
FITTED = JointPredictor(GraphLGSSM()).fit(PANEL[:150]).calibrate(PANEL[150:300])
ROWS = [json.dumps(row.tolist()) for row in PANEL.values[300:]]


def after(rows: int) -> list[float]:
    predictor = FITTED.copy()
    for y in PANEL.values[300 : 300 + rows]:
        predictor.update(y)
    return predictor.predict().center.tolist()


def center(folder: Path) -> list[float]:
    return JointPredictor.load(folder).predict().center.tolist()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    FITTED.save(tmp_path / "model")
    return tmp_path / "model"


def stream(model: Path, *options: str, rows: list[str] = ROWS) -> Any:
    return CliRunner().invoke(app, ["stream", str(model), *options], input="\n".join(rows) + "\n")


def test_a_killed_stream_keeps_its_last_regular_save(model: Path) -> None:
    command = [sys.executable, "-c", "from jointset.cli import main; main()", "stream", str(model), "--save-every", "5"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as live:
        assert live.stdin is not None and live.stdout is not None
        for row in ROWS[:12]:
            print(row, file=live.stdin, flush=True)
            live.stdout.readline()
        live.kill()
    assert center(model) == after(10)


def test_bad_rows_do_not_count(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    monkeypatch.setattr(JointPredictor, "save", lambda self, path: saved.append(self.predict().center.tolist()))
    done = stream(model, "--save-every", "2", rows=[ROWS[0], "nonsense", ROWS[1], "[1]", ROWS[2]])
    assert done.exit_code == 0
    assert saved == [after(2), after(3)]  # the last one at the end


def test_the_end_of_a_stream_is_saved_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []
    monkeypatch.setattr(JointPredictor, "save", lambda self, path: saved.append(self.predict().center.tolist()))
    stream(model, "--save-every", "2", "--save", rows=ROWS[:4])
    assert saved == [after(2), after(4)]


def test_a_stream_outlives_failed_saves_and_says_so(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = JointPredictor.save, iter(range(1, 100))

    def save(self: JointPredictor, path: Path) -> None:
        if next(calls) in (2, 3, 4):
            raise InputError("cannot write model (No space left on device): make room and try again")
        real(self, path)

    monkeypatch.setattr(JointPredictor, "save", save)
    done = stream(model, "--save-every", "10")
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 100
    notes = [line for line in done.stderr.splitlines() if "save" in line]
    assert len(notes) == 2
    assert "row 20" in notes[0] and "No space left" in notes[0] and "the stream goes on" in notes[0]
    assert "row 50" in notes[1] and "3 saves had failed" in notes[1]
    np.testing.assert_array_equal(center(model), after(100))


def test_a_last_save_that_fails_is_an_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(self: JointPredictor, path: Path) -> None:
        raise InputError("cannot write model (No space left on device): make room and try again")

    monkeypatch.setattr(JointPredictor, "save", save)
    done = stream(model, "--save-every", "3", rows=ROWS[:4])
    assert done.exit_code == 2 and done.stderr.splitlines()[-1].startswith("error: cannot write model (No space")
    assert center(model) == after(0)


def test_every_must_be_positive(model: Path) -> None:
    done = stream(model, "--save-every", "0")
    assert done.exit_code == 2 and done.stderr.startswith("error: --save-every")
