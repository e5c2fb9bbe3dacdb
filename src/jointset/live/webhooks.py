"""Changes of alarms as signed requests to an address, or as lines of a file.

A request is a POST of one change as JSON. `X-Jointset-Signature: t=SECONDS,v1=HEX` holds the HMAC-SHA256 of
`SECONDS.BODY` under the shared secret, so that a receiver knows who sent it and when; `X-Jointset-Delivery` is the same
whenever a change is sent again, so that it can count each once. Any answer of 2xx is an arrival.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jointset.errors import InputError, require

PATIENCE = 10.0  # seconds to wait for an answer
TOLERANCE = 300.0  # seconds a signature is good for


class Webhook:
    """An address that gets the changes of one network."""

    def __init__(self, network: str, url: str, secret: bytes = b"", clock: Callable[[], float] = time.time) -> None:
        self.network, self.url, self.secret, self.clock = network, checked_url(url), secret, clock
        self._open = urllib.request.build_opener(_Stay).open

    def __call__(self, number: str, change: dict[str, Any]) -> None:
        """Send a change; OSError where it did not arrive."""
        body = json.dumps({"network": self.network, "change": number, **change}).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "jointset",
            "X-Jointset-Delivery": f"{self.network}-{number}",
        }
        if self.secret:
            headers["X-Jointset-Signature"] = signature(self.secret, body, int(self.clock()))
        request = urllib.request.Request(self.url, body, headers, method="POST")
        where = urlsplit(self.url).hostname
        try:
            with self._open(request, timeout=PATIENCE) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
            error.close()
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"{where} gave no answer of HTTP ({type(error).__name__})") from None
        except OSError as error:
            raise OSError(f"{where} cannot be reached ({getattr(error, 'reason', error)})") from None
        if not 200 <= status < 300:
            raise OSError(f"{where} answered {status}")


class Lines:
    """A file that gets a line of JSON for every change, on the disk before the next."""

    def __init__(self, network: str, path: Path) -> None:
        self.network, self.path = network, path

    def __call__(self, number: str, change: dict[str, Any]) -> None:
        """Write a change; OSError where it could not be."""
        line = json.dumps({"network": self.network, "change": number, **change}) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


class _Stay(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else: an answer that points elsewhere is no arrival."""

    def redirect_request(self, *_: Any) -> None:
        return None


def signature(secret: bytes, body: bytes, seconds: int) -> str:
    """The signature of a body sent at a time.

    >>> signature(b"secret", b"{}", 0)[:20]
    't=0,v1=4bbe8d39de1ff'
    """
    return f"t={seconds},v1={hmac.new(secret, b'%d.' % seconds + body, hashlib.sha256).hexdigest()}"


def verify(secret: bytes, body: bytes, given: str, now: float) -> bool:
    """Whether a signature is that of a body, and not older than TOLERANCE: for receivers.

    >>> sent = signature(b"secret", b"{}", 1000)
    >>> [verify(b"secret", b"{}", sent, now) for now in (1010.0, 9999.0)]
    [True, False]
    """
    seconds = given.removeprefix("t=").partition(",")[0]
    if not seconds.isdecimal() or len(seconds) > 12 or abs(now - int(seconds)) > TOLERANCE:
        return False
    return hmac.compare_digest(signature(secret, body, int(seconds)), given)


def checked_url(url: str) -> str:
    """An address of HTTP, refused where it is none."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    require(fits and url.isascii() and url.isprintable() and " " not in url, f"{url!r} is no address: write https://…")
    return url


def read_secret(path: Path) -> bytes:
    """The secret in a file, its first line."""
    try:
        secret = path.read_bytes().split(b"\n")[0].strip()
    except OSError as error:
        raise InputError(f"the secret {path} cannot be read: {error.strerror}") from None
    require(len(secret) >= 16, f"the secret in {path} is shorter than 16 characters: make a longer one")
    return secret
