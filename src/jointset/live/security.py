"""Who may talk to the service, how often and how much: tokens, origins, rates, and headers on every answer.

Without a token only this machine may ask: a page of another site that a browser on this machine has open may not, so
requests must name this machine as their host, and come from a page of the service where they come from a page at all.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

from jointset.errors import InputError, require

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]
SHORTEST = 16  # characters of a token
CLIENTS = 10_000  # whose rates are remembered
OPEN = ("/health", "/ready", "/")  # what anybody may ask, with the files of the page, which hold no data
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DOCS_CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
Refusal = tuple[int, str]


class Guard(NamedTuple):
    """What a service allows. No token: none is asked for."""

    tokens: tuple[bytes, ...] = ()
    rate: float = 1_000.0  # requests a second of one client
    burst: float = 2_000.0
    most_bytes: int = 8 * 2**20  # of a body
    hosts: frozenset[str] = frozenset()  # names the service may be called by, beside those of this machine


def is_loopback(host: str) -> bool:
    """Whether an address is that of this machine itself.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, True, False, True)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_tokens(path: Path) -> tuple[bytes, ...]:
    """The tokens of a file, one a line; `#` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token file {path} ({error}): check its name and rights") from None
    require(mode & 0o007 == 0, f"every user of this machine may read {path}: run chmod 600 {path}")
    tokens = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    require(bool(tokens), f"{path} holds no token: write one a line, such as `openssl rand -hex 32` prints")
    for i, token in enumerate(tokens, 1):
        require(len(token) >= SHORTEST, f"token {i} of {path} is shorter than {SHORTEST} characters: take a longer one")
    return tuple(token.encode() for token in tokens)


def require_tls(certificate: Path, key: Path) -> None:
    """Refuse files that no TLS can be served with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        mode = key.stat().st_mode
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # an error of TLS is an OSError too
        words = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        named = f"--tls-cert {certificate} and --tls-key {key}"
        raise InputError(f"{named} cannot be used ({words}): give a PEM certificate and its own key") from None
    require(mode & 0o007 == 0, f"every user of this machine may read {key}: run chmod 600 {key}")


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to ask for its password")


class Rates:
    """Requests of every client in a bucket that fills at a steady rate."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Seconds that a client has to wait, 0 where its request may pass; such a one is counted.

        >>> rates = Rates(rate=1.0, burst=2.0)
        >>> [rates.wait("a", 0.0) for _ in range(3)], rates.wait("b", 0.0), rates.wait("a", 1.0)
        ([0.0, 0.0, 1.0], 0.0, 0.0)
        """
        left, then = self._buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        allowed = left >= 1.0
        self._buckets[client] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


class Guarded:
    """The service behind its guard."""

    def __init__(self, app: App, guard: Guard) -> None:
        self.app, self.guard = app, guard
        self.rates = Rates(guard.rate, guard.burst)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let a request through, or answer it with why not."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal is None:
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": refusal[1][:120]})
            return
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        await self.app(scope, receive, _with_headers(send, scope["path"]))

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> Refusal | None:
        """Why a request may not pass."""
        client = (scope.get("client") or ("unknown",))[0]
        wait = self.rates.wait(client, time.monotonic())
        if wait:
            return 429, f"too many requests, more than {self.guard.rate:g} a second: try again in {wait:.1f} s"
        if scope["path"] in OPEN or scope["path"].startswith("/pages/"):
            return None
        if self.guard.tokens:
            offered = _offered(headers)
            if any(_same(one, self.guard.tokens) for one in offered):
                return None
            return 401, "the token is not one of ours" if offered else "send a token: Authorization: Bearer TOKEN"
        host = headers.get(b"host", "")
        if not is_loopback(_name(host)) and _name(host) not in self.guard.hosts:
            return 403, f"this service is not called {host[:60]!r}: name it with --allow-host, or use a token"
        origin = headers.get(b"origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, f"requests from pages of {origin[:60]!r} are refused"
        if headers.get(b"sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "requests from pages of other sites are refused"
        return None


def _offered(headers: dict[bytes, str]) -> list[bytes]:
    """The tokens that a request holds; browsers send that of a socket as its protocol."""
    scheme, _, given = headers.get(b"authorization", "").partition(" ")
    offered = [given.strip()] if scheme.lower() == "bearer" else []
    for protocol in headers.get(b"sec-websocket-protocol", "").split(","):
        offered += [protocol.strip().removeprefix("bearer.")] if protocol.strip().startswith("bearer.") else []
    return [one.encode("latin-1") for one in offered]


def _same(given: bytes, tokens: Iterable[bytes]) -> bool:
    """Whether a token is one of these; how long that takes tells nothing of how near it is."""
    return sum(hmac.compare_digest(given, token) for token in tokens) > 0


def _name(host: str) -> str:
    """The name of a host without its port."""
    if host.startswith("["):
        return host.partition("]")[0].strip("[]")
    return host.partition(":")[0]


def _with_headers(send: Any, path: str) -> Any:
    """Add what every answer says to browsers."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {key.lower() for key, _ in message["headers"]}
            more = {**HEADERS, "content-security-policy": DOCS_CSP if path == "/docs" else CSP}
            added = [(k.encode(), v.encode()) for k, v in more.items() if k.encode() not in given]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sent


async def _refuse(send: Any, status: int, text: str) -> None:
    """Answer a request that may not pass."""
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    more = {401: (b"www-authenticate", b"Bearer"), 429: (b"retry-after", b"1"), 503: (b"retry-after", b"1")}
    headers += [more[status]] if status in more else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
