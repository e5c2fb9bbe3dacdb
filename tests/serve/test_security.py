"""Who may ask, how often and how much; what is told to browsers; what listens only on this machine."""

import asyncio
import errno
import json
import re
import socket
import threading
import time

import orjson
import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi")

from starlette.websockets import WebSocketDisconnect

from conftest import client_of
from jointset.cli import app
from jointset.errors import InputError
from jointset.live import feed, requests
from jointset.live import network as network_module
from jointset.live.opening import open_network
from jointset.live.security import Guard, Rates, read_tokens

LIVE = "ws://127.0.0.1/city/live"
TOKEN = "0123456789abcdef0123"


@pytest.fixture
def network(model, tmp_path):
    found = open_network("city", model, tmp_path / "store")
    yield found
    found.close()


def test_other_addresses_need_a_token_or_tls(model, tmp_path):
    given = ["serve", f"city={model}", "--store", str(tmp_path / "s"), "--host", "0.0.0.0", "--port", "0"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2 and "--token-file" in result.output
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["..", "a b", "", "x" * 80, ".hidden"])
def test_names_that_are_no_part_of_an_address_are_refused(model, tmp_path, name):
    result = CliRunner().invoke(app, ["serve", f"{name}={model}", "--store", str(tmp_path / "s")])
    assert result.exit_code == 2 and "cannot be called" in result.output
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["health", "docs", "networks", "pages"])
def test_names_that_the_service_has_itself_are_said_to_be_taken(model, tmp_path, name):
    result = CliRunner().invoke(app, ["serve", f"{name}={model}", "--store", str(tmp_path / "s")])
    assert result.exit_code == 2
    assert f"cannot be called {name!r}: the service has that name for itself" in " ".join(result.output.split())


def test_an_address_of_ipv6_is_told_in_brackets(model, tmp_path, monkeypatch):
    with socket.socket(socket.AF_INET6) as probe:
        if probe.connect_ex(("::1", 9)) not in (0, errno.ECONNREFUSED):
            pytest.skip("this machine has no ::1")
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    given = ["serve", f"city={model}", "--store", str(tmp_path / "s"), "--host", "::1", "--port", "0"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0 and re.search(r"serving on http://\[::1\]:[0-9]+/;", result.output)


@pytest.mark.parametrize("where", ["nowhere/alarms.jsonl", "."])
def test_an_alarm_log_that_cannot_be_written_is_told_before_there_is_a_store(model, tmp_path, where):
    given = ["serve", f"city={model}", "--store", str(tmp_path / "s"), "--alarm-log", str(tmp_path / where)]
    result = CliRunner().invoke(app, [*given, "--port", "70000"])
    assert result.exit_code == 2 and "cannot write" in result.output and not (tmp_path / "s").exists()


@pytest.mark.parametrize("port", ["taken", "70000"])
def test_a_port_that_cannot_be_used_is_told_before_there_is_a_store(model, tmp_path, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = str(taken.getsockname()[1]) if port == "taken" else port
        given = ["serve", f"city={model}", "--store", str(tmp_path / "s"), "--port", number]
        result = CliRunner().invoke(app, given)
    assert result.exit_code == 2 and f"port {number}" in result.output
    assert not (tmp_path / "s").exists()


def test_tokens_are_asked_for(network, rows):
    with client_of({"city": network}, Guard(tokens=(TOKEN.encode(),))) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
            answer = client.post("/city/observations", json=rows[0], headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "token" in answer.json()["error"] and network.standing.number == 0
        wrong = client.get("/city/region", headers={"authorization": "Bearer wrong"}).json()["error"]
        assert "not one of" in wrong and "not one of" not in client.get("/city/region").json()["error"]
        known = {"authorization": f"Bearer {TOKEN}"}
        assert client.post("/city/observations", json=rows[0], headers=known).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/metrics").status_code == 401
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(LIVE):
            pass
        with client.websocket_connect(LIVE, subprotocols=[f"bearer.{TOKEN}"]) as line:
            assert line.receive_json()["type"] == "hello"


def test_token_files(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{TOKEN}\n")
    path.chmod(0o600)
    assert read_tokens(path) == (TOKEN.encode(),)
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read_tokens(path)
    path.chmod(0o600)
    for text, words in (("", "no token"), ("short\n", "shorter")):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read_tokens(path)
    with pytest.raises(InputError, match="cannot read"):
        read_tokens(tmp_path / "nothing")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_pages_of_other_sites_cannot_write(served, rows, headers):
    answer = served.client.post("/city/observations", json=rows[0], headers=headers)
    assert answer.status_code == 403 and served.network.standing.number == 0


def test_the_page_of_the_service_itself_may(served, rows):
    headers = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    assert served.client.post("/city/observations", json=rows[0], headers=headers).status_code == 200


def test_bodies_and_rates_are_bounded(network, rows):
    with client_of({"city": network}, Guard(rate=5.0, burst=10.0, most_bytes=2_000)) as client:
        large = client.post("/city/observations", json=rows[:50])
        assert large.status_code == 413 and "2,000 bytes" in large.json()["error"]
        unsaid = client.post("/city/observations", content=(b" " * 1_000 for _ in range(4)))
        assert unsaid.status_code == 413
        answers = [client.get("/city/region") for _ in range(20)]
        assert {one.status_code for one in answers} == {200, 429}
        assert answers[-1].headers["retry-after"] == "1"
    assert network.standing.number == 0


def test_rates_are_kept_for_a_bounded_number_of_clients():
    rates = Rates(1.0, 1.0)
    for i in range(20_000):
        rates.wait(str(i), 0.0)
    assert len(rates._buckets) == 10_000


def test_headers_of_every_answer(served):
    for path in ("/health", "/city/region", "/docs", "/nowhere/region"):
        headers = served.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "unsafe-eval" not in headers["content-security-policy"]


def test_listeners_hear_rows_and_catch_up(served, rows):
    served.client.post("/city/observations", json=rows[:5])
    with served.client.websocket_connect(f"{LIVE}?after=3") as socket:
        assert socket.receive_json()["row"] == 5
        assert [socket.receive_json()["row"] for _ in range(2)] == [4, 5]
        answer = served.client.post("/city/observations", json=rows[5]).json()
        heard = socket.receive_json()
        assert heard["type"] == "row" and {key: heard[key] for key in answer} == answer
        assert heard["values"] == rows[5]["values"]


def heard_after(client, row):
    """What a listener that was cut off after a row is told, up to now."""
    with client.websocket_connect(f"{LIVE}?after={row}") as socket:
        found = [socket.receive_json()]
        changes = [one for one in client.get("/city/alarms?limit=1000").json()["changes"] if one["row"] > row]
        while sum(one["type"] != "alarm" for one in found) <= found[0]["row"] - row or len(changes) > sum(
            one["type"] == "alarm" for one in found
        ):
            found.append(socket.receive_json())
    return found


def test_a_listener_that_was_cut_off_hears_of_alarms_and_actions_too_in_order(served, rows):
    client, broken = served.client, [{**row, "values": {**row["values"]}} for row in rows[:60]]
    for row in broken[10:]:
        row["values"]["s003"] = None
    with client.websocket_connect(LIVE) as socket:
        client.post("/city/observations", json=broken[:50])
        alarm = client.get("/city/alarms").json()["alarms"][0]["id"]
        client.post(f"/city/alarms/{alarm}/acknowledge")
        client.post("/city/observations", json=broken[50:])
        live = [socket.receive_json()]
        while len(live) < 64:
            live.append(socket.receive_json())
    caught = heard_after(client, 5)
    assert caught[0]["after"] == 5
    assert [one["type"] for one in live[1:]].count("alarm") == 2
    assert live[1:] == sorted(live[1:], key=lambda one: (one["row"], one["type"] == "alarm"))
    assert caught[1:] == [one for one in live[1:] if one["row"] > 5]
    assert heard_after(client, 51)[1:] == [one for one in live[1:] if one["row"] > 51]


def test_a_listener_that_was_away_too_long_is_told_from_where_it_goes_on(served, rows, monkeypatch):
    monkeypatch.setattr(feed, "CATCH_UP", 10)
    broken = [{**row, "values": {**row["values"], "s003": None}} for row in rows[:40]]
    served.client.post("/city/observations", json=broken)
    with served.client.websocket_connect(f"{LIVE}?after=2") as socket:
        hello, *told = [socket.receive_json() for _ in range(12)]
    assert (hello["row"], hello["after"]) == (40, 30)
    assert [one["row"] for one in told if one["type"] == "row"] == [*range(31, 41)]
    assert [one["event"] for one in told if one["type"] == "alarm"] == ["raised"]  # of row 21, all the same


def test_a_listener_that_is_too_slow_is_let_go_but_not_for_the_size_of_one_request(served, rows, monkeypatch):
    monkeypatch.setattr(feed, "WAITING", 3)
    client, usual, goes_on = served.client, feed._tell, threading.Event()

    async def stalled(*given):
        while not goes_on.is_set():
            await asyncio.sleep(0.01)
        await usual(*given)

    with client.websocket_connect(LIVE) as socket:
        assert socket.receive_json()["type"] == "hello"
        client.post("/city/observations", json=rows[:20])
        assert [socket.receive_json()["row"] for _ in range(20)] == [*range(1, 21)]
    monkeypatch.setattr(feed, "_tell", stalled)
    with client.websocket_connect(LIVE) as socket:
        client.post("/city/observations", json=rows[20:30])
        client.post("/city/observations", json=rows[30])
        goes_on.set()
        assert socket.receive_json()["type"] == "hello"
        closed = socket.receive()
        assert closed["type"] == "websocket.close" and "after" in closed["reason"]
    assert client.get("/ready").status_code == 200


def test_requests_that_wait_are_bounded(model, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(network_module, "WAITING", 2)
    served = open_network("city", model, tmp_path)
    gate, inside = threading.Event(), threading.Event()
    usual = served._commit

    def slow(jobs):
        inside.set()
        gate.wait(10)
        usual(jobs)

    served._commit = slow
    body = json.dumps(rows[0]).encode()
    first = served.post(body, "json")
    inside.wait(10)
    waiting = [served.post(body, "json"), served.post(body, "json")]
    with pytest.raises(network_module.Busy, match="wait already"):
        served.post(body, "json")
    gate.set()
    answers = [one.result(10)[0][0] for one in (first, *waiting)]
    assert [one.get("repeated", False) for one in answers] == [False, True, True]
    served.close()


def test_a_sender_that_has_gone_does_not_stop_the_others(model, rows, tmp_path):
    network = open_network("city", model, tmp_path)
    usual, gate = network._commit, threading.Event()
    network._commit = lambda jobs: (gate.wait(10), usual(jobs))
    first = network.post(json.dumps(rows[0]).encode(), "json")
    gone = network.post(json.dumps(rows[1]).encode(), "json")
    assert gone.cancel() or first.cancel()
    last = network.post(json.dumps(rows[2]).encode(), "json")
    gate.set()
    assert last.result(10)[0][0]["time"] == rows[2]["time"]
    network.close()


def test_a_commit_that_fails_for_any_reason_is_answered(model, rows, tmp_path, monkeypatch):
    network = open_network("city", model, tmp_path)
    monkeypatch.setattr(network.store, "append", lambda entries: 1 / 0)
    with client_of({"city": network}) as client:
        answer = client.post("/city/observations", json=rows[0])
        assert answer.status_code == 503 and "log of the service" in answer.json()["error"]
        monkeypatch.undo()
        assert client.post("/city/observations", json=rows[0]).json()["row"] == 1
    network.close()


def test_a_request_that_cannot_be_written_fails_alone(model, rows, tmp_path, monkeypatch):
    network, write = open_network("city", model, tmp_path), orjson.dumps

    def dumps(value):
        if value == rows[1]["time"]:
            raise TypeError("nobody foresaw this")
        return write(value)

    usual, gate = network._commit, threading.Event()
    network._commit = lambda jobs: (gate.wait(10), usual(jobs))
    monkeypatch.setattr(orjson, "dumps", dumps)
    asked = [network.post(json.dumps(row).encode(), "json") for row in rows[:4]]
    gate.set()
    assert isinstance(asked[1].exception(10), TypeError)
    assert [one.result(10)[0][0]["row"] for i, one in enumerate(asked) if i != 1] == [1, 2, 3]
    assert network.trouble is None
    network.close()


def test_a_slow_body_is_given_up(served, monkeypatch):
    monkeypatch.setattr(requests, "PATIENCE", 0.0)

    def drip():
        yield b"{"
        time.sleep(0.05)
        yield b"}"

    assert served.client.post("/city/observations", content=drip()).status_code in (408, 422)
