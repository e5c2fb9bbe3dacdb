"""MQTT in and out: readings from a broker, and scores, sets and alarms to it.

A message of quality 1 is acknowledged only after its reading is on the disk: one that was not is sent again by the
broker, as the session outlives the connection. A message that holds no reading is counted, told of once, and
acknowledged: it would be refused again. What goes out: `BASE/NETWORK/score` after every row, `BASE/NETWORK/set` (the
next set) and `BASE/NETWORK/alarms/open` after every commit, all retained, and `BASE/NETWORK/alarms`, every change at
least once. `BASE/status` is `online`, or `offline` as the broker's last word.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import aiomqtt

from jointset.errors import InputError
from jointset.live import answers
from jointset.live.mqtt_address import Address
from jointset.live.mqtt_topics import Topics, discovery
from jointset.live.network import Busy, Network
from jointset.live.store import ROW, Entry, StoreError

FIRST, LONGEST = 1.0, 60.0  # seconds between attempts to connect, or to bring a reading to a full disk
WAITING = 1_000  # messages out that may wait; older ones give way
UNDER_WAY = 200  # messages in that may be on their way to the disk
AGAIN = 0.2  # seconds after which a task that did not end is cancelled again
PATIENCE = 10.0  # seconds to wait for the broker's word on an alarm
TOLD = 20  # refused topics that are told of
FACTS = ("score", "radius", "inside", "observed")


class Sent(NamedTuple):
    """A message out."""

    topic: str
    body: str
    quality: int = 0
    retain: bool = True


async def ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they are over: `wait_for` of Python 3.11 forgets a cancellation that comes with its result."""
    left = tasks
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)
    await asyncio.gather(*tasks, return_exceptions=True)


class Bridge:
    """A thread that stands between a broker and networks, until it is closed. It connects again whenever it must."""

    def __init__(
        self,
        address: Address,
        topics: Topics,
        networks: Mapping[str, Network],
        note: Callable[[str], None],
        prefix: str = "homeassistant",
        first: float = FIRST,
    ) -> None:
        self.address, self.topics, self.networks, self.note = address, topics, networks, note
        self.prefix, self.first = prefix, first
        self.connected = threading.Event()
        self._told: set[str] = set()
        self._client: aiomqtt.Client | None = None
        self._loop = asyncio.new_event_loop()
        self._over, self._news = asyncio.Event(), asyncio.Queue[Sent](WAITING)
        for name, network in networks.items():
            network.listeners.append(self._listener(name))
        self._thread = threading.Thread(target=self._run, name="jointset mqtt", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say goodbye and stop; what is not acknowledged the broker sends again."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def send(self, network: str) -> Callable[[str, dict[str, Any]], None]:
        """A way out for changes of alarms: it returns when the broker has one, with OSError where it has not."""

        def one(number: str, change: dict[str, Any]) -> None:
            body = json.dumps({"network": network, "change": number, **change})
            sent = Sent(self.topics.under(network, "alarms"), body, quality=1, retain=False)
            future: Future[None] = asyncio.run_coroutine_threadsafe(self._publish(sent), self._loop)
            try:
                future.result(PATIENCE)
            except (aiomqtt.MqttError, TimeoutError) as error:
                future.cancel()
                raise OSError(f"the broker has no word for an alarm ({error or 'no answer'})") from None

        return one

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._stay_connected())
        self._loop.close()

    async def _stay_connected(self) -> None:
        pause = self.first
        while not self._over.is_set():
            try:
                will = aiomqtt.Will(f"{self.topics.base}/status", "offline", 1, True)
                async with self.address.client(will) as client:
                    client._client.manual_ack_set(True)  # aiomqtt leaves this to paho
                    pause = self.first
                    await self._session(client)
            except Exception as error:  # of the broker, the line, or the store that is told of: it may pass
                if pause == self.first:
                    self.note(f"mqtt: {self.address.host} cannot be reached ({error}); tried again until it can")
            finally:
                self._client = None
                self.connected.clear()
            try:
                await asyncio.wait_for(self._over.wait(), pause)
            except TimeoutError:
                pause = min(2.0 * pause, LONGEST)

    async def _session(self, client: aiomqtt.Client) -> None:
        """While connected."""
        for topic in self.topics.subscriptions():
            await client.subscribe(topic, qos=1)
        self._client = client
        for sent in self._greeting():
            await self._publish(sent)
        self.connected.set()
        over = asyncio.create_task(self._over.wait())
        tasks = {over, asyncio.create_task(self._listen(client)), asyncio.create_task(self._tell())}
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if over in done:
            await self._publish(Sent(f"{self.topics.base}/status", "offline", 1))
        await ended(left)
        for task in done - {over}:
            task.result()

    # ------------------------------------------------------------------ in

    async def _listen(self, client: aiomqtt.Client) -> None:
        under_way: set[asyncio.Task[None]] = set()
        try:
            async for message in client.messages:
                self._count("mqtt_received", message)
                under_way.add(asyncio.create_task(self._take(client, message)))
                while len(under_way) >= UNDER_WAY:
                    _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                under_way = {task for task in under_way if not task.done()}
        finally:
            for task in under_way:
                task.cancel()

    async def _take(self, client: aiomqtt.Client, message: aiomqtt.Message) -> None:
        """Bring the readings of a message to the disk, then acknowledge it."""
        topic = str(message.topic)
        body = (
            message.payload if isinstance(message.payload, (bytes, bytearray)) else str(message.payload or "").encode()
        )
        try:
            for post in self.topics.posts(topic, bytes(body), time.time()):
                await self._post(post.network, post.body, post.kind)
        except Exception as error:
            self._count("mqtt_refused", message)
            self._refuse(topic, error)
        client._client.ack(message.mid, message.qos)

    async def _post(self, network: str, body: bytes, kind: str) -> None:
        """One body to the disk; while that cannot take it, again and again."""
        pause = self.first
        while True:
            try:
                await asyncio.wrap_future(self.networks[network].post(body, kind))
                return
            except (Busy, StoreError):
                await asyncio.sleep(pause)
                pause = min(2.0 * pause, LONGEST)

    def _count(self, what: str, message: aiomqtt.Message) -> None:
        for name in self.topics.networks(str(message.topic)):
            self.networks[name].counts[what] += 1

    def _refuse(self, topic: str, error: Exception) -> None:
        if topic not in self._told and len(self._told) < TOLD:
            self._told.add(topic)
            what = " ".join(str(error).split()) if isinstance(error, InputError) else type(error).__name__
            self.note(f"mqtt: a message of {topic[:60]!r} was refused: {what}")

    # ------------------------------------------------------------------ out

    def _listener(self, name: str) -> Callable[[list[Entry], list[Any]], None]:
        def heard(entries: list[Entry], changes: list[Any]) -> None:
            """Called by the thread of the network after a commit."""
            rows = [entry for entry in entries if entry.kind == ROW][-WAITING:]
            news = [Sent(self.topics.under(name, "score"), _facts(entry)) for entry in rows]
            news += self._standing(name)
            self._loop.call_soon_threadsafe(self._queue, news)

        return heard

    def _queue(self, news: list[Sent]) -> None:
        for sent in news:
            if self._news.full():
                self._news.get_nowait()
            self._news.put_nowait(sent)

    def _standing(self, name: str) -> list[Sent]:
        """The next set and the open alarms of a network."""
        network = self.networks[name]
        opened = answers.alarms(network, 0, 0)["alarms"]
        worst = "critical" if any(one["severity"] == "critical" for one in opened) else "warning" if opened else None
        count = {"count": len(opened), "worst": worst, "alarms": opened}
        return [
            Sent(self.topics.under(name, "set"), json.dumps(answers.region(network, network.standing))),
            Sent(self.topics.under(name, "alarms/open"), json.dumps(count), 1),
        ]

    def _greeting(self) -> list[Sent]:
        """What is told once connected."""
        found = [Sent(f"{self.topics.base}/status", "online", 1)]
        for name in self.networks:
            told = discovery(self.topics, name, self.prefix) if self.prefix else {}
            found += [Sent(topic, json.dumps(entity), 1) for topic, entity in told.items()] + self._standing(name)
        return found

    async def _tell(self) -> None:
        while True:
            await self._publish(await self._news.get())

    async def _publish(self, sent: Sent) -> None:
        if self._client is None:
            raise aiomqtt.MqttError("not connected")
        await self._client.publish(sent.topic, sent.body, sent.quality, sent.retain)


def _facts(entry: Entry) -> str:
    """What is told of a row."""
    return json.dumps({"time": entry.time, "row": entry.number, **{name: entry.answer[name] for name in FACTS}})
