"""The path of somebody new: a CSV file, a model, a stream, an alarm; what a person would read at each step."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from jointset.cli import app

STREETS = ["north", "south", "east", "west", "mill", "bridge"]


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Hourly counts of a small town, as a spreadsheet saves them: ';' and the day first; one counter is dead."""
    rng, hours = np.random.default_rng(0), 1500
    day = np.sin(2 * np.pi * np.arange(hours) / 24)[:, None] * rng.uniform(0.5, 1.5, (1, len(STREETS)))
    weather, own = rng.normal(size=(hours, 1)), rng.normal(size=(hours, len(STREETS)))
    table = pd.DataFrame(np.maximum(np.round(200 + 100 * day + 30 * weather + 10 * own), 0), columns=STREETS)
    table.insert(0, "time", pd.date_range("2024-01-01", periods=hours, freq="h").strftime("%d/%m/%Y %H:%M"))
    monkeypatch.chdir(tmp_path)
    return table.assign(dead=3.0, remark="ok")


def jointset(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(app, [*words], **options)


def test_from_a_spreadsheet_to_an_alarm(counts: pd.DataFrame) -> None:
    counts[:1300].to_csv("readings.csv", sep=";", index=False)
    fit = ["fit", "readings.csv", "--out", "model", "--steps", "8"]

    said = jointset(*fit).stderr  # every refusal names what to add
    assert "column 'remark': 'ok' is not a number" in said and "--drop leaves the column out" in said
    said = jointset(*fit, "--drop", "remark").stderr
    assert "--day-first" in said
    said = jointset(*fit, "--drop", "remark", "--day-first").stderr
    assert "constant sensors" in said and "'dead'" in said and "--drop-dead" in said
    done = jointset(*fit, "--drop", "remark", "--day-first", "--drop-dead")
    assert done.exit_code == 0, done.output
    assert "left out, constant or empty in the 910 training rows: 'dead'" in done.stderr
    assert "6 sensors x 1300 steps" in done.stdout and "every 3600 s" in done.stdout
    assert "of the time (target 90 %)" in done.stdout and "Next: jointset predict model" in done.stdout

    live = counts[1300:].copy()
    live.loc[1350, "east"] = 900.0  # a burst
    live.loc[1400:, "mill"] = 0.0  # a counter that stops
    text = live.to_csv(sep=";", index=False)
    done = jointset("stream", "model", "--day-first", "--trust", "--min", "0", input=text)
    assert done.exit_code == 0, done.output

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    alarm = answers[50]
    assert alarm["time"] == live["time"].iloc[50] and alarm["inside"] is False
    first = alarm["top"][0]
    assert first["sensor"] == "east" and first["value"] == 900.0 > first["upper"] > first["own"][1]
    assert first["value"] > first["expected"] + 5 * first["expected_sd"]
    assert min(low for answer in answers for low, _ in answer["bounds"].values()) >= 0.0
    assert answers[-1]["trust"]["stuck"] == ["mill"] and answers[-1]["trust"]["verdict"].endswith("stuck: 'mill'")

    notes = done.stderr.splitlines()
    assert notes[0] == "note: left out when the model was fitted, ignored: 'dead', 'remark'"
    assert "'mill' has read 0 21 times in a row" in notes[1] and "stuck?" in notes[1]
    assert notes[2].startswith("note: 200 rows, 0 bad, ") and notes[2].endswith("% inside (target 90 %)")
    assert notes[3].startswith("note: spells of stuck sensors: 1; ") and notes[3].endswith("stuck at the end: 'mill'")


def test_the_commands_of_the_quick_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make newcomer` runs in an empty environment, here without one."""
    path = Path(__file__).parents[1] / "benchmarks" / "newcomer.py"
    spec = importlib.util.spec_from_file_location("newcomer", path)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.chdir(tmp_path)
    script.write_readings(tmp_path / "readings.csv", rows=600, sensors=4)
    lines = script.commands()
    assert len(lines) <= script.MOST == 5 and lines[:2] == ["python3 -m venv env", "env/bin/pip install ."]
    for line in lines[2:]:
        program, *words = line.split()
        assert program == "env/bin/jointset"
        done = jointset(*words)
        assert done.exit_code == 0, done.output
    assert re.search(r'"scores":"[^"]{99}', (tmp_path / "model" / "report.html").read_text())
