"""Bodies of requests and what they say they hold: bounded in size and in time, compressed ones too."""

from __future__ import annotations

import asyncio
import zlib

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from jointset.live.formats import CSV, INFLUX, JSON, LINES

PATIENCE = 30.0  # seconds that a body may take
ALL_AT_ONCE = 256 * 2**20  # bytes of all bodies that come at the same time
KINDS = {
    "application/json": JSON,
    "application/x-ndjson": LINES,
    "application/jsonl": LINES,
    "text/csv": CSV,
    "text/plain": INFLUX,
    "application/octet-stream": "",
    "application/x-www-form-urlencoded": "",  # what curl says of a body that it is told nothing about
    "": "",
}


class Intake:
    """Bytes of bodies that are on their way in, of all senders."""

    def __init__(self, most: int = ALL_AT_ONCE) -> None:
        self.most, self.bytes = most, 0

    def more(self, size: int) -> None:
        """Count some more, refused where there is no room."""
        if self.bytes + size > self.most:
            raise HTTPException(503, f"{self.bytes:,} bytes of bodies are on their way: try again in a second")
        self.bytes += size


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, unpacked where it is gzip; refused when it is too large or takes too long."""
    try:
        async with asyncio.timeout(PATIENCE):
            body = await _received(request, most)
    except TimeoutError:
        raise HTTPException(408, f"the body took longer than {PATIENCE:g} s: send it faster, or less") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body was not sent to its end") from None
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", ""):
        return body
    if coding != "gzip":
        raise HTTPException(415, f"Content-Encoding {coding[:40]!r} is not known here: send gzip, or none")
    return _unpacked(body, most)


def kind_of(content_type: str, body: bytes) -> str:
    """The format of a body, by what its sender says, else by how it begins."""
    said = content_type.partition(";")[0].strip().lower()
    known = KINDS.get(said)
    if known == "":
        known = JSON if body.lstrip()[:1] in (b"{", b"[") else None
    if known is None:
        types = ", ".join(name for name, kind in KINDS.items() if kind)
        raise HTTPException(415, f"Content-Type {said or 'none'!r} is not known here: send one of {types}")
    return known


async def _received(request: Request, most: int) -> bytes:
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said[:20]) > most:
        raise _too_large(most)
    parts, size, intake = [], 0, request.app.state.intake
    try:
        async for part in request.stream():
            if size + len(part) > most:
                raise _too_large(most)
            intake.more(len(part))
            size += len(part)
            parts.append(part)
    finally:
        intake.bytes -= size
    return b"".join(parts)


def _unpacked(body: bytes, most: int) -> bytes:
    """What a gzip body holds, all of its members, no more than is allowed."""
    parts, left = [], most
    while body:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            parts.append(unpacker.decompress(body, left + 1))
        except zlib.error as error:
            raise HTTPException(
                400, f"the body is not gzip ({error}): send it whole, or without Content-Encoding"
            ) from None
        left -= len(parts[-1])
        if left < 0:
            raise _too_large(most)
        if not unpacker.eof:
            raise HTTPException(400, "the gzip body is cut short: send it whole")
        body = unpacker.unused_data
    return b"".join(parts)


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {most:,} bytes: send fewer rows at once")
