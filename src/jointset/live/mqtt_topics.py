"""Messages of MQTT to readings: topics of whole rows, of single sensors, and of devices that name theirs otherwise.

| topic | message |
|---|---|
| `BASE/NETWORK/readings` | a row, as it would be posted: `{"time": ..., "values": {sensor: number}}`, or a list |
| `BASE/NETWORK/readings/SENSOR` | a number, or `{"value": number, "time": ...}`; without a time it is that of arrival |
| any topic of a file `topic,sensor[,key]` | likewise; `key` is the entry of a JSON message that is the reading |

A device that says it has no reading (`unavailable`, `unknown`, `null`, nothing) is silent, which is no error.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jointset.errors import InputError, require, require_known, some, suggest
from jointset.inputs.live_cells import cell_number
from jointset.inputs.live_rows import json_number
from jointset.live.formats import CSV, JSON, Reader

LARGEST = 2**20  # bytes of a message
NOTHING = ("", "null", "none", "nan", "unavailable", "unknown")
TIMES = ("time", "timestamp", "ts")
WILD = ("+", "#", "\x00")
ENTITIES: dict[str, tuple[str, dict[str, str]]] = {  # of Home Assistant by name: the component, and what is its own
    "score": ("sensor", {"value_template": "{{ value_json.score }}", "state_class": "measurement"}),
    "radius": ("sensor", {"value_template": "{{ value_json.radius }}", "state_class": "measurement"}),
    "inside": (
        "binary_sensor",
        {"value_template": "{{ 'ON' if value_json.inside == false else 'OFF' }}", "name": "outside its set"},
    ),
    "alarm": (
        "binary_sensor",
        {"value_template": "{{ 'ON' if value_json.count else 'OFF' }}", "device_class": "problem"},
    ),
}


class Post(NamedTuple):
    """What a message comes to: a body for a network, and its format."""

    network: str
    body: bytes
    kind: str


class Place(NamedTuple):
    """The sensor that a topic stands for; `key` is the entry of a JSON message that is its reading."""

    network: str
    sensor: str
    key: str | None = None


class Topics:
    """Which topics hold readings: those under a base, and those of a file."""

    def __init__(self, base: str, readers: Mapping[str, Reader], named: Mapping[str, list[Place]]) -> None:
        self.base, self.readers, self.named = checked_base(base), readers, named

    def under(self, network: str, *rest: str) -> str:
        """A topic of a network."""
        return "/".join((self.base, network, *rest))

    def subscriptions(self) -> list[str]:
        """The topics to listen to."""
        own = [
            topic for name in self.readers for topic in (self.under(name, "readings"), self.under(name, "readings/#"))
        ]
        return [*own, *self.named]

    def networks(self, topic: str) -> list[str]:
        """The networks that a topic has readings of."""
        if topic in self.named:
            return list(dict.fromkeys(place.network for place in self.named[topic]))
        return [name for name in self.readers if f"{topic}/".startswith(f"{self.under(name, 'readings')}/")]

    def posts(self, topic: str, message: bytes, now: float) -> list[Post]:
        """What a message comes to; refused where it holds no reading."""
        require(len(message) <= LARGEST, f"{len(message):,} bytes in one message: send {LARGEST:,} at most")
        if topic in self.named:
            return [post for place in self.named[topic] for post in _single(place, message, now)]
        names = self.networks(topic)
        require(bool(names), f"nobody asked for the topic {topic[:60]!r}")
        start, reader = self.under(names[0], "readings"), self.readers[names[0]]
        if topic == start:
            return [Post(names[0], message, JSON)]
        sensor = topic.removeprefix(f"{start}/")
        if reader.ignores(sensor):
            return []
        require_known(sensor, reader.place, f"no sensor {sensor[:60]!r}")
        return _single(Place(names[0], sensor), message, now)


def _single(place: Place, message: bytes, now: float) -> list[Post]:
    """The reading of one sensor as a line of a table; none where the device has none."""
    try:
        text = message.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise InputError("the message is not UTF-8 text: send a number, or JSON") from None
    value: Any = text
    when: Any = None
    if text.startswith("{"):
        value, when = _entries(text, place)
    if isinstance(value, str) and value.strip().lower() in NOTHING:
        return []
    number = cell_number(value.strip(), place.sensor) if isinstance(value, str) else json_number(place.sensor, value)
    if math.isnan(number):
        return []
    line = io.StringIO()
    csv.writer(line).writerows(
        [("time", "sensor", "value"), (int(now) if when is None else when, place.sensor, number)]
    )
    return [Post(place.network, line.getvalue().encode(), CSV)]


def _entries(text: str, place: Place) -> tuple[Any, Any]:
    """Reading and time in a JSON message."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("the message is not JSON: send a number, or an object") from None
    key = place.key or ("value" if "value" in found else place.sensor)
    require(key in found, f"the message has no entry {key[:60]!r}: name the entry that is the reading")
    when = next((found[name] for name in TIMES if name in found), None)
    require(when is None or isinstance(when, (str, int, float)), "the time of the message is no time")
    return found[key], when


def checked_base(base: str) -> str:
    """The first part of all own topics, without a slash at its ends."""
    base = base.strip("/")
    fits = bool(base) and not any(mark in base for mark in WILD)
    require(fits, f"{base!r} cannot begin a topic: leave out + and #")
    return base


def read_topics(path: Path, readers: Mapping[str, Reader]) -> dict[str, list[Place]]:
    """The places of a file with the lines `topic,sensor[,key]`; a header is skipped, and so are sensors left out."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the topics {path} cannot be read: {error}") from None
    return _places(path, ((i, row) for i, row in enumerate(csv.reader(lines), 1) if row), readers)


def _places(path: Path, rows: Iterable[tuple[int, list[str]]], readers: Mapping[str, Reader]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for i, row in rows:
        cells = [cell.strip() for cell in row]
        if i == 1 and cells[0].lower() == "topic":
            continue
        where = f"{path}, line {i}"
        require(len(cells) in (2, 3), f"{where}: {len(cells)} cells: write topic,sensor or topic,sensor,key")
        topic, sensor = cells[:2]
        require(
            bool(topic) and not any(mark in topic for mark in WILD), f"{where}: {topic!r} is no topic of one device"
        )
        owners = [name for name, reader in readers.items() if reader.place.get(sensor) is not None]
        if not owners and any(reader.ignores(sensor) for reader in readers.values()):
            continue
        known = [name for reader in readers.values() for name in reader.place]
        require(bool(owners), f"{where}: no network has a sensor {sensor!r}: {suggest(sensor, known)}")
        several = f"the networks {some(owners)} have a sensor {sensor!r} each"
        require(len(owners) == 1, f"{where}: {several}: send it to a topic of one, BASE/NETWORK/readings/SENSOR")
        found.setdefault(topic, []).append(Place(owners[0], sensor, cells[2] if len(cells) == 3 and cells[2] else None))
    return found


def discovery(topics: Topics, network: str, prefix: str) -> dict[str, dict[str, Any]]:
    """What Home Assistant is told, so that the entities of a network appear there by themselves.

    Messages by their topics: `PREFIX/COMPONENT/jointset_NETWORK/NAME/config`.

    >>> list(discovery(Topics("jointset", {"city": ()}, {}), "city", "homeassistant"))[0]
    'homeassistant/sensor/jointset_city/score/config'
    """
    node = f"jointset_{re.sub('[^A-Za-z0-9_-]', '_', network)}"
    device = {"identifiers": [node], "name": f"jointset {network}", "manufacturer": "jointset"}
    found = {}
    for name, (component, own) in ENTITIES.items():
        state = topics.under(network, "alarms/open" if name == "alarm" else "score")
        entity: dict[str, Any] = {
            "name": name,
            "unique_id": f"{node}_{name}",
            "state_topic": state,
            "availability_topic": f"{topics.base}/status",
            "device": device,
            **own,
        }
        if name == "alarm":
            entity["json_attributes_topic"] = state
        found[f"{prefix}/{component}/{node}/{name}/config"] = entity
    return found
