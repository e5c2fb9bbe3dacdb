"""Where a broker is, and how to speak to it."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import aiomqtt

from jointset.errors import InputError, require

PORTS = {"mqtt": 1883, "mqtts": 8883}


class Address(NamedTuple):
    """A broker, who we are there, and under which name the session is kept."""

    host: str
    port: int
    secure: bool
    user: str | None
    password: str | None
    identifier: str

    def client(self, will: aiomqtt.Will) -> aiomqtt.Client:
        """A client that is not connected yet; its session outlives the connection."""
        return aiomqtt.Client(
            self.host,
            self.port,
            username=self.user,
            password=self.password,
            identifier=self.identifier,
            clean_session=False,
            will=will,
            timeout=10.0,
            max_queued_incoming_messages=10_000,
            tls_context=ssl.create_default_context() if self.secure else None,
        )


def read_address(url: str, password_file: Path | None, store: Path) -> Address:
    """The broker of `mqtt[s]://[user@]host[:port]`; its session is named after the store.

    >>> read_address("mqtt://me@broker", None, Path("/store"))[:4]
    ('broker', 1883, False, 'me')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputError(f"{url!r} is no broker: write mqtt://host:1883") from None
    fits = parts.scheme in PORTS and bool(parts.hostname) and parts.path in ("", "/")
    require(fits, f"{url!r} is no broker: write mqtt://host:1883, or mqtts:// for TLS")
    require(parts.password is None, "leave the password out of the address: give --mqtt-password-file")
    name = f"jointset-{hashlib.sha256(str(store.resolve()).encode()).hexdigest()[:12]}"
    user = unquote(parts.username) if parts.username else None
    secret = None if password_file is None else _secret(password_file)
    return Address(parts.hostname or "", port or PORTS[parts.scheme], parts.scheme == "mqtts", user, secret, name)


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").splitlines()[0].strip()
    except (OSError, UnicodeDecodeError, IndexError):
        raise InputError(f"there is no password in {path}: write it on the first line") from None
