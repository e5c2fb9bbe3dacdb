"""The ways out of a served network that were asked for: addresses and a file, each with a courier of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from jointset.live.network import Network
from jointset.live.sending import Courier, Send, StoreOutbox
from jointset.live.webhooks import Lines, Webhook, checked_url, read_secret


class Asked(NamedTuple):
    """Where changes of alarms go."""

    webhooks: tuple[str, ...] = ()
    secret: bytes = b""
    lines: Path | None = None


def asked_for(webhooks: Sequence[str], secret: Path | None, lines: Path | None) -> Asked:
    """What was asked for, checked before anything is opened."""
    kept = b"" if secret is None else read_secret(secret)
    return Asked(tuple(checked_url(url) for url in dict.fromkeys(webhooks)), kept, lines)


def open_ways(network: Network, asked: Asked, note: Callable[[str], None]) -> list[Courier]:
    """Couriers for a network; each goes on from what it last brought there."""
    ways: dict[str, Send] = {url: Webhook(network.name, url, asked.secret) for url in asked.webhooks}
    if asked.lines is not None:
        ways[str(asked.lines.resolve())] = Lines(network.name, asked.lines)
    found = []
    for where, send in ways.items():
        mark = network.store.path.parent / f"sent-{hashlib.sha256(where.encode()).hexdigest()[:12]}.json"
        kind = "webhook" if isinstance(send, Webhook) else "alarm log"
        found.append(Courier(f"{network.name}: {kind}", StoreOutbox(network.store, mark), send, note))
        network.listeners.append(found[-1].wake)
    return found
