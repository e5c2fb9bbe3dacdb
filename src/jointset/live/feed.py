"""Rows and changes of alarms, told to sockets as they come; a listener that is too slow is let go.

A socket that gives `?after=NUMBER` first gets the rows after it from the store, so that one that was cut off misses
nothing. One that gives `?ahead=true` also gets the sets of the next steps, as `/region?horizon=` has them, whenever it
has heard all rows; of a model that was fitted with a horizon. Messages are objects:
`{"type": "hello" | "row" | "alarm" | "action" | "ahead", ...}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from fastapi import WebSocket, WebSocketDisconnect
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from jointset.live.answers import region
from jointset.live.history import FIELDS, Asked, pieces, row_of_history
from jointset.live.network import Network
from jointset.live.store import ACTION, Entry

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
        news += [News(number, json.dumps({"type": "alarm", "row": number, **one})) for number, one in changes]
        self.loop.call_soon_threadsafe(self._tell, news)

    def _tell(self, news: list[News]) -> None:
        for listener in list(self.listeners):
            if listener.qsize() + len(news) > WAITING:
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
    await socket.send_text(json.dumps({"type": "hello", "row": now, "sensors": sensors, "horizon": standing.horizon}))
    if after is not None:
        asked = Asked(CATCH_UP, max(after, now - CATCH_UP), now + 1)
        async for texts in iterate_in_threadpool(past_of(network, asked)):
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


def past_of(network: Network, asked: Asked) -> Iterator[list[str]]:
    """What a listener is told of past rows, some at a time: it may be slow, and the past is long."""
    for piece in pieces(network.store, asked):
        yield [message(entry, network.sensors) for entry in piece]
