"""The ways in and out of served networks that were asked for, beside HTTP: addresses, a file, a broker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jointset.errors import InputError
from jointset.live.network import Network
from jointset.live.sending import Courier, Send, StoreOutbox
from jointset.live.webhooks import Lines, Webhook, checked_url, read_secret
from jointset.support.atomic import writing_to

if TYPE_CHECKING:
    from jointset.live.mqtt import Bridge


class Asked(NamedTuple):
    """Where changes of alarms go."""

    webhooks: tuple[str, ...] = ()
    secret: bytes = b""
    lines: Path | None = None


class Broker(NamedTuple):
    """A broker of MQTT, as it was asked for."""

    url: str
    password: Path | None = None
    base: str = "jointset"
    topics: Path | None = None
    discovery: str = "homeassistant"


def asked_for(webhooks: Sequence[str], secret: Path | None, lines: Path | None) -> Asked:
    """What was asked for, checked before anything is opened."""
    kept = b"" if secret is None else read_secret(secret)
    if lines is not None:
        with writing_to(lines):
            lines.open("a").close()
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
        found.append(_courier(network, kind, mark, send, note))
    return found


def open_bridge(
    asked: Broker, networks: Mapping[str, Network], store: Path, note: Callable[[str], None]
) -> tuple[Bridge, list[Courier]]:
    """The bridge to a broker, and couriers that bring the changes of alarms there."""
    try:
        from jointset.live.mqtt import Bridge
    except ImportError:
        raise InputError("a broker needs aiomqtt: pip install 'jointset[mqtt]'") from None
    from jointset.live.mqtt_address import read_address
    from jointset.live.mqtt_topics import Topics, read_topics

    readers = {name: network.reader for name, network in networks.items()}
    named = {} if asked.topics is None else read_topics(asked.topics, readers)
    address = read_address(asked.url, asked.password, store)
    bridge = Bridge(address, Topics(asked.base, readers, named), networks, note, asked.discovery)
    couriers = [
        _courier(network, "mqtt", network.store.path.parent / "sent-mqtt.json", bridge.send(name), note)
        for name, network in networks.items()
    ]
    return bridge, couriers


def _courier(network: Network, kind: str, mark: Path, send: Send, note: Callable[[str], None]) -> Courier:
    """A courier that a network wakes."""
    courier = Courier(f"{network.name}: {kind}", StoreOutbox(network.store, mark), send, note)
    network.listeners.append(courier.wake)
    return courier
