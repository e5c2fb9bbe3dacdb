"""Models that were fitted with a horizon: sets of the next steps over HTTP and on the socket, and after a restart."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from conftest import client_of
from jointset import GraphLGSSM, JointPredictor
from jointset.cli import app
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.methods import load_predictor
from jointset.streaming import Stream

LIVE = "ws://127.0.0.1/city/live"


@pytest.fixture(scope="module")
def ahead(panel, tmp_path_factory):
    """A model with sets for three steps."""
    folder = tmp_path_factory.mktemp("ahead") / "city"
    train, _, calibration, _ = panel.split()
    JointPredictor(GraphLGSSM()).fit(train).calibrate(calibration, horizon=3).save(folder)
    return folder


def test_the_region_of_a_horizon_is_what_predict_prints_after_the_same_rows(ahead, rows, tmp_path):
    network = open_network("city", ahead, tmp_path / "store", AS_USUAL._replace(every=7))
    with client_of({"city": network}) as client:
        client.post("/city/observations", json=rows[:10])
        live = Stream(load_predictor(ahead))
        list(live.answers(json.dumps(row) for row in rows[:10]))
        live.predictor.save(tmp_path / "after")
        printed = CliRunner().invoke(app, ["predict", str(tmp_path / "after"), "--horizon", "3", "--json"]).stdout
        found = client.get("/city/region?horizon=3").json()
        assert found == json.loads(printed) and len(found["times"]) == 3
        assert client.get("/networks").json()["networks"][0]["horizon"] == 3
        other = client.get("/city/region?horizon=4")
        assert other.status_code == 422 and "for a horizon of 3, not 4" in other.json()["error"]
    network.close()
    again = open_network("city", ahead, tmp_path / "store")
    with client_of({"city": again}) as client:
        assert client.get("/city/region?horizon=3").json() == found
    again.close()


def test_listeners_that_ask_hear_of_the_steps_ahead(ahead, rows, tmp_path):
    network = open_network("city", ahead, tmp_path)
    with client_of({"city": network}) as client, client.websocket_connect(f"{LIVE}?ahead=true") as socket:
        assert socket.receive_json()["horizon"] == 3
        assert socket.receive_json()["row"] == 0
        client.post("/city/observations", json=rows[:2])
        heard = [socket.receive_json() for _ in range(3)]
        assert [one["type"] for one in heard] == ["row", "row", "ahead"]
        assert heard[2] == {"type": "ahead", "row": 2, **client.get("/city/region?horizon=3").json()}
    network.close()


def test_a_model_without_a_horizon_says_so(served, rows):
    answer = served.client.get("/city/region?horizon=3")
    assert answer.status_code == 422 and "without a horizon" in answer.json()["error"]
    assert served.client.get("/city/region?horizon=1").json()["horizon"] == 1
    with served.client.websocket_connect(f"{LIVE}?ahead=true") as socket:
        assert socket.receive_json()["horizon"] is None
        served.client.post("/city/observations", json=rows[:2])
        assert [socket.receive_json()["type"] for _ in range(2)] == ["row", "row"]
