"""Senders and readers that mean harm, or whose clocks and lines are bad: nothing is lost, doubled or unbounded."""

import gzip
import json
import logging
import socket
import sqlite3
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("fastapi")

from starlette.exceptions import HTTPException

from conftest import client_of
from jointset.inputs.times import live_seconds
from jointset.live import history, joining, work
from jointset.live import network as network_module
from jointset.live.feed import past_of
from jointset.live.happenings import change
from jointset.live.heads import BoundedHeads, make_room
from jointset.live.incidents import cause
from jointset.live.line_protocol import points
from jointset.live.listening import OnceAMinute
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.live.requests import _unpacked
from jointset.live.store import ACTION, FILE, Entry, Store, cells_of
from jointset.predicting.limits import UNLIMITED, Limits


def body(rows):
    return json.dumps(rows).encode()


def answered(network, rows):
    return network.post(body(rows), "json").result(20)[0]


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


@pytest.fixture
def network(model, tmp_path):
    found = open_network("city", model, tmp_path / "store")
    yield found
    found.close()


@pytest.mark.parametrize("moment", ["--5", "-", "٣", "1e5", "9" * 19])
def test_moments_that_are_none_are_refused(served, moment):
    answer = served.client.get("/city/history", params={"since": moment})
    assert answer.status_code in (200, 422)


def test_all_members_of_a_gzip_body_are_read(served, rows):
    lines = [json.dumps(row).encode() + b"\n" for row in rows[:2]]
    headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
    answer = served.client.post("/city/observations", content=b"".join(map(gzip.compress, lines)), headers=headers)
    assert [one["row"] for one in answer.json()] == [1, 2]


def test_a_gzip_body_is_bounded_over_all_its_members():
    one = gzip.compress(b" " * 600)
    assert len(_unpacked(one, 600)) == 600
    for bad, status in ((one + one, 413), (one[:-1], 400), (one + b"x", 400)):
        with pytest.raises(HTTPException) as error:
            _unpacked(bad, 1_000)
        assert error.value.status_code == status


def test_a_line_of_backslashes_takes_no_longer_than_one_of_letters():
    took = {}
    for name, piece in (("letters", "aa"), ("backslashes", "\\,")):
        began = time.process_time()
        list(points(1, f"m{piece * 100_000} value=1 5"))
        took[name] = time.process_time() - began
    assert took["backslashes"] < 10 * took["letters"]


def test_steps_that_wait_are_bounded(network, monkeypatch):
    """Readings from later to earlier: none of them says that the row of another is whole."""
    monkeypatch.setattr(work, "MOST_HELD", 5)
    name, last = network.sensors[0], 1_800_000_000
    lines = "\n".join(f"t,sensor={name} value=0.1 {last - 300 * i}" for i in range(12))
    found = network.post(lines.encode(), "line protocol", "s").result(20)[0]
    assert joining.MOST_HELD == 100
    assert len(network.held) == 5
    assert [one.get("late", False) for one in found] == [False, *[True] * 6]


def test_a_late_row_sent_again_is_not_kept_twice(network, rows):
    answered(network, [*rows[:3], rows[5]])
    late = answered(network, [rows[4], rows[4]])
    assert late == [{"row": 5, "time": rows[4]["time"], "late": True}, {**late[0], "repeated": True}]
    assert answered(network, rows[4]) == [late[1]]
    other = answered(network, {**rows[6], "time": rows[4]["time"]})
    assert other == [{"row": 6, "time": rows[4]["time"], "late": True}]


def test_a_refused_request_keeps_nobody_waiting(model, rows, tmp_path):
    network = open_network("city", model, tmp_path, AS_USUAL._replace(cadence=1, grace=0))
    name = network.sensors[0]
    network.post(f"t,sensor={name} value=0.1 5".encode(), "line protocol", "s").result(10)
    end = time.monotonic() + 10
    while network.standing.number == 0 and time.monotonic() < end:
        with pytest.raises(ValueError, match="JSON"):
            network.post(b"{", "json").result(10)
        time.sleep(0.1)
    assert network.standing.number == 1
    network.close()


def test_a_calibration_sees_the_rows_of_its_own_commit(model, rows, tmp_path):
    """Rows that wait together with `recalibrate` are in the log before it, and in the filter after it."""
    together, apart = (open_network("city", model, tmp_path / name) for name in ("together", "apart"))
    action = {"action": "recalibrate", "rows": 60}
    answered(together, rows[:60])
    gate, usual = threading.Event(), together._commit
    together._commit = lambda jobs: (gate.wait(10), usual(jobs))
    first = together.post(body(rows[60]), "json")
    time.sleep(0.1)  # until it is taken
    waiting = [together.post(body(rows[61:70]), "json"), together.act(dict(action))]
    gate.set()
    found = [one.result(20) for one in (first, *waiting)][-1]
    answered(apart, rows[:70])
    assert found == apart.act(dict(action)).result(20)
    assert answered(together, rows[70]) == answered(apart, rows[70])
    together.close()
    apart.close()


def test_bytes_that_wait_are_bounded(network, rows, monkeypatch):
    monkeypatch.setattr(network_module, "WAITING_BYTES", 1_000)
    gate, usual = threading.Event(), network._commit
    network._commit = lambda jobs: (gate.wait(10), usual(jobs))
    first = network.post(body(rows[0]), "json")
    time.sleep(0.1)  # until it is taken
    second = network.post(body(rows[1:20]), "json")  # larger than all, but nothing else waits
    with pytest.raises(network_module.Busy, match="bytes"):
        network.post(body(rows[20]), "json")
    gate.set()
    first.result(10)
    assert len(second.result(10)[0]) == 19
    gate.clear()
    monkeypatch.setattr(network_module, "WAITING_BYTES", 2 * len(body(rows[20])))
    waiting = [network.post(body(rows[20]), "json")]
    time.sleep(0.1)  # until it is taken
    waiting += [network.post(body(rows[20]), "json")]
    with pytest.raises(network_module.Busy, match="bytes"):  # not yet too much, but with this one it would be
        network.post(body(rows[21:25]), "json")
    gate.set()
    for one in waiting:
        one.result(10)
    assert answered(network, rows[20])[0]["row"] == 21


def test_the_past_is_told_some_rows_at_a_time(network, rows, monkeypatch):
    monkeypatch.setattr(history, "PIECE", 5)
    answered(network, rows[:12])
    assert [len(texts) for texts in past_of(network, 0, 12)] == [5, 5, 2, 0]


def test_bodies_on_their_way_are_bounded_together(network, rows):
    with client_of({"city": network}) as client:
        intake = client.app.app.state.intake
        intake.most = len(body(rows[:3])) + 10
        assert client.post("/city/observations", content=body(rows[:3])).status_code == 200
        assert intake.bytes == 0
        intake.bytes = 20  # of somebody else
        answer = client.post("/city/observations", content=body(rows[3:6]))
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert intake.bytes == 20 and network.standing.number == 3


def until_ok(line):
    """What comes up to the end of the answer."""
    found = b""
    while (part := line.recv(1_000)) and not (found := found + part).endswith(b"ok"):
        pass
    return found


@contextmanager
def serving(heads):
    """The address of a server that says ok, its heads read by this class."""
    import uvicorn

    async def small(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    server = uvicorn.Server(uvicorn.Config(small, port=0, http=heads, log_level="error", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join(10)


def test_the_head_of_a_request_is_bounded():
    """On a line of its own: a head without an end is answered with 400 and cut; others go on, one after another."""
    with serving(BoundedHeads) as address:
        with socket.create_connection(address, timeout=10) as line:
            for _ in range(2):
                line.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n" + b" " * 90_000)
                assert until_ok(line).startswith(b"HTTP/1.1 200")
        with socket.create_connection(address, timeout=10) as line:
            line.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000)
            assert line.recv(1_000).startswith(b"HTTP/1.1 400")


ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def over(line):
    """Whether the other side has closed a line."""
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_that_say_nothing_are_bounded_in_number_and_time():
    """Those beyond the bound are closed at once; silent ones, and heads that do not end, after some seconds; then
    others find room, and a line that is used stays.
    """

    class Few(BoundedHeads):
        most_lines, patience = 3, 1.0

    with serving(Few) as address, ExitStack() as lines:
        used, silent, slow = (lines.enter_context(socket.create_connection(address, timeout=10)) for _ in range(3))
        used.sendall(ASK)
        assert until_ok(used).startswith(b"HTTP/1.1 200")
        slow.sendall(ASK[:9])
        assert over(lines.enter_context(socket.create_connection(address, timeout=10)))
        assert over(silent) and over(slow)
        used.sendall(ASK)
        assert until_ok(used).startswith(b"HTTP/1.1 200")
        used.sendall(ASK[:9])  # the head of a later request is bounded as well
        assert over(used)
        late = lines.enter_context(socket.create_connection(address, timeout=10))
        late.sendall(ASK)
        assert until_ok(late).startswith(b"HTTP/1.1 200")


def test_there_are_twice_as_many_files_as_connections():
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        assert make_room().most_lines == min(1_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2) >= 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_what_anybody_can_cause_is_logged_once_a_minute_and_all_else_each_time(monkeypatch):
    often, once = OnceAMinute(), []
    now = iter([0.0, 1.0, 59.0, 61.0, 62.0])
    monkeypatch.setattr("jointset.live.listening.time.monotonic", lambda: next(now))
    for text in ["socket.accept() out of system resource\nsocket: 3"] * 5:
        once.append(often.filter(logging.LogRecord("asyncio", 40, "", 1, text, (), None)))
    assert once == [True, False, False, True, False]
    assert all(often.filter(logging.LogRecord("uvicorn.error", 40, "", 1, "Exception in ASGI", (), None)) for _ in "ab")


def test_a_listener_that_fails_stops_nobody(network, rows):
    """A disk that cannot be read while a broker is told of the alarms, or anything else behind a commit."""
    heard = []

    def fails(entries, changes):
        raise ValueError("disk I/O error")

    network.listeners += [fails, lambda entries, changes: heard.extend(entries)]
    assert [answered(network, [row])[0]["row"] for row in rows[:2]] == [1, 2]
    until(lambda: len(heard) == 2)


def test_alarms_of_a_row_that_closes_by_itself_are_told(network, rows, monkeypatch):
    """Readings of single sensors whose rest never comes make a row after a while; what it raises is news as well."""
    heard = []
    network.listeners.append(lambda entries, changes: heard.extend(changes))
    raised = change(cause("sensor", ("a",), ("a",), "look at it"), "raised", 0.0)
    monkeypatch.setattr(network.engine, "step", lambda state, happening: (state, [raised]))
    name, seconds = network.sensors[0], live_seconds(rows[0]["time"])
    network.post(f"t,sensor={name} value=1 {seconds}".encode(), "line protocol", "s").result(10)
    network._heard = -1e9  # long ago
    until(lambda: heard)
    assert [one["words"] for _, one in heard] == ["look at it"]


def test_a_restart_with_other_limits_finds_the_same_numbers(model, rows, tmp_path):
    """Limits cut off what is shown; scores are what they were."""
    told = []
    for limits in (Limits(-0.1, 0.1), UNLIMITED):
        found = open_network("city", model, tmp_path / "store", AS_USUAL._replace(limits=limits), told.append)
        if not found.standing.number:
            answered(found, rows[:5])
        found.close()
    assert not told


def test_an_action_on_an_alarm_that_is_no_longer_raised_does_not_stop_a_restart(model, rows, tmp_path):
    """Another --cadence, or another version, may come to other alarms than those that somebody acknowledged."""
    found, told = open_network("city", model, tmp_path / "store"), []
    answered(found, rows[:3])
    found.close()
    store = Store(tmp_path / "store" / "city" / FILE)
    action = {"action": "acknowledge", "id": "sustained-1", "time": 0}
    with store.writing():
        store.append([cells_of(Entry(4, ACTION, None, None, None, action))])
    store.close()
    found = open_network("city", model, tmp_path / "store", notice=told.append)
    assert answered(found, rows[3:4])[0]["row"] == 5 and "1 of the rows and actions" in told[0]
    found.close()


def test_a_bridge_goes_on_after_any_error(network, tmp_path):
    """Whatever fails while a broker is greeted, the next attempt may do."""
    pytest.importorskip("aiomqtt")
    from jointset.live.mqtt import Bridge
    from jointset.live.mqtt_topics import Topics

    tried, told = [], []

    class Address:
        host = "broker"

        def client(self, will):
            tried.append(will)
            raise sqlite3.OperationalError("disk I/O error")

    bridge = Bridge(Address(), Topics("jointset", {"city": network.reader}, {}), {}, told.append, first=0.01)
    until(lambda: len(tried) >= 3)
    bridge.close()
    assert told == ["mqtt: broker cannot be reached (disk I/O error); tried again until it can"]
