"""The socket that a service listens on, taken before anything is opened or written."""

from __future__ import annotations

import logging
import math
import socket
import time

from jointset.errors import InputError, require

REPEATED = 60.0  # seconds in which one such message is written once
CAUSED = ("socket.accept() out of system resource", "Invalid HTTP request received")  # by senders, at will


class OnceAMinute(logging.Filter):
    """Lets what senders can cause a thousand times through once in REPEATED seconds, so that they fill no log."""

    def __init__(self) -> None:
        super().__init__()
        self.told = dict.fromkeys(CAUSED, -math.inf)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        kind = next((one for one in CAUSED if str(record.msg).startswith(one)), None)
        if kind is None:
            return True
        last, now = self.told[kind], time.monotonic()
        written = now > last + REPEATED
        self.told[kind] = now if written else last
        return written


def calm_logs() -> None:
    """Write what the server says about connections of anybody once a minute."""
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(OnceAMinute())


def address_of(scheme: str, host: str, taken: socket.socket) -> str:
    """The address that a socket answers at, IPv6 in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}:{taken.getsockname()[1]}/"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address, 127.0.0.1 rather than ::1 where a name has both; port 0: any that is free.

    It names its protocol: asyncio sends small answers of others only when the one before was acknowledged, 40 ms later.

    >>> with listening("localhost", 0) as taken:
    ...     taken.getsockname()[0], taken.proto == socket.IPPROTO_TCP
    ('127.0.0.1', True)
    """
    require(0 <= port <= 65_535, f"port {port} is none: choose one from 0, which takes any that is free, to 65535")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen()
    except (OSError, UnicodeError) as error:
        raise InputError(f"port {port} of {host} cannot be used ({error}): choose another, 0 takes any") from None
    return taken
