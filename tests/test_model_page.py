"""The page of a fitted model: one file, a verdict, the right sensors named; for any method, with and without rows."""

import base64
import json
import re
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from jointset import Panel, generate_grssf
from jointset.cli import app
from jointset.methods import predictor_for
from jointset.report.model_page import CELLS, course_of, write_model_page

PANEL = generate_grssf("A", n=12, seed=4, length=2400).panel
TRAIN, CALIBRATION, LATER = PANEL[:1400], PANEL[1400:2000], PANEL[2000:]
NEAR = [0, 1, 2]  # one community


def troubled():
    """Later rows with an incident in one community, and a sensor that is stuck at the end."""
    values = LATER.values.copy()
    values[150:250, NEAR] -= 6.0
    values[-80:, 9] = 1.25
    return LATER.with_values(values)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder and its rows."""
    place = tmp_path_factory.mktemp("model")
    predictor_for("kalman").fit(TRAIN).calibrate(CALIBRATION).save(place / "model")
    troubled().to_npz(place / "rows.npz")
    return place


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def invoked(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_report_writes_one_page_that_needs_nothing_else(folder):
    done = invoked("report", folder / "model", folder / "rows.npz", "--out", folder / "page.html")
    assert done.exit_code == 0, done.output
    page = (folder / "page.html").read_text()
    assert "default-src 'none'" in page and not re.search(r'(src|href)="(?!data:)', page)
    found = data_of(page)
    run = predictor_for("kalman").fit(TRAIN).calibrate(CALIBRATION).run(troubled())
    np.testing.assert_array_equal(numbers(found["scores"], "<f4"), run.score.astype("f4"))
    np.testing.assert_array_equal(numbers(found["inside"], "i1"), run.inside)
    upper = numbers(found["detail"]["upper"], "<f4").reshape(-1, 12)
    np.testing.assert_array_equal(upper, run.upper.astype("f4"))
    shares = numbers(found["detail"]["share"], "<f4").reshape(-1, 12)
    assert (shares >= 0).all() and (shares.sum(axis=1) <= 1.0 + 1e-5).all()
    assert set(np.argsort(-shares[150:250].mean(axis=0))[:3]) == set(NEAR)


def test_the_verdict_can_say_no_and_names_the_sensor_that_is_stuck(folder):
    invoked("report", folder / "model", folder / "rows.npz", "--out", folder / "page.html")
    found = data_of((folder / "page.html").read_text())
    assert found["verdict"]["light"] in ("amber", "red")
    assert (
        found["verdict"]["sentence"].startswith("Only ") and "stuck at the end: 's009'" in found["verdict"]["sentence"]
    )
    assert found["ailing"] == {"s009": "stuck"}
    stuck = [one for one in found["alarms"] if one["kind"] == "stuck"]
    assert [one["sensors"] for one in stuck] == [["s009"]] and stuck[0]["until"] is None
    changed = next(one for one in found["alarms"] if one["kind"] == "sustained" and one["row"] >= 150)
    assert changed["row"] < 165 and {"s000", "s001"} <= set(changed["sensors"])
    assert 250 <= changed["end"] < 290 and changed["until"] is not None


def test_rows_as_promised_get_a_green_light(tmp_path):
    predictor = predictor_for("kalman").fit(TRAIN).calibrate(CALIBRATION)
    write_model_page(tmp_path / "page.html", "calm", predictor, LATER)
    found = data_of((tmp_path / "page.html").read_text())
    assert found["verdict"]["light"] == "green" and found["ailing"] == {}


def test_a_model_alone_shows_its_calibration_and_its_next_set(folder):
    done = invoked("report", folder / "model")
    assert done.exit_code == 0, done.output
    found = data_of((folder / "model" / "report.html").read_text())
    predictor = predictor_for("kalman").fit(TRAIN).calibrate(CALIBRATION)
    np.testing.assert_array_equal(numbers(found["scores"], "<f4"), predictor.calibration_scores.astype("f4"))
    np.testing.assert_allclose(found["next"][0]["lower"], predictor.predict().bounds[0], rtol=1e-5)
    assert found["verdict"]["light"] == "grey" and found["detail"]["count"] == 0


def test_fit_writes_the_page_of_its_test_rows(tmp_path):
    troubled().to_npz(tmp_path / "rows.npz")
    out = tmp_path / "page.html"
    done = invoked("fit", tmp_path / "rows.npz", "--out", tmp_path / "m", "--method", "kalman", "--html", out)
    assert "Open" in done.output and data_of(out.read_text())["count"] == 40, done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{0}/model", "{0}/none.csv"), "none.csv"),
        (("{0}", "{0}/rows.npz"), "is not a model folder"),
        (("{0}/model", "--out", "{0}/page.pdf"), "must end in .html"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, arguments, words):
    done = invoked("report", *(part.format(folder) for part in arguments))
    assert done.exit_code == 2 and words in done.output and len(done.output.splitlines()) == 1
    assert not (folder / "page.pdf").exists()


@pytest.mark.parametrize("method", ["ewma:box+aci", "factor", "group+dtaci", "copula", "spci", "quick"])
def test_any_method_has_a_page(method, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = predictor_for(method).fit(TRAIN[-400:]).calibrate(CALIBRATION[:300])
    rows = LATER.values[:60].copy()
    rows[20:25, 3] = np.nan
    rows[30] = np.nan
    write_model_page(tmp_path / "page.html", method, predictor, Panel(rows, PANEL.sensors))
    found = data_of((tmp_path / "page.html").read_text())
    assert found["times"] is None and numbers(found["inside"], "i1")[30] == -1
    write_model_page(tmp_path / "page.html", method, predictor)


def test_long_blocks_keep_single_readings_of_their_last_rows(monkeypatch):
    predictor = predictor_for("kalman").fit(TRAIN).calibrate(CALIBRATION)
    whole = course_of(predictor, LATER)
    assert len(whole.told.shares) == min(len(LATER), CELLS // 12)
    monkeypatch.setattr("jointset.report.model_page.CELLS", 12 * 50)
    cut = course_of(predictor, LATER)
    np.testing.assert_allclose(cut.told.shares, whole.told.shares[-50:], atol=1e-6)
    np.testing.assert_allclose(cut.run.score, whole.run.score)
