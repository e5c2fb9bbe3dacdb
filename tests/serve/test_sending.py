import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jointset.errors import InputError
from jointset.live import sending
from jointset.live.sending import Courier, StoreOutbox
from jointset.live.store import FILE, Store
from jointset.live.ways_out import asked_for, open_ways
from jointset.live.webhooks import Lines, Webhook, checked_url, read_secret, verify

SECRET = b"0123456789abcdef"


class Receiver:
    """A real receiver on loopback; `answers` are the status codes it gives, then 204 for ever."""

    def __init__(self, answers=()):
        self.answers, self.got = list(answers), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.answers.pop(0) if outer.answers else 204
                outer.got.append((status, dict(self.headers), body))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def arrived(self):
        return [json.loads(body)["id"] for status, _, body in self.got if status < 300]


@pytest.fixture
def store(tmp_path):
    store = Store.create(tmp_path / FILE, {"name": "city"})
    yield store
    store.close()


def add(store, *names, number=1, **more):
    with store.writing():
        store.add_changes((number, {"id": name, "kind": "sustained", "muted": False, **more}) for name in names)


def until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


@pytest.fixture
def courier(store, tmp_path):
    made = []

    def make(send, first=0.01):
        notes = []
        one = Courier("webhook", StoreOutbox(store, tmp_path / "sent.json"), send, notes.append, first)
        one.notes = notes
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def receiver():
    made = []

    def make(*answers):
        made.append(Receiver(answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_change_arrives_signed_and_named(store, courier, receiver):
    there = receiver()
    one = courier(Webhook("city", there.url, SECRET))
    add(store, "sustained-1")
    one.wake()
    until(there.arrived)
    _, headers, body = there.got[0]
    assert headers["X-Jointset-Delivery"] == "city-1" and json.loads(body)["network"] == "city"
    signed = headers["X-Jointset-Signature"]
    assert verify(SECRET, body, signed, time.time())
    assert not verify(SECRET, body + b" ", signed, time.time())
    assert not verify(b"another secret..", body, signed, time.time())
    assert not verify(SECRET, body, signed, time.time() + 3600)
    assert not any(verify(SECRET, body, bad, time.time()) for bad in ("", "t=,v1=", "t=x", signed[:-1]))


def test_what_fails_is_sent_again_in_order_and_told_once(store, courier, receiver):
    there = receiver(500, 429, 404, 302)
    one = courier(Webhook("city", there.url))
    add(store, "a", "b")
    one.wake()
    until(lambda: len(there.arrived()) == 2)
    assert there.arrived() == ["a", "b"] and [status for status, *_ in there.got] == [500, 429, 404, 302, 204, 204]
    assert len({headers["X-Jointset-Delivery"] for _, headers, _ in there.got[:5]}) == 1
    assert one.notes == ["webhook: 127.0.0.1 answered 500; tried again until it arrives"]
    assert "X-Jointset-Signature" not in there.got[0][1]


def test_a_receiver_that_is_not_there_loses_nothing_and_stops_nobody(store, courier, receiver):
    there = receiver()
    url = there.url
    there.close()
    one = courier(Webhook("city", url))
    add(store, "a")
    one.wake()
    until(lambda: one.failed >= 2)
    assert "cannot be reached" in one.notes[0] and "\n" not in one.notes[0]
    one.close()
    assert StoreOutbox(store, one.outbox.mark).pending()[0][1]["id"] == "a"


def test_after_a_restart_it_goes_on_where_it_was_and_a_new_way_out_begins_with_what_is_new(
    store, courier, receiver, tmp_path
):
    add(store, "old")
    there = receiver()
    one = courier(Webhook("city", there.url))
    add(store, "a", "b")
    one.wake()
    until(lambda: len(there.arrived()) == 2)
    one.close()
    add(store, "c")
    courier(Webhook("city", there.url))
    until(lambda: len(there.arrived()) == 3)
    assert there.arrived() == ["a", "b", "c"]


def test_what_arrived_but_was_not_marked_is_sent_again(store, tmp_path):
    outbox = StoreOutbox(store, tmp_path / "sent.json")
    add(store, "a", "b")
    outbox.done(outbox.pending()[0][0])
    again = StoreOutbox(store, tmp_path / "sent.json")
    assert [change["id"] for _, change in again.pending()] == ["b"]
    (tmp_path / "sent.json").write_text("{")
    assert [change["id"] for _, change in StoreOutbox(store, tmp_path / "sent.json").pending()] == ["a", "b"]


def test_numbers_go_on_after_a_store_forgot_all_changes(store, tmp_path):
    outbox = StoreOutbox(store, tmp_path / "sent.json")
    add(store, "a")
    outbox.done(outbox.pending()[0][0])
    with store.writing():
        store.connection.execute("DELETE FROM changes")
    add(store, "b")
    assert [change["id"] for _, change in outbox.pending()] == ["b"]


def test_muted_changes_are_sent_to_nobody(store, courier, receiver):
    there = receiver()
    one = courier(Webhook("city", there.url))
    add(store, "quiet", muted=True)
    add(store, "loud")
    one.wake()
    until(there.arrived)
    assert there.arrived() == ["loud"]


def test_lines_of_a_file_hold_every_change_once(store, courier, tmp_path):
    one = courier(Lines("city", tmp_path / "alarms.jsonl"))
    add(store, "a", "b")
    one.wake()
    until(lambda: one.sent == 2)
    found = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
    assert [line["id"] for line in found] == ["a", "b"] and found[0]["network"] == "city"


@pytest.mark.parametrize("url", ["", "ftp://x/", "http://", "https://a b/", "http://x:99999/", "file:///etc/passwd"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError, match="is no address"):
        checked_url(url)


def test_a_secret_is_a_line_of_a_file(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    assert read_secret(path) == SECRET
    path.write_bytes(b"short\n")
    for bad in (path, tmp_path / "none"):
        with pytest.raises(InputError):
            read_secret(bad)


def test_alarms_of_a_served_network_leave_it_by_all_ways(served, receiver, tmp_path):
    there, lines = receiver(), tmp_path / "alarms.jsonl"
    couriers = open_ways(served.network, asked_for([there.url], None, lines), print)
    far = {"values": dict.fromkeys(served.network.sensors, 50.0)}
    rows = [{"time": 10**9 + 3600 * t, **far} for t in range(12)]
    assert served.client.post("/city/observations", json=rows).status_code == 200
    until(lambda: there.arrived() and lines.exists() and lines.read_text())
    for one in couriers:
        one.close()
    told = served.client.get("/city/alarms").json()
    assert there.arrived() == [json.loads(line)["id"] for line in lines.read_text().splitlines()]
    assert there.arrived()[0] == told["alarms"][0]["id"]


def test_a_receiver_that_never_ends_its_answer_does_not_keep_the_service_from_stopping(store, tmp_path, monkeypatch):
    monkeypatch.setattr(sending, "PARTING", 0.2)
    here, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        line, _ = here.accept()
        with line:
            while not over.wait(0.05):
                line.sendall(b"H")  # each byte in time, the answer never

    threading.Thread(target=drip, daemon=True).start()
    url = f"http://127.0.0.1:{here.getsockname()[1]}/"
    one = Courier("webhook", StoreOutbox(store, tmp_path / "sent.json"), Webhook("city", url), print)
    add(store, "a")
    one.wake()
    time.sleep(0.2)
    closing = threading.Thread(target=one.close, daemon=True)
    closing.start()
    closing.join(3.0)
    done, _ = not closing.is_alive(), over.set()
    here.close()
    assert done
    assert json.loads((tmp_path / "sent.json").read_text()) == {"arrived": 0}  # it is sent again after the next start
