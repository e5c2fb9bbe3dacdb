"""Audits of networks that are not in order: dead sensors, an audit that breaks, and one light over all of them."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import GraphLGSSM, JointPredictor, generate_grssf
from jointset.audits.collect import audit
from jointset.audits.contraction import contraction_words
from jointset.audits.light import overall
from jointset.audits.page import write_page
from jointset.audits.questions import AUDITS, DEFAULT
from jointset.audits.sweeps import warmup_words
from jointset.cli import app
from jointset.methods import predictor_for
from jointset.predicting.promise import Promise


@pytest.fixture(scope="module")
def blocks():
    return generate_grssf("A", n=8, seed=0, length=6000).panel.split()


@pytest.fixture(scope="module")
def predictor(blocks):
    train, _, calibration, _ = blocks
    return JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)


def without(panel, *sensors):
    values = panel.values.copy()
    values[:, [panel.sensors.index(name) for name in sensors]] = np.nan
    return panel.with_values(values)


@pytest.fixture(scope="module")
def dead(blocks):
    return without(blocks[3], blocks[3].sensors[2])


@pytest.fixture(scope="module")
def found(predictor, dead):
    return audit(predictor, dead)


# ---------------------------------------------------------------------- dead sensors, broken audits


def test_a_sensor_that_is_dead_throughout_loses_no_audit(found):
    assert {name for name, record in found.items() if "verdict" not in record} == {"plug_in"}  # needs --cells
    assert found["theory"]["sigma_1"] == pytest.approx(0.33756, abs=1e-5)


def test_dead_sensors_are_left_out_of_pit_and_trace_ratio_and_named(found, dead, predictor):
    name = dead.sensors[2]
    others = [sensor for sensor in dead.sensors if sensor != name]
    assert found["pit"]["sensors"] == 7 and found["pit"]["left_out"] == found["trace_ratio"]["left_out"] == [name]
    for record in ("pit", "trace_ratio"):
        assert f"left out, too few readings: '{name}'" in found[record]["verdict"]
    assert found["trace_ratio"]["ratio"] == pytest.approx(1.0, abs=0.06)
    dark = audit(predictor, without(dead, *others), audits=["pit", "trace_ratio"])
    assert all("no sensor has" in record["skipped"] for record in dark.values())


def test_an_audit_that_breaks_says_why_in_one_line_and_the_others_go_on(predictor, dead, monkeypatch):
    def broken(subject):
        raise ZeroDivisionError("nothing\nto divide by")

    monkeypatch.setitem(AUDITS, "rho_dG", AUDITS["rho_dG"]._replace(run=broken))
    found = audit(predictor, dead, audits=["rho_dG", "m_eff"])
    assert found["rho_dG"]["failed"] == "ZeroDivisionError: nothing to divide by"
    assert found["rho_dG"]["light"] == "amber" and "verdict" in found["m_eff"]
    assert overall(found)["light"] == "amber" and "could not be done" in overall(found)["verdict"]


def test_the_command_goes_on_and_its_exit_code_says_that_one_broke(predictor, dead, monkeypatch, tmp_path):
    def broken(subject):
        raise RuntimeError("out of luck")

    predictor.save(tmp_path / "model")
    dead.to_npz(tmp_path / "later.npz")
    asked = ["audit", str(tmp_path / "model"), str(tmp_path / "later.npz"), "--audits", "theory,m_eff"]
    whole = CliRunner().invoke(app, asked)
    assert whole.exit_code == 0 and f"no reading of '{dead.sensors[2]}'" in whole.stderr
    monkeypatch.setitem(AUDITS, "theory", AUDITS["theory"]._replace(run=broken))
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 1 and "failed: RuntimeError: out of luck" in result.stdout
    assert "│ m_eff " in result.stdout and "Traceback" not in result.output


def test_a_short_calibration_is_no_reason_to_doubt_a_radius_that_follows_its_misses(blocks):
    lights, rows = {}, blocks[3]
    for rule in ("split", "aci"):
        predictor = predictor_for(f"ewma+{rule}").fit(rows[:300]).calibrate(rows[300:400])
        lights[rule] = audit(predictor, rows[400:], audits=["m_eff"])["m_eff"]
    assert lights["split"]["light"] == "amber" and not lights["split"]["adapts"]
    assert lights["aci"]["light"] is None and lights["aci"]["verdict"].endswith("this one follows its misses")


# ---------------------------------------------------------------------- promised and seen


def test_promises_say_no():
    assert Promise(0.9, 0.91, 400, 0.85, 0.95).word == "kept"
    assert Promise(0.9, 0.80, 400, 0.85, 0.95).word == "short"
    assert Promise(0.9, 0.70, 400, 0.85, 0.95).word == "far"
    assert Promise(0.9, 0.70, 20, 0.60, 1.00).word == "kept"  # 20 rows cannot tell
    assert Promise(0.9, 0.74, 200, 0.70, 1.00).word == "short"  # 15 points over 200 rows are told however wide the band
    assert Promise(0.9, 0.76, 900, 0.70, 1.00).word == "kept"
    assert Promise(0.9, 0.99, 400, 0.85, 0.95).word == "wide"


# ---------------------------------------------------------------------- one light


def test_a_network_in_order_gets_a_green_light(predictor, blocks):
    found = audit(predictor, blocks[3])
    assert found["coverage"]["value"] == pytest.approx(predictor.copy().run(blocks[3]).joint)
    light = overall(found)
    assert light["light"] == "green" and "% of the 600 rows were inside" in light["verdict"], light


def test_readings_that_have_grown_get_a_red_one(predictor, blocks):
    found = audit(predictor, blocks[3].with_values(1.6 * blocks[3].values))
    light = overall(found)
    assert light["light"] == found["coverage"]["light"] == "red"
    assert light["verdict"].startswith("do not rely on these sets") and light["reasons"][0].startswith("only ")


def test_a_light_needs_something_to_judge():
    assert overall({})["light"] == overall({"pit": {"skipped": "no law", "light": None}})["light"] == "grey"


def test_lights_can_be_told_from_files_written_before_there_were_any():
    before = {"m_eff": {"value": 12.0, "verdict": "x", "coverage_band": [0.6, 1.0]}}
    assert overall(before)["light"] == "amber"


def test_what_is_said_on_the_warm_up_does_not_contradict_itself():
    """Only the sweep judges the warm-up; how long a wrong start shows is about restarts."""
    for apart in (0, 3, 30):
        assert "warm-up" not in contraction_words("rho_dG", 0.99, "x", float("nan") if apart else 300.0, apart, 30, 400)
    told = warmup_words([1, 25, 50, 100, 200], [3.19, 3.05, 3.04, 3.03, 3.03], 50)
    assert told.endswith("50 is enough")
    assert warmup_words([1, 25, 50], [3.19, 3.05, 3.04], 50).endswith("too few rows to say whether 50 is enough")


# ---------------------------------------------------------------------- the page


def test_the_page_says_it_in_plain_words_first(found, tmp_path):
    page = tmp_path / "audits.html"
    write_page(page, {"a model": found})
    text = page.read_text()
    assert text.index('class="light') < text.index("<h3>")
    shown = re.findall(r"<h3>(.*?)</h3>", text)
    assert shown == [AUDITS[name].title for name in DEFAULT if name != "plug_in"] and "Not asked here" in text
    for name in DEFAULT:
        assert not re.search(r"[a-z]_[a-zA-Z]", AUDITS[name].title) and AUDITS[name].title in text, name
        assert AUDITS[name].symbol and f"<code>{name}</code>" in text
    assert "How the light is set" in text and "green" in text and "amber" in text and "red" in text


def test_titles_and_symbols_stand_in_the_docs():
    from pathlib import Path

    docs = (Path(__file__).parents[2] / "docs" / "audits.md").read_text()
    for name in AUDITS:
        assert f"| `{name}`" in docs, name


def test_json_has_the_light(predictor, dead, tmp_path):
    predictor.save(tmp_path / "model")
    dead.to_npz(tmp_path / "later.npz")
    asked = ["audit", str(tmp_path / "model"), str(tmp_path / "later.npz"), "--json", "--audits", "coverage,m_eff"]
    content = json.loads(CliRunner().invoke(app, asked).stdout)
    assert content["light"] == content["coverage"]["light"] == "amber" and content["m_eff"]["light"] == "green"


def test_the_report_of_a_benchmark_shows_the_light(tmp_path):
    from jointset.bench.report import render

    (tmp_path / "_audits").mkdir()
    records = {
        "m_eff": {"value": 12.0, "verdict": "worth little", "coverage_band": [0.6, 1.0]},
        "pit": {"failed": "E: x"},
    }
    (tmp_path / "_audits" / "ett-7--kalman.json").write_text(json.dumps({"cell": "ett-7", **records}))
    page = render(tmp_path)
    assert "amber: use these sets with care: worth little; the audit pit could not be done (E: x)." in page
    assert "failed: E: x" in page
