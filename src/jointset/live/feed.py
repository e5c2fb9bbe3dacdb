"""Rows and changes of alarms, told to sockets as they come; a listener that is too slow is let go.

A socket that gives `?after=NUMBER` first gets what came after it from the store, so that one that was cut off misses
nothing; of rows the last 10,000, after the number that its `hello` names. One that gives `?ahead=true` also gets the
sets of the next steps, as `/region?horizon=` has them, whenever it has heard all rows; of a model that was fitted with
a horizon. Messages are objects:
`{"type": "hello" | "row" | "alarm" | "action" | "ahead", ...}`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from fastapi import WebSocket, WebSocketDisconnect
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from jointset.live.answers import region
from jointset.live.history import FIELDS, Asked, pieces, row_of_history
from jointset.live.network import Network
from jointset.live.store import ACTION, LATE, ROW, Entry

LISTENERS = 100  # of one network
WAITING = 1_000  # messages that may wait for one listener
CATCH_UP = 10_000  # rows that a listener is given from the past
TOO_SLOW, TRY_LATER = 1013, 1013


class News(NamedTuple):
    """A message, and the number of the log that it is about."""

    number: int
    text: str


class Feed:
    """The listeners of one network."""

    def __init__(self, network: Network, loop: asyncio.AbstractEventLoop) -> None:
        self.network, self.loop = network, loop
        self.listeners: set[asyncio.Queue[News | None]] = set()
        self._steps = News(-1, "")  # the last sets ahead that were told: listeners share them
        network.listeners.append(self._heard)

    def close(self) -> None:
        """Listen no longer."""
        self.network.listeners.remove(self._heard)

    def ahead(self) -> str:
        """What a listener is told of the next steps now."""
        network, standing = self.network, self.network.standing
        if self._steps.number != standing.number:
            found = region(network, standing, horizon=standing.horizon)
            told = {"type": "ahead", "row": standing.number, **found}
            self._steps = News(standing.number, orjson.dumps(told).decode())
        return self._steps.text

    def _heard(self, entries: list[Entry], changes: list[Any]) -> None:
        """Called by the thread of the network after a commit."""
        if not self.listeners:
            return
        news = [News(entry.number, message(entry, self.network.sensors)) for entry in entries]
        news += [News(number, alarm(number, one)) for number, one in changes]
        news.sort(key=lambda one: one.number)  # a change of an alarm right behind its row
        self.loop.call_soon_threadsafe(self._tell, news)

    def _tell(self, news: list[News]) -> None:
        for listener in list(self.listeners):
            if listener.qsize() > WAITING:  # whatever the size of one commit
                self.listeners.discard(listener)
                listener.put_nowait(None)
                continue
            for one in news:
                listener.put_nowait(one)


def message(entry: Entry, sensors: tuple[str, ...]) -> str:
    """What a listener is told of an entry."""
    if entry.kind == ACTION:
        return json.dumps({"type": "action", "row": entry.number, **entry.answer})
    return orjson.dumps({"type": "row", **row_of_history(entry, sensors, FIELDS)}).decode()


def alarm(number: int, change: Any) -> str:
    """What a listener is told of a change of an alarm."""
    return json.dumps({"type": "alarm", "row": number, **change})


async def serve_socket(socket: WebSocket, feed: Feed) -> None:
    """Tell one listener, from a row it names or from now on, until it goes."""
    offered = [one.strip() for one in socket.headers.get("sec-websocket-protocol", "").split(",")]
    await socket.accept(subprotocol=next((one for one in offered if one.startswith("bearer.")), None))
    if len(feed.listeners) >= LISTENERS:
        await socket.close(TRY_LATER, "too many listeners: try again later")
        return
    asked = socket.query_params.get("after", "")
    listener: asyncio.Queue[News | None] = asyncio.Queue()
    feed.listeners.add(listener)
    after = int(asked) if asked.isdecimal() and len(asked) < 19 else None
    ahead = socket.query_params.get("ahead") == "true" and feed.network.standing.horizon is not None
    telling = asyncio.create_task(_tell(socket, feed, listener, after, ahead))
    try:
        while True:
            await socket.receive_text()  # nothing is to be said; this hears that the listener has gone
    except (WebSocketDisconnect, KeyError):
        pass
    finally:
        feed.listeners.discard(listener)
        telling.cancel()


async def _tell(
    socket: WebSocket, feed: Feed, listener: asyncio.Queue[News | None], after: int | None, ahead: bool
) -> None:
    network, standing = feed.network, feed.network.standing
    now, sensors = standing.number, list(network.sensors)
    hello = {"type": "hello", "row": now, "sensors": sensors, "horizon": standing.horizon}
    since = {} if after is None else {"after": max(after, now - CATCH_UP)}
    await socket.send_text(json.dumps(hello | since))
    if after is not None:
        async for texts in iterate_in_threadpool(past_of(network, after, now)):
            for text in texts:
                await socket.send_text(text)
    if ahead:
        await socket.send_text(await run_in_threadpool(feed.ahead))
    while (news := await listener.get()) is not None:
        if news.number > now:  # those up to now came from the past
            await socket.send_text(news.text)
        if ahead and listener.empty():
            await socket.send_text(await run_in_threadpool(feed.ahead))
    await socket.close(TOO_SLOW, "too slow: connect again with ?after=ROW")


def past_of(network: Network, after: int, now: int) -> Iterator[list[str]]:
    """What came after a number of the log, in its order, some at a time: a listener may be slow, and the past is long.

    A change of an alarm stands behind the row it came with.
    """
    store, rows = network.store, Asked(CATCH_UP, max(after, now - CATCH_UP), now + 1)
    changes = deque((number, one) for _, number, one in store.changes(beyond=after) if number <= now)
    for piece in pieces(store, rows, (ROW, LATE, ACTION)):
        texts = []
        for entry in piece:
            while changes and changes[0][0] < entry.number:
                texts.append(alarm(*changes.popleft()))
            texts.append(message(entry, network.sensors))
        yield texts
    yield [alarm(*one) for one in changes]
