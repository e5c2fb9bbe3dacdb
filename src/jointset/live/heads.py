"""Heads of requests, bounded in size: the parser of HTTP takes names and values of any length."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 64 * 2**10  # bytes, about: what comes at once is parsed at once


class BoundedHeads(HttpToolsProtocol):
    """HTTP on one connection, closed when the head of a request does not end."""

    head: int | None = 0  # bytes of it so far; None while a body comes

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self.head is not None:
            self.head += len(data)
        super().data_received(data)
        if self.head is not None and self.head > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"the head of the request is larger than {MOST_HEAD:,} bytes: send less")

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self.head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """So has the request; another may follow."""
        self.head = 0
        super().on_message_complete()
