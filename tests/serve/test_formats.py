"""Lists of plain rows are read in a faster way: what it takes is what the careful way takes, and no more."""

import json
import math

import pytest

pytest.importorskip("fastapi")

from conftest import client_of
from jointset.errors import InputError
from jointset.inputs.fleet import Fleet
from jointset.live.formats import Reader
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network

T = 1_700_000_000


def read(text, fast=True):
    """Rows of a body or its error, and whether the faster way took it."""
    reader = Reader(("a", "b", "a:"), Fleet())
    took = reader._plain_rows(text) is not None
    if not fast:
        reader._plain_rows = lambda text: None
    try:
        rows = reader.read(text.encode(), "json").rows
    except InputError as error:
        return str(error), took
    return [(row.time, row.seconds, [None if math.isnan(x) else x for x in row.values]) for row in rows], took


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (json.dumps([{"time": T, "values": {"a": 1.5, "b": None}}, {"time": T + 300, "values": {"b": 2}}]), True),
        (json.dumps([{"values": {"a:": -0.0}, "time": "2023-11-14T22:15:00Z"}], indent=1), True),
        (f'[{{"time" : {T}, "values"\n:\t{{}}}}]', True),
        (f'[{{"time": {T}, "values": {{"a": 1.0, "a": 2.0}}}}]', False),  # twice
        (f'[{{"time": {T}, "time": {T}, "values": {{"a": 1.0}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": 1.0, "a"\n: 2.0}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": 1.0, "\\u0061": 2.0}}}}]', False),
        (f'[{{"time": ":{T}", "values": {{"a": 1.0}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": true}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": NaN}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": Infinity}}}}]', False),
        (f'[{{"time": {T}, "values": {{"a": {10**400}}}}}]', False),
        (f'[{{"time": {T}, "values": {{"c": 1.0}}}}]', False),
        (f'[{{"time": {10**30}, "values": {{"a": 1.0}}}}]', False),
        (f'[{{"time": {T}, "values": [1.0, 2.0, 3.0]}}]', False),
        ("[]", False),
        ("[1]", False),
        ("[", False),
    ],
)
def test_both_ways_read_the_same(text, taken):
    found, took = read(text)
    assert took is taken
    assert (found, took) == read(text, fast=False)


def test_readings_by_other_names_in_every_format(model, rows, tmp_path):
    asked = AS_USUAL._replace(fleet=Fleet({"old": "s000"}))
    renamed = [
        {"time": row["time"], "values": {"old" if k == "s000" else k: v for k, v in row["values"].items()}}
        for row in rows
    ]
    wide = "\n".join(
        [",".join(["time", *renamed[1]["values"]]), ",".join(map(str, [rows[1]["time"], *rows[1]["values"].values()]))]
    )
    network = open_network("city", model, tmp_path / "store", asked)
    with client_of({"city": network}) as client:

        def post(body, kind):
            return client.post("/city/observations", content=body, headers={"content-type": kind})

        assert post(json.dumps(renamed[:1]), "application/json").status_code == 200
        assert post(wide, "text/csv").status_code == 200
        assert post(f"time,sensor,value\n{rows[2]['time']},old,1.5\n", "text/csv").status_code == 200
        assert post("m,sensor=old value=2.5 1900000000000000000\n", "text/plain").status_code == 200
        both = {"time": 1_900_001_000, "values": {"old": 1.0, "s000": 2.0}}
        refused = post(json.dumps([both]), "application/json")
        assert refused.status_code == 422 and "s000" in refused.json()["error"]
        kept = client.get("/city/history").json()["rows"]
    network.close()
    assert [row["values"]["s000"] for row in kept][:3] == [rows[0]["values"]["s000"], rows[1]["values"]["s000"], 1.5]


@pytest.mark.parametrize("values", [{"a": 1.0, "values": 2.0}, {"a": 1.0, "values": 2.0, "b": "x"}, [1.0, None, 2.0]])
def test_a_sensor_called_values_is_read_inside_values_and_beside_time(values):
    reader = Reader(("a", "b", "values"), Fleet())
    body = json.dumps({"time": T, "values": values}).encode()
    if "b" in values and isinstance(values, dict):
        with pytest.raises(InputError, match="sensor 'b'"):
            reader.read(body, "json")
        return
    for given in (body, json.dumps({"time": T, "a": 1.0, "values": 2.0}).encode()):
        assert reader.read(given, "json").rows[0].values.tolist()[::2] == [1.0, 2.0]
