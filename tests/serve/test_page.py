"""The page's routes: files without anything inline, rows in columns that are those of the history, tokens for data."""

import re

import numpy as np
import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from jointset import GraphLGSSM, JointPredictor
from jointset.live.app import make_app
from jointset.live.security import Guard
from jointset.next_set import announced

FIELDS = ("value", "lower", "upper", "share")


def unpacked(content):
    """Columns of rows, as the page's scripts read them."""
    rows, sensors = np.frombuffer(content, "<u4", 2)
    at, found = 8, {}
    kinds = [("number", "<f8", 1), ("time", "<f8", 1), ("score", "<f4", 1), ("radius", "<f4", 1)]
    kinds += [(field, "<f4", sensors) for field in FIELDS] if sensors else []
    for name, kind, wide in [*kinds, ("inside", "i1", 1)]:
        count = int(rows * wide)
        found[name] = np.frombuffer(content, kind, count, at).reshape((-1, wide) if wide > 1 else -1)
        at += found[name].nbytes
    assert at == len(content)
    return found


def test_the_page_and_its_files_are_served_and_nothing_is_inline(served):
    page = served.client.get("/")
    assert page.status_code == 200 and "script-src 'self'" in page.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]*src=)|<style|style=|onclick=|https?:", page.text)
    for name in re.findall(r'"/pages/([^"]+)"', page.text):
        assert served.client.get(f"/pages/{name}").status_code == 200, name


@pytest.mark.parametrize("name", ["none.js", "..%2Fapp.py", "%2e%2e/%2e%2e/parts.py", "__init__.py"])
def test_no_other_file_is(served, name):
    assert served.client.get(f"/pages/{name}").status_code == 404


def test_columns_are_the_rows_of_the_history(served, rows):
    rows[3]["values"] = dict.fromkeys(rows[3]["values"])
    rows[4]["values"]["s002"] = None
    served.client.post("/city/observations", json=rows[:12])
    found = unpacked(served.client.get("/city/columns?limit=10&detail=true").content)
    past = served.client.get("/city/history?limit=10").json()["rows"]
    assert found["number"].tolist() == [row["row"] for row in past] and len(past) == 10
    np.testing.assert_allclose(found["radius"], [row["radius"] for row in past], rtol=1e-6)
    assert found["inside"].tolist() == [{True: 1, False: 0, None: -1}[row["inside"]] for row in past]
    assert np.isnan(found["score"][1]) and np.isnan(found["value"][1]).all() and np.isnan(found["value"][2, 2])
    upper = [[row["bounds"][name][1] for name in served.network.sensors] for row in past]
    np.testing.assert_allclose(found["upper"], upper, rtol=1e-6)
    shares = [[row["shares"][name] or 0.0 for name in served.network.sensors] for row in past]
    np.testing.assert_allclose(np.nan_to_num(found["share"]), shares, atol=1e-5)


def test_columns_between_numbers_and_of_an_empty_store(served, rows):
    assert unpacked(served.client.get("/city/columns?detail=true").content)["score"].size == 0
    served.client.post("/city/observations", json=rows[:9])
    found = unpacked(served.client.get("/city/columns?after=2&before=7&limit=3").content)
    assert found["number"].tolist() == [4, 5, 6] and "value" not in found


def test_more_columns_than_a_browser_should_take_are_refused_in_one_line(served):
    answer = served.client.get("/city/columns?limit=5000&detail=true")
    assert answer.status_code == 422 and answer.json()["error"] == "limit must be 1 to 3,000, got 5000"
    assert served.client.get("/none/columns").status_code == served.client.get("/none/drawing").status_code == 404


def test_rows_without_single_readings_come_from_the_index_alone(served):
    query = "EXPLAIN QUERY PLAN SELECT number, seconds, score, radius, inside FROM log "
    query += "WHERE kind = 'row' AND number > 0 AND number < 99 ORDER BY number DESC LIMIT 9"
    assert "COVERING INDEX log_outcomes" in str(served.network.store.reader.execute(query).fetchall())


def test_the_drawing_has_a_place_for_every_sensor(served):
    found = served.client.get("/city/drawing").json()
    n = len(found["sensors"])
    assert len(found["at"]) == n and not found["mapped"] and found["own"]["power"] == 0.5
    assert all(0 <= a < b < n for a, b in found["edges"])
    assert len(found["own"]["quantiles"]) == n


def test_with_tokens_the_page_opens_and_its_data_does_not(served):
    app = make_app({"city": served.network}, Guard(tokens=(b"a-long-enough-token",)))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/").status_code == client.get("/pages/board.css").status_code == 200
        assert client.get("/city/columns").status_code == client.get("/city/drawing").status_code == 401
        known = {"Authorization": "Bearer a-long-enough-token"}
        assert client.get("/city/columns", headers=known).status_code == 200


def test_what_is_announced_is_the_next_set(served, rows):
    served.client.post("/city/observations", json=rows[:3])
    found = served.client.get("/city/announced").json()["steps"]
    region = served.client.get("/city/region").json()
    assert len(found) == 1 and found[0]["upper"] == pytest.approx(
        [region["bounds"][s][1] for s in served.network.sensors]
    )
    assert found[0]["own"][0] == pytest.approx([region["own"][s][0] for s in served.network.sensors], rel=1e-5)


def test_a_horizon_is_announced_step_by_step(panel):
    train, _, calibration, _ = panel.split()
    predictor = JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration, horizon=3)
    steps = announced(predictor)
    sets = predictor.predict(horizon=3)
    np.testing.assert_allclose([step["lower"] for step in steps], sets.bounds[0], rtol=1e-5)
    np.testing.assert_allclose([step["own"][1] for step in steps], sets.own_bounds[1], rtol=1e-5)
