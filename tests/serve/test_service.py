"""What a sender and a reader of the service are promised."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from jointset.cli import app
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.methods import load_predictor
from jointset.streaming import Stream

DOCS = Path(__file__).parents[2] / "docs"


def posted(served, rows, **headers):
    return served.client.post("/city/observations", json=rows, headers=headers)


def streamed(model, rows):
    return list(Stream(load_predictor(model)).answers(json.dumps(row) for row in rows))


def test_answers_are_those_of_stream_singly_and_in_batches(served, rows):
    one, rest = posted(served, rows[0]), posted(served, rows[1:40])
    assert (one.status_code, rest.status_code) == (200, 200)
    assert [one.json(), *rest.json()] == streamed(served.model, rows[:40])


def test_partial_rows_are_scored_on_what_was_read(served, rows):
    partial = {"time": rows[0]["time"], "values": dict(list(rows[0]["values"].items())[:3])}
    answer = posted(served, partial).json()
    assert answer["observed"] == 3
    assert [answer] == streamed(served.model, [partial])


def test_region_is_what_predict_prints_after_the_same_rows(served, rows, tmp_path):
    posted(served, rows[:20])
    live = Stream(load_predictor(served.model))
    list(live.answers(json.dumps(row) for row in rows[:20]))
    live.predictor.save(tmp_path / "after")
    printed = CliRunner().invoke(app, ["predict", str(tmp_path / "after"), "--json"]).stdout
    assert served.client.get("/city/region").json() == json.loads(printed)


def test_a_row_sent_again_counts_once_and_is_answered_as_before(served, rows):
    first = posted(served, rows[:10]).json()
    region = served.client.get("/city/region").json()
    again = posted(served, rows[:10]).json()
    assert [one.pop("repeated") for one in again] == [True] * 10
    assert again == first
    assert served.client.get("/city/region").json() == region
    assert len(served.client.get("/city/history").json()["rows"]) == 10


def test_a_time_that_was_answered_is_not_answered_anew_with_other_readings(served, rows):
    first = posted(served, rows[0]).json()
    other = posted(served, {**rows[1], "time": rows[0]["time"]}).json()
    assert other == {**first, "repeated": True, "differs": True}


def test_rows_of_one_request_with_one_time_count_once(served, rows):
    twice = posted(served, [rows[0], rows[0]]).json()
    assert twice[1] == {**twice[0], "repeated": True}
    assert len(served.client.get("/city/history").json()["rows"]) == 1


def test_history_is_oldest_first_with_times_as_given(served, rows):
    posted(served, rows[:30])
    found = served.client.get("/city/history?limit=5").json()["rows"]
    assert [row["time"] for row in found] == [row["time"] for row in rows[25:30]]
    assert [row["values"] for row in found] == [row["values"] for row in rows[25:30]]
    after = served.client.get("/city/history?limit=4&after=10&fields=values").json()["rows"]
    assert [row["row"] for row in after] == [11, 12, 13, 14]
    assert "bounds" not in after[0]
    between = served.client.get("/city/history", params={"since": rows[3]["time"], "until": rows[5]["time"]}).json()
    assert [row["time"] for row in between["rows"]] == [row["time"] for row in rows[3:6]]


def test_history_as_tables(served, rows, tmp_path):
    import pandas as pd

    posted(served, rows[:7])
    csv = served.client.get("/city/history?format=csv")
    (tmp_path / "a.csv").write_bytes(csv.content)
    (tmp_path / "a.parquet").write_bytes(served.client.get("/city/history?format=parquet").content)
    tables = [pd.read_csv(tmp_path / "a.csv", float_precision="round_trip"), pd.read_parquet(tmp_path / "a.parquet")]
    names = list(rows[0]["values"])
    for table in tables:
        assert table["time"].tolist() == [row["time"] for row in rows[:7]]
        np.testing.assert_array_equal(table[names].to_numpy(), [list(row["values"].values()) for row in rows[:7]])


def test_late_rows_are_kept_and_do_not_move_the_set(served, rows):
    posted(served, [*rows[:5], rows[8]])
    region = served.client.get("/city/region").json()
    late = posted(served, rows[6]).json()
    assert late == {"row": 7, "time": rows[6]["time"], "late": True}
    assert served.client.get("/city/region").json() == region
    assert served.client.get("/city/history?limit=1").json()["rows"][0]["values"] == rows[6]["values"]
    assert posted(served, rows[9]).json()["score"] is not None


def test_a_clock_set_back_and_a_wild_one_stop_nothing(served, rows):
    def at(row, seconds):
        return {**row, "time": seconds}

    posted(served, [at(rows[0], 10**9), at(rows[1], 10**9 + 300)])
    wild = posted(served, [at(rows[2], 4 * 10**9), at(rows[3], 10**9 + 600), at(rows[4], 10**9 + 900)]).json()
    assert all("score" in answer for answer in wild)
    back = posted(served, [at(row, 10**8 + 300 * i) for i, row in enumerate(rows[5:10])]).json()
    assert ["score" in answer for answer in back] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "empty"),
        ("{", "not JSON"),
        ("[]", "0 rows"),
        ("[1, 2]", "row 1 is no object"),
        ('{"values": {}}', "no time"),
        ('{"time": true, "values": {}}', "is no time"),
        ('{"time": "noon", "values": {}}', "is no time"),
        ('{"time": 1e30, "values": {}}', "is no time"),
        ('{"time": 99999999999999999999, "values": {"s000": 1}}', "is no time"),
        ('{"time": 18446744073709551616, "values": {"s000": 1}}', "is no time"),
        ('{"time": "2012-03-01\\ud80000:05:00", "values": {"s000": 1}}', "is no time"),
        ('{"time": 5, "values": {"nobody": 1}}', "unknown sensor 'nobody'"),
        ('{"time": 5, "values": {"s000": "x"}}', "no finite number"),
        ('{"time": 5, "values": {"s000": 1, "s000": 2}}', "repeats 's000'"),
        ('{"time": 1000000000, "values": {"s000": 1e300}}', "row 1 (1000000000)"),
        ('{"time": 5, "values": 3}', "values"),
        ("[" * 100_000, "not JSON"),
        ('{"time": 5, "values": {"s000": ' + "9" * 5000 + "}}", "JSON"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_a_refused_request_is_one_line_and_changes_nothing(served, rows, body, words):
    posted(served, rows[:3])
    before = served.client.get("/city/region").json(), served.network.standing
    answer = served.client.post("/city/observations", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert words in answer.json()["error"] and "\n" not in answer.json()["error"]
    assert (served.client.get("/city/region").json(), served.network.standing) == before
    assert len(served.client.get("/city/history").json()["rows"]) == 3


@pytest.mark.parametrize("kind", ["application/xml", "multipart/form-data; boundary=x", ""])
def test_a_content_type_that_is_not_known_is_415(served, kind):
    answer = served.client.post("/city/observations", content=b"<a/>", headers={"content-type": kind})
    assert answer.status_code == 415
    assert (
        f"Content-Type '{kind.partition(';')[0] or 'none'}' is not known here: send one of application/json"
        in answer.json()["error"]
    )


def test_one_bad_row_refuses_its_whole_request(served, rows):
    answer = posted(served, [rows[0], {"time": rows[1]["time"], "values": {"s001": 1e200}}])
    assert answer.status_code == 422 and "row 2" in answer.json()["error"]
    assert served.client.get("/city/history").json() == {"rows": []}


def test_a_restart_goes_on_to_the_same_bits(model, rows, tmp_path):
    often = AS_USUAL._replace(every=7)
    network = open_network("city", model, tmp_path / "a", often)
    whole = open_network("city", model, tmp_path / "b")
    for start in range(0, 40, 5):
        body = json.dumps(rows[start : start + 5]).encode()
        assert network.post(body, "json").result(10) == whole.post(body, "json").result(10)
        network.close()
        network = open_network("city", model, tmp_path / "a", often)
        assert network.last_score == whole.last_score
    assert network.standing.alarms.log_r == whole.standing.alarms.log_r
    for name in ("filter_state", "calibration_state", "watch", "last_time"):
        assert repr(getattr(network.standing.predictor, name)) == repr(getattr(whole.standing.predictor, name))
    network.close()
    whole.close()


def test_service_routes(served, rows):
    get = served.client.get
    assert get("/health").json()["status"] == "ok"
    assert get("/ready").json() == {"status": "ready", "rows": {"city": 0}}
    assert get("/networks").json()["networks"][0]["sensors"] == list(rows[0]["values"])
    posted(served, rows[:60])
    trust = get("/city/trust").json()
    assert trust["light"] in ("green", "amber", "red") and "calibration of" in trust["verdict"]
    assert get("/city/alarms").json() == {"alarms": [], "changes": [], "row": 60}
    assert 'jointset_rows_total{network="city"} 60' in get("/metrics").text
    assert get("/nowhere/region").status_code == 404
    for answer, status in ((get("/city/sets"), 404), (served.client.delete("/city/alarms"), 405)):
        assert answer.status_code == status and "/docs lists the routes" in answer.json()["error"]
    assert "/{name}/observations" in get("/docs").text
    assert set(get("/openapi.json").json()["paths"]) >= {"/{name}/observations", "/{name}/history", "/metrics"}


def test_the_dashboard_and_the_docs_ask_for_what_the_service_tells(served, rows):
    served.client.post("/city/observations", json=rows[:2])
    told = set(re.findall(r"^(jointset_\w+)", served.client.get("/metrics").text, re.MULTILINE))
    board = json.loads((DOCS / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    section = (DOCS / "operating.md").read_text().partition("## Prometheus")[2].partition("\n## ")[0]
    for text in (asked, section, board["templating"]["list"][1]["query"]):
        assert set(re.findall(r"jointset_\w+", text)) <= told and "jointset_" in text
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24  # none lies on another
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
