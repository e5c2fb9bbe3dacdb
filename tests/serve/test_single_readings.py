"""Sensors that report one by one, as CSV and as InfluxDB line protocol, joined into rows by a stated rule."""

import gzip
import json
import time

import numpy as np
import pytest

pytest.importorskip("fastapi")

from jointset import GraphLGSSM, JointPredictor
from jointset.errors import InputError
from jointset.inputs.times import live_seconds
from jointset.live.joining import Rule, Single, hold, row_of
from jointset.live.line_protocol import points
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network


def lines_of(rows, names=None):
    """Rows as line protocol, a line a sensor."""
    return [
        f"traffic,sensor={name} value={value} {live_seconds(row['time'])}000000000"
        for row in rows
        for name, value in row["values"].items()
        if names is None or name in names
    ]


def post(client, text, kind="text/plain", **query):
    return client.post("/city/observations", content=text, headers={"content-type": kind}, params=query)


def test_readings_of_all_sensors_are_the_row_whatever_their_order(served, rows, model, tmp_path):
    whole = open_network("city", model, tmp_path / "whole")
    expected = whole.post(json.dumps(rows[:6]).encode(), "json").result(10)[0]
    rng = np.random.default_rng(0)
    mixed = [line for row in rows[:6] for line in rng.permutation(lines_of([row]))]
    found = [answer for line in mixed for answer in post(served.client, line).json()]
    assert found == expected
    whole.close()


def test_a_wide_point_is_a_row(served, rows):
    fields = ",".join(f"{name}={value}" for name, value in rows[0]["values"].items())
    found = post(served.client, f"traffic {fields} {live_seconds(rows[0]['time'])}", precision="s").json()
    assert [one["observed"] for one in found] == [len(rows[0]["values"])]


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("m", 60), ("h", 3600)])
def test_one_moment_is_one_time_in_every_unit(served, unit, seconds):
    moment = 1_700_002_800  # a full hour
    assert post(served.client, f"t,sensor=s000 value=0 {round(moment / seconds)}", precision=unit).json() == []
    assert list(served.network.held) == [moment]


def test_a_row_that_lacks_readings_waits_for_the_grace_period(served, rows):
    some = list(rows[0]["values"])[:3]
    assert post(served.client, "\n".join(lines_of(rows[:1], some))).json() == []
    assert served.network.held
    late = live_seconds(rows[0]["time"]) + 300 + 149
    name = some[0]
    assert post(served.client, f"t,sensor={name} value=0 {late}", precision="s").json() == []
    found = post(served.client, f"t,sensor={name} value=0 {late + 1}", precision="s").json()
    assert [one["observed"] for one in found] == [3]


def test_what_waits_survives_a_restart_and_then_counts(model, rows, tmp_path):
    first = open_network("city", model, tmp_path)
    lines = lines_of(rows[:1])
    first.post("\n".join(lines[:-1]).encode(), "line protocol").result(10)
    first.close()
    again = open_network("city", model, tmp_path)
    answer = again.post(lines[-1].encode(), "line protocol").result(10)[0]
    assert [one["observed"] for one in answer] == [len(lines)]
    assert (again.held, again.store.held()) == ({}, [])
    again.close()


def test_a_reading_sent_again_or_late_does_not_move_the_set(served, rows):
    lines = lines_of(rows[:2])
    post(served.client, "\n".join(lines))
    region = served.client.get("/city/region").json()
    assert post(served.client, lines[0]).json() == []
    name = next(iter(rows[0]["values"]))
    stamp = live_seconds(rows[0]["time"])
    late = post(served.client, f"t,sensor={name} value=0.123 {stamp}", precision="s").json()
    assert [one.get("late") for one in late] == [True]
    assert served.client.get("/city/region").json() == region


@pytest.mark.parametrize("step", [3, 2], ids=["between rows", "of a row"])
def test_a_late_reading_sent_again_is_not_kept_twice(served, rows, step):
    post(served.client, "\n".join(wide(rows[i], 10**9 + 300 * i) for i in (0, 2, 4)), precision="s")
    line = f"t,sensor={served.network.sensors[1]} value=0.125 {10**9 + 300 * step}"
    (first,), (again,) = (post(served.client, line, precision="s").json() for _ in range(2))
    assert first["late"] and again == {**first, "repeated": True}
    both = post(served.client, f"{line}\n{line.replace('0.125', '0.25')}\n{line}", precision="s").json()
    assert [one.get("repeated", False) for one in both] == [True, False, True]
    assert (served.network.standing.number, served.network.counts["repeated"]) == (5, 3)


def wide(row, seconds):
    """A row as one line, a field a sensor."""
    return f"t {','.join(f'{name}={value}' for name, value in row['values'].items())} {seconds}"


@pytest.mark.parametrize(("wrong", "late"), [(10**9 + 72_000, 2), (4 * 10**9, 0)], ids=["20 hours ahead", "wild"])
def test_a_clock_that_jumps_stops_nothing_and_tears_no_row(served, rows, wrong, late):
    """Every answer but those of the first rows is a whole row: the first sensor of a step does not count alone."""
    lines = [wide(rows[0], 10**9 - 600), wide(rows[1], 10**9 - 300), wide(rows[2], wrong)]
    assert len(post(served.client, "\n".join(lines), precision="s").json()) == 3
    lines = [wide(row, 10**9 + 300 * i) for i, row in enumerate(rows[3:20])]
    found = post(served.client, "\n".join(lines), precision="s").json()
    n = len(rows[0]["values"])
    assert [one.get("observed") for one in found] == [None] * late * n + [n] * (17 - late)


def test_held_readings_count_when_nothing_more_comes(model, rows, tmp_path):
    network = open_network("city", model, tmp_path, AS_USUAL._replace(cadence=1, grace=0))
    network.post(lines_of(rows[:1])[0].encode(), "line protocol").result(10)
    end = time.monotonic() + 10
    while network.standing.number == 0 and time.monotonic() < end:
        time.sleep(0.05)
    assert (network.standing.number, network.held) == (1, {})
    network.close()


def test_wide_and_long_csv(served, rows, model, tmp_path):
    names = list(rows[0]["values"])
    wide = [",".join(["time", *names])]
    wide += [",".join([row["time"], *map(repr, row["values"].values())]) for row in rows[:4]]
    found = post(served.client, "\n".join(wide), "text/csv").json()
    other = open_network("city", model, tmp_path / "long")
    long = ["time,sensor,value"]
    long += [f"{row['time']},{name},{value!r}" for row in rows[:4] for name, value in row["values"].items()]
    assert other.post("\n".join(long).encode(), "csv").result(10)[0] == found
    assert [one["observed"] for one in found] == [len(names)] * 4
    other.close()


def test_influx_clients_write_as_they_are_used_to(served, rows):
    body = gzip.compress("\n".join(lines_of(rows[:3])).encode())
    packed = {"content-encoding": "gzip", "content-type": "text/plain; charset=utf-8"}
    answer = served.client.post("/city/api/v2/write?bucket=b&org=o&precision=ns", content=body, headers=packed)
    assert (answer.status_code, answer.content) == (204, b"")
    assert served.network.standing.number == 3


def test_a_gzip_bomb_is_refused(served):
    bomb = gzip.compress(b"0" * (9 * 2**20))
    answer = served.client.post("/city/observations", content=bomb, headers={"content-encoding": "gzip"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("traffic", "is no line protocol"),
        ("traffic,sensor=s000 value=1", "no time stamp"),
        ("traffic,sensor=nobody value=1 5", "knows no sensor 'nobody'"),
        ('traffic,sensor=s000 value="x" 5', "no number"),
        ("traffic,sensor=s000 value=1e999 5", "no finite number"),
        ("traffic,sensor=s000 value=１２ 5", "no finite number"),
        ("traffic,sensor value=1 5", "is not name=value"),
        ("traffic,sensor=s000 value=1 noon", "no time stamp"),
        (" ,sensor=s000 value=1 5", "measurement"),
    ],
)
def test_lines_that_cannot_be_read_refuse_the_request(served, text, words):
    answer = post(served.client, f"traffic,sensor=s001 value=1 5\n{text}")
    assert answer.status_code == 422
    assert words in answer.json()["error"] and answer.json()["error"].startswith("line 2")
    assert served.network.held == {} and served.network.store.held() == []


def test_escapes_of_line_protocol():
    line = r'my\ city,tag\,a=b\=c f\ 1=1.5,text="a, b = \"c\"",on=true,n=-3i 17'
    assert list(points(1, line)) == [
        ("my city", {"tag,a": "b=c"}, {"f 1": 1.5, "text": r"a, b = \"c\"", "on": 1.0, "n": -3.0}, 17)
    ]
    assert list(points(1, "# a comment")) == []


def test_joining_keeps_the_latest_reading_of_a_step():
    rule, held = Rule(300, 30), {}
    for single in (Single(0, 610, 1.0), Single(0, 640, 2.0), Single(0, 620, 3.0), Single(1, 600, 4.0)):
        held = hold(held, rule.step(single.seconds), single)
    assert row_of(held[600], 2).tolist() == [2.0, 4.0]
    assert (rule.over(held, 929), rule.over(held, 930)) == ([], [600])


def test_an_absurd_reading_is_refused_at_once_and_spoils_no_row(served, rows):
    name = next(iter(rows[0]["values"]))
    answer = post(served.client, f"t,sensor={name} value=1e90 {live_seconds(rows[0]['time'])}", precision="s")
    assert answer.status_code == 422 and "absurd" in answer.json()["error"]
    assert served.network.held == {}
    assert len(post(served.client, "\n".join(lines_of(rows[:2]))).json()) == 2


def test_a_model_of_raw_readings_refuses_what_no_row_could_hold(panel, rows, tmp_path):
    train, _, calibration, _ = panel.split()
    raw = JointPredictor(GraphLGSSM(), standardize=False).fit(train).calibrate(calibration)
    raw.save(tmp_path / "raw")
    network = open_network("city", tmp_path / "raw", tmp_path / "store")
    name, time = network.sensors[0], live_seconds(rows[0]["time"])
    with pytest.raises(InputError, match=f"sensor '{name}': 1e.200 is too large"):
        network.post(f"t,sensor={name} value=1e200 {time}".encode(), "line protocol", "s").result(10)
    found = network.post("\n".join(lines_of(rows[:1])).encode(), "line protocol").result(10)[0]
    assert [one["observed"] for one in found] == [len(rows[0]["values"])]
    network.close()
