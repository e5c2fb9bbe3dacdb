import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time

import aiomqtt
import pytest

from jointset.errors import InputError
from jointset.inputs.fleet import AS_IT_IS, Fleet
from jointset.inputs.times import live_seconds
from jointset.live.formats import Reader
from jointset.live.metrics import metrics_text
from jointset.live.mqtt import ended
from jointset.live.mqtt_address import read_address
from jointset.live.mqtt_topics import Place, Topics, read_topics
from jointset.live.network import AS_USUAL
from jointset.live.opening import open_network
from jointset.live.store import StoreError
from jointset.live.ways_out import Broker, open_bridge

MOSQUITTO = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
broker_there = pytest.mark.skipif(MOSQUITTO is None, reason="there is no mosquitto: apt-get install mosquitto")


def until(condition, seconds=8.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


class Mosquitto:
    """A real broker on a free port of loopback."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.config = folder / "mosquitto.conf"
        self.config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\nuser root\n")
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self.config)], stderr=subprocess.DEVNULL)
        until(self._open)

    def _open(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory):
    broker = Mosquitto(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


class Listener:
    """Hears all topics; the last message of each, and all of them in order."""

    def __init__(self, port, topic="#"):
        self.heard, self.last = [], {}
        self._ready, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(port, topic)), daemon=True)
        self._thread.start()
        assert self._ready.wait(5)

    async def _run(self, port, topic):
        async with aiomqtt.Client("127.0.0.1", port) as client:
            await client.subscribe(topic)
            self._ready.set()
            hearing = asyncio.create_task(self._hear(client))
            while not self._over.is_set():
                await asyncio.sleep(0.02)
            hearing.cancel()

    async def _hear(self, client):
        async for message in client.messages:
            body = message.payload.decode(errors="replace")
            self.heard.append((str(message.topic), body))
            self.last[str(message.topic)] = body

    def close(self):
        self._over.set()
        self._thread.join()


def publish(port, messages, qos=1):
    async def send():
        async with aiomqtt.Client("127.0.0.1", port) as client:
            for start in range(0, len(messages), 50):
                some = messages[start : start + 50]
                await asyncio.gather(*(client.publish(topic, body, qos=qos) for topic, body in some))

    asyncio.run(send())


class Bridged:
    def __init__(self, broker, model, folder, base, settings=AS_USUAL, **asked):
        self.network = open_network("city", model, folder, settings)
        self.notes, self.open = [], True
        self.bridge, self.couriers = open_bridge(
            Broker(broker.url, base=base, **asked), {"city": self.network}, folder, self.notes.append
        )

    def close(self):
        if self.open:
            self.open = False
            for courier in self.couriers:
                courier.close()
            self.bridge.close()
            self.network.close()

    def count(self, what):
        """What `/metrics` says of the messages."""
        line = next(
            line for line in metrics_text([self.network]).splitlines() if line.startswith(f"jointset_mqtt_{what}")
        )
        name, number = line.split()
        assert name == f'jointset_mqtt_{what}_total{{network="city"}}'
        return int(number)

    @property
    def rows(self):
        return self.network.standing.number


@pytest.fixture
def bridged(mosquitto, model, tmp_path):
    made = []

    def make(broker=mosquitto, **asked):
        made.append(Bridged(broker, model, tmp_path / "store", f"test/{tmp_path.name}", **asked))
        assert made[-1].bridge.connected.wait(8)
        return made[-1]

    yield make
    for one in made:
        one.close()


@broker_there
def test_rows_and_single_readings_come_in_and_scores_sets_and_discovery_go_out(bridged, mosquitto, rows, tmp_path):
    base, one = f"test/{tmp_path.name}", bridged()
    ears = Listener(mosquitto.port)
    publish(
        mosquitto.port,
        [(f"{base}/city/readings", json.dumps(rows[0])), (f"{base}/city/readings", json.dumps(rows[1:4]))],
    )
    until(lambda: one.rows == 4)
    time, sensors = rows[4]["time"], one.network.sensors
    singles = [
        (f"{base}/city/readings/{name}", json.dumps({"value": rows[4]["values"][name], "time": time}))
        for name in sensors
    ]
    publish(mosquitto.port, singles)
    until(lambda: one.rows == 5)
    want = open_network("city", one.network.store.path.parent / "model", tmp_path / "plain")
    want.post(json.dumps(rows[:5]).encode(), "json").result()
    assert one.network.standing.predictor.radius == want.standing.predictor.radius
    want.close()
    until(lambda: json.loads(ears.last.get(f"{base}/city/score", "{}")).get("row") == 5)
    assert set(json.loads(ears.last[f"{base}/city/set"])["bounds"]) == set(sensors)
    config = json.loads(ears.last["homeassistant/binary_sensor/jointset_city/alarm/config"])
    assert config["state_topic"] == f"{base}/city/alarms/open" and config["availability_topic"] == f"{base}/status"
    assert json.loads(ears.last[config["state_topic"]])["count"] == 0 and ears.last[f"{base}/status"] == "online"
    ears.close()


@broker_there
def test_alarms_go_out_once_each_and_stay_listed(bridged, mosquitto, tmp_path):
    base, one = f"test/{tmp_path.name}", bridged()
    ears = Listener(mosquitto.port, f"{base}/#")
    far = [{"time": 10**9 + 3600 * t, "values": dict.fromkeys(one.network.sensors, 50.0)} for t in range(12)]
    publish(mosquitto.port, [(f"{base}/city/readings", json.dumps(far))])
    until(lambda: f"{base}/city/alarms" in ears.last)
    told = [json.loads(body) for topic, body in ears.heard if topic == f"{base}/city/alarms"]
    assert told[0]["event"] == "raised" and told[0]["network"] == "city"
    until(lambda: json.loads(ears.last[f"{base}/city/alarms/open"])["count"] >= 1)
    ears.close()


@broker_there
def test_what_was_not_on_the_disk_is_sent_again_by_the_broker(bridged, mosquitto, rows, tmp_path, monkeypatch):
    """No PUBACK before the commit: a bridge that dies meanwhile leaves the message with the broker."""
    base, one = f"test/{tmp_path.name}", bridged()
    taken = []

    def full(body, kind, precision="ns"):
        taken.append(body)
        raise StoreError("the disk is full")

    monkeypatch.setattr(one.network, "post", full)
    publish(mosquitto.port, [(f"{base}/city/readings", json.dumps(rows[0]))])
    until(lambda: taken)
    one.close()
    monkeypatch.undo()
    assert one.rows == 0
    again = bridged()
    until(lambda: again.rows == 1)


@broker_there
def test_a_time_that_is_none_is_refused_and_not_tried_again(bridged, mosquitto, rows, tmp_path):
    base, one = f"test/{tmp_path.name}", bridged()
    bad = {**rows[0], "time": 99999999999999999999}
    publish(mosquitto.port, [(f"{base}/city/readings", json.dumps(row)) for row in (bad, rows[0])])
    until(lambda: (one.count("refused"), one.rows) == (1, 1))
    assert one.network.counts["failed"] == 0


@broker_there
def test_a_broker_that_goes_away_is_found_again(model, tmp_path, rows):
    broker = Mosquitto(tmp_path)
    one = Bridged(broker, model, tmp_path / "store", "jointset")
    try:
        one.bridge.first = 0.05
        assert one.bridge.connected.wait(8)
        broker.stop()
        until(lambda: not one.bridge.connected.is_set())
        one.network.post(json.dumps(rows[0]).encode(), "json").result()  # the service goes on
        broker.start()
        assert one.bridge.connected.wait(8)
        publish(broker.port, [("jointset/city/readings", json.dumps(rows[1]))])
        until(lambda: one.rows == 2)
    finally:
        one.close()
        broker.stop()


@broker_there
def test_sensors_by_other_names_are_read_and_unknown_ones_ignored_where_asked_for(bridged, mosquitto, rows, tmp_path):
    base, devices = f"test/{tmp_path.name}", tmp_path / "topics.csv"
    devices.write_text("zigbee/hall,old\nzigbee/attic,nobody\n")
    fleet = Fleet({"S1": "s000", "old": "s001"}, ignore_unknown=True)
    one = bridged(settings=AS_USUAL._replace(fleet=fleet, cadence=3600, grace=0), topics=devices)
    at = live_seconds(rows[0]["time"])
    messages = [(f"{base}/city/readings/S1", 50.0, at), ("zigbee/hall", 40.0, at)]
    messages += [(f"{base}/city/readings/nobody", 1.0, at), (f"{base}/city/readings/s002", 30.0, at + 9000)]
    publish(mosquitto.port, [(topic, json.dumps({"value": value, "time": when})) for topic, value, when in messages])
    until(lambda: one.rows == 1)
    assert next(one.network.store.entries()).values[:2].tolist() == [50.0, 40.0]
    assert (one.count("received"), one.count("refused"), one.notes) == (4, 0, [])


def test_what_forgets_a_cancellation_is_cancelled_again():
    """As `wait_for` of Python 3.11 does when its result comes at the same time: `close` waited for ever."""

    async def stubborn():
        for _ in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        raise OSError("the line is gone")

    async def closing():
        tasks = {asyncio.create_task(stubborn()), asyncio.create_task(asyncio.sleep(60))}
        await asyncio.sleep(0)
        await ended(tasks)
        assert all(task.done() for task in tasks)

    asyncio.run(asyncio.wait_for(closing(), 10))


def nasty(rng, sensors, base):
    """A message that means no good."""
    row = {
        "time": rng.choice([0, -1, 10**30, "x", None, [], 1e400]),
        "values": {rng.choice(sensors): rng.choice(["x", True, [1], 1e999])},
    }
    bodies = [
        rng.randbytes(rng.randrange(200)),
        json.dumps(row).encode(),
        b"[" * 5000,
        b'{"value": NaN}',
        b"1e999",
        b"--1",
        "９".encode(),
        b'{"time": 1e99, "value": 3}',
        b'{"value": 3, "time": {"a": 1}}',
        b"\xff\xfe",
        b"{}",
        b'[{"time": 5}]',
        b'"text"',
        b"0x10",
    ]
    places = ["readings", "readings/nobody", f"readings/{rng.choice(sensors)}", "readings/", "readings/a/b/c"]
    return f"{base}/city/{rng.choice(places)}", rng.choice(bodies)


@broker_there
def test_a_thousand_messages_at_random_crash_nothing_and_good_ones_still_count(bridged, mosquitto, rows, tmp_path):
    rng, base, one = random.Random(0), f"test/{tmp_path.name}", bridged()
    bad = [nasty(rng, one.network.sensors, base) for _ in range(1000)]
    bad = [(topic, body) for topic, body in bad if not _good(body, topic, base)]
    publish(mosquitto.port, bad)
    publish(mosquitto.port, [(f"{base}/city/readings", json.dumps(rows[0]))])
    until(lambda: one.count("received") == len(bad) + 1, 60)
    until(lambda: one.network.standing.clock.latest == live_seconds(rows[0]["time"]), 20)
    assert one.network.standing.predictor.trust().recent_coverage in (0.0, 1.0)  # one row had readings
    assert one.count("refused") > 0.9 * len(bad) and len(one.notes) <= 20
    assert all("\n" not in note and "Traceback" not in note for note in one.notes)


def _good(body, topic, base):
    """Whether a message at random happens to hold a reading."""
    try:
        return (
            bool(Topics(base, {"city": Reader(("s0",), AS_IT_IS)}, {}).posts(f"{base}/city/readings/s0", body, 0.0))
            and "readings/" in topic
        )
    except InputError:
        return False


# ---------------------------------------------------------------------- topics, without a broker

READERS = {"city": Reader(("a", "b/c"), AS_IT_IS), "town": Reader(("x",), AS_IT_IS)}


@pytest.mark.parametrize(
    ("topic", "message", "line"),
    [
        ("j/city/readings/a", b"21.5", "5,a,21.5"),
        ("j/city/readings/b/c", b'{"value": 3, "time": "2012-03-01T00:05:00Z"}', "2012-03-01T00:05:00Z,b/c,3.0"),
        ("j/town/readings/x", b'{"x": "4", "ts": 7}', "7,x,4.0"),
        ("zigbee/kitchen", b'{"temperature": 19, "battery": 80}', "5,a,19.0"),
    ],
)
def test_a_message_of_one_sensor_is_a_line(topic, message, line):
    topics = Topics("j", READERS, {"zigbee/kitchen": [Place("city", "a", "temperature")]})
    (post,) = topics.posts(topic, message, 5.9)
    assert post.body.decode().splitlines()[1] == line and post.network == topic.split("/")[1].replace("kitchen", "city")


@pytest.mark.parametrize("message", [b"", b"unavailable", b"null", b'{"value": null}', b"NaN"])
def test_a_device_without_a_reading_is_silent(message):
    assert Topics("j", READERS, {}).posts("j/city/readings/a", message, 0.0) == []


@pytest.mark.parametrize(
    ("topic", "message", "words"),
    [
        ("j/city/readings/A", b"1", "no sensor 'A'"),
        ("j/city/readings/a", b"warm", "'warm' is no finite number"),
        ("j/city/readings/a", b'{"value": "1_0", "time": 7}', "'1_0' is no finite number"),
        ("j/city/readings/a", "１２".encode(), "'１２' is no finite number"),
        ("j/city/readings/a", b'{"value": 1e999}', "no finite number"),
        ("j/city/readings/a", b'{"value": true}', "true is no finite number"),
        ("j/city/readings/a", b"{", "not JSON"),
        ("j/city/readings/a", b'{"speed": 1}', "no entry"),
        ("j/other", b"1", "nobody asked"),
        ("j/city/readings", b"x" * (2**20 + 1), "bytes in one message"),
    ],
)
def test_a_message_that_holds_no_reading_is_refused_in_one_line(topic, message, words):
    with pytest.raises(InputError, match=words):
        Topics("j", READERS, {}).posts(topic, message, 0.0)


def test_topics_of_devices_come_from_a_file(tmp_path):
    path = tmp_path / "topics.csv"
    path.write_text("topic,sensor,key\nz/k,a,temperature\nz/k,x,\nz/m,b/c\n")
    assert read_topics(path, READERS) == {
        "z/k": [Place("city", "a", "temperature"), Place("town", "x")],
        "z/m": [Place("city", "b/c")],
    }
    for bad, words in (
        ("z/+,a\n", "is no topic"),
        ("z,A\n", "line 1: no network has a sensor 'A'"),
        ("z\n", "1 cells"),
    ):
        path.write_text(bad)
        with pytest.raises(InputError, match=words):
            read_topics(path, READERS)


def test_a_sensor_of_two_networks_is_refused_by_their_names(tmp_path):
    path = tmp_path / "topics.csv"
    path.write_text("z,a\n")
    with pytest.raises(InputError, match="line 1: the networks 'city', 'copy' have a sensor 'a' each"):
        read_topics(path, READERS | {"copy": READERS["city"]})


@pytest.mark.parametrize("url", ["http://x", "mqtt://", "mqtt://x:y", "mqtt://u:secret@x", "mqtt://x/path"])
def test_what_is_no_broker_is_refused(url, tmp_path):
    with pytest.raises(InputError):
        read_address(url, None, tmp_path)
