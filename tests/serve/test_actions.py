"""What operators do: acknowledge, silence, calibrate again; and what it is after a restart."""

import json

import numpy as np
import pytest

pytest.importorskip("fastapi")

from conftest import client_of
from jointset.live.alarms import state_to_json
from jointset.live.evidence import rank_among
from jointset.live.happenings import GREEN, happening
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.live.relearning import recalibrated
from jointset.live.standing import engine_for, of_parts, parts_of, start
from jointset.live.store import ROW, Entry
from jointset.methods import predictor_for
from jointset.streaming import take_step

FIRST = 1_700_000_000


def shifted(network, count, seed=0, by=0.0, first=FIRST):
    """Rows as the model expects them, moved by so many standard deviations."""
    rng, predictor = np.random.default_rng(seed), network.standing.predictor
    values = predictor.shift + predictor.scale * (0.7 * rng.standard_normal((count, len(predictor.sensors))) + by)
    return [
        {"time": first + 300 * i, "values": dict(zip(predictor.sensors, row, strict=True))}
        for i, row in enumerate(values.tolist())
    ]


@pytest.fixture
def alarmed(model, tmp_path):
    """A service that has raised the alarm of a lasting change."""
    network = open_network("city", model, tmp_path / "store", AS_USUAL._replace(every=20))
    with client_of({"city": network}) as client:
        assert client.post("/city/observations", json=shifted(network, 20)).status_code == 200
        client.post("/city/observations", json=shifted(network, 100, 1, 4.0, FIRST + 300 * 20))
        opened = client.get("/city/alarms").json()["alarms"]
        assert "sustained" in {one["kind"] for one in opened}
        yield client, network, next(one["id"] for one in opened if one["kind"] == "sustained")
    network.close()


def test_what_was_done_about_an_alarm_survives_a_restart(alarmed, model, tmp_path):
    client, network, alarm = alarmed
    assert client.post(f"/city/alarms/{alarm}/acknowledge").json()["changes"][0]["event"] == "acknowledged"
    assert client.post(f"/city/alarms/{alarm}/silence?minutes=30").json()["changes"][0]["event"] == "silenced"
    before = client.get("/city/alarms").json()
    network.close()
    again = open_network("city", model, tmp_path / "store")
    with client_of({"city": again}) as other:
        assert other.get("/city/alarms").json() == before
    again.close()
    one = next(one for one in before["alarms"] if one["id"] == alarm)
    assert one["acknowledged"] and one["silenced_until"] == FIRST + 300 * 119 + 1800


def test_actions_on_what_is_not_there_are_refused_and_change_nothing(alarmed):
    client, network, _ = alarmed
    before = network.standing
    for path in ("alarms/none/acknowledge", "alarms/none/silence", "alarms/none/clear", "recalibrate"):
        answer = client.post(f"/city/{path}")
        assert answer.status_code == 422 and answer.json()["error"]
    assert network.standing is before


def test_a_change_that_was_acknowledged_can_be_calibrated_on(alarmed, model, tmp_path):
    client, network, alarm = alarmed
    client.post(f"/city/alarms/{alarm}/acknowledge")
    found = client.post("/city/recalibrate").json()
    assert found["scores"] >= 20
    assert {one["event"] for one in found["changes"]} == {"cleared"}
    assert "sustained" not in {one["kind"] for one in client.get("/city/alarms").json()["alarms"]}
    later = shifted(network, 60, 2, 4.0, FIRST + 300 * 120)
    assert np.mean([one["inside"] for one in client.post("/city/observations", json=later).json()]) > 0.6
    region = client.get("/city/region").json()
    network.close()
    network.store.__init__(network.store.path)
    with network.store.writing():
        network.store.connection.execute("DELETE FROM snapshots")  # so that the whole log is gone through again
    network.store.close()
    told = []
    again = open_network("city", model, tmp_path / "store", notice=told.append)
    with client_of({"city": again}) as other:
        assert other.get("/city/region").json() == region
    again.close()
    assert told == []


def test_limits_of_jumps_are_renewed_by_a_calibration_and_after_a_restart(panel, tmp_path):
    ring = np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
    rows, model = panel.with_graph(ring), tmp_path / "ring"
    predictor_for("kalman").fit(rows[:800]).calibrate(rows[800:]).save(model)
    network = open_network("city", model, tmp_path / "store")
    limits = [network.engine.jumps.limits.tolist()]
    with client_of({"city": network}) as client:
        client.post("/city/observations", json=shifted(network, 300))
        for count in (300, 60):  # the second are too few for limits of jumps: those of the first stay
            assert client.post(f"/city/recalibrate?rows={count}").status_code == 200
            limits.append(network.engine.jumps.limits.tolist())
        client.post("/city/observations", json=shifted(network, 20, 2, 4.0, FIRST + 300 * 300))
        stood = network.standing
    network.close()
    assert limits[0] != limits[1] == limits[2]
    again = open_network("city", model, tmp_path / "store")
    again.close()
    assert again.engine.jumps.limits.tolist() == limits[2]
    assert state_to_json(again.standing.alarms) == state_to_json(stood.alarms)


def test_recalibrate_says_why_it_cannot(served, rows):
    served.client.post("/city/observations", json=rows[:30])
    answer = served.client.post("/city/recalibrate?rows=30")
    assert answer.status_code == 422 and "30 rows" in answer.json()["error"]


def test_changes_are_in_the_log_once(alarmed):
    client, _, _ = alarmed
    changes = client.get("/city/alarms?limit=1000").json()["changes"]
    keys = [json.dumps(one, sort_keys=True) for one in changes]
    assert keys and len(set(keys)) == len(keys)
    raised = [one["id"] for one in changes if one["event"] == "raised"]
    assert len(set(raised)) == len(raised)


@pytest.mark.parametrize("method", ["factor", "group+aci"])
def test_a_lasting_change_is_seen_also_by_sets_of_several_radii(method, panel):
    predictor = predictor_for(method).fit(panel[:500]).calibrate(panel[500:900])
    engine = engine_for(predictor, 300)
    standing = start(predictor, engine)
    state, inside = standing.alarms, panel.values[900:1200]
    usual = [rank_among(state.reference, predictor.copy().update(y).score) for y in inside[:100]]
    assert 0.3 < np.mean(usual) < 0.8  # ranks among scores of the same kind
    raised = False
    for t, y in enumerate(predictor.shift + 2.5 * (inside - predictor.shift)):
        step = take_step(predictor, y)
        state, changes = engine.step(state, happening(step, FIRST + 300.0 * t, GREEN))
        predictor, raised = step.after, raised or "sustained" in {one.kind for one in changes}
    assert raised


def test_calibrating_again_keeps_the_sets_of_the_next_steps(panel):
    predictor = predictor_for("kalman").fit(panel[:500]).calibrate(panel[500:900], horizon=3)
    engine = engine_for(predictor, 300)
    entries = [Entry(t + 1, ROW, FIRST + 300 * t, FIRST + 300 * t, y, {}) for t, y in enumerate(panel.values[900:1200])]
    again = recalibrated(start(predictor, engine), engine, entries)[0]
    assert again.horizon == 3 and len(again.predictor.predict(horizon=3).steps.log_volume) == 3
    few = recalibrated(start(predictor, engine), engine, entries[:75])[0]
    assert few.predictor.n_calibration == 26


def test_a_snapshot_keeps_the_fills_that_a_new_calibration_learned(panel):
    model = predictor_for("kalman").fit(panel[:500]).calibrate(panel[500:900]).learn_to_fill(panel[500:900])
    standing = start(model, engine_for(model, 300))
    predictor = (
        standing.predictor.copy().calibrate(3.0 * panel.values[900:1200]).learn_to_fill(3.0 * panel.values[900:])
    )
    parts = parts_of(standing._replace(predictor=predictor))
    y = np.where(np.arange(panel.n_sensors) == 2, np.nan, panel.values[1000])
    kept = of_parts(parts, model).predictor.impute(y)
    np.testing.assert_allclose(kept.upper, predictor.impute(y).upper)
    assert (kept.upper - kept.lower)[2] > 1.5 * (model.impute(y).upper - model.impute(y).lower)[2]
