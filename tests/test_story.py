"""The demonstration's story: what happened is found and named, and nothing else is."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jointset.cli import app
from jointset.report import story

pytestmark = pytest.mark.slow
README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def told():
    return story.tell_story(seed=0)


def test_the_incident_is_found_within_six_rows_at_its_detector(told):
    incident = told.events[0]
    assert incident.late <= 30 and incident.alarm["kind"] == "sustained"
    assert incident.sensor in (incident.alarm["where"], incident.alarm["sensors"][0])


def test_the_frozen_detector_is_found_and_nothing_else_is(told):
    frozen = told.events[1]
    assert frozen.alarm["kind"] == "stuck" and frozen.alarm["sensors"] == [frozen.sensor]
    assert told.false_alarms == []


def test_demo_tells_it_and_writes_a_page(monkeypatch, told, tmp_path):
    monkeypatch.setattr(story, "tell_story", lambda *given: told)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    for event in told.events:
        assert f"{event.what} at {event.sensor}" in done.output and event.alarm["text"] in done.output
    shown = re.search(r"```text\n(A simulated city.*?)```", README.read_text(encoding="utf-8"), re.S).group(1)
    assert done.output.startswith(shown)  # README shows what is printed
    assert "alarms about nothing: 0" in done.output and (tmp_path / "demo" / "report.html").stat().st_size > 100_000


def test_two_demonstrations_at_once_are_refused():
    done = CliRunner().invoke(app, ["demo", "--live", "--compare"])
    assert done.exit_code == 2 and "choose one" in done.output
