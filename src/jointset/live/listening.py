"""The socket that a service listens on, taken before anything is opened or written."""

from __future__ import annotations

import socket

from jointset.errors import InputError, require


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
