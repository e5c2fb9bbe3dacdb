"""Connections, and the heads of requests on them, bounded in number, size and time.

The parser of HTTP takes names and values of any length, and the server as many connections as come, for as long as they
say nothing: without a token a thousand of them would leave no file for anybody else.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 64 * 2**10  # bytes, about: what comes at once is parsed at once
MOST_LINES = 1_000  # connections at once, where that is no more than half of the files that may be open
FILES = 4 * MOST_LINES  # asked for where the system allows more than it gives


class BoundedHeads(HttpToolsProtocol):
    """HTTP on one connection, closed when the head of a request does not end, or when there are too many others."""

    most_lines = MOST_LINES
    patience = 30.0  # seconds that a head may take, from the connection or its own first byte
    head: int | None = 0  # bytes of it so far; None while a body comes
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take a connection, or close it at once."""
        super().connection_made(transport)
        if len(self.connections) > self.most_lines:
            transport.abort()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self.head is not None:
            self.head += len(data)
        super().data_received(data)
        if self.head is not None and self.head > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"the head of the request is larger than {MOST_HEAD:,} bytes: send less")
        elif self.head and self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._waited()
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self.head = None
        self._waited()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """So has the request; another may follow."""
        self.head = 0
        super().on_message_complete()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.patience, self.transport.abort)

    def _waited(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_room() -> type[BoundedHeads]:
    """Heads for as many connections as this process has files for, after it has asked the system for enough."""
    files = _files()
    bounds: dict[str, Any] = {"most_lines": min(MOST_LINES, files // 2)}
    return type("BoundedHeads", (BoundedHeads,), bounds)


def _files() -> int:
    """How many files may be open, after a try for more."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2 * MOST_LINES
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        now = wanted
    return FILES if now == resource.RLIM_INFINITY else now
